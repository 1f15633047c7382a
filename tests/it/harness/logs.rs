//! Everything that is logged in this process, at every level, by every library.

use std::io::Write;
use std::sync::{Arc, Mutex, Once};

use tracing_subscriber::fmt::MakeWriter;

static ONCE: Once = Once::new();
static LOGS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

#[derive(Clone)]
struct Keep;

impl Write for Keep {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        LOGS.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Keep {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

/// Begins to keep what is logged.
pub fn keep() {
    ONCE.call_once(|| {
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(Keep).finish();
        tracing::subscriber::set_global_default(Arc::new(subscriber)).unwrap();
    });
}

/// All that was logged so far.
pub fn all() -> String {
    String::from_utf8_lossy(&LOGS.lock().unwrap()).into_owned()
}
