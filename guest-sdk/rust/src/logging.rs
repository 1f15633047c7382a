//! What the crate `log` is given goes to the run's log, by way of standard error. It must never hold back what an activity says: the
//! host bounds it.

use log::{LevelFilter, Log, Metadata, Record};

struct ToTheHost;

/// Takes the log over, unless the activity has a logger of its own.
pub fn begin() {
    if log::set_logger(&ToTheHost).is_ok() {
        log::set_max_level(LevelFilter::Trace);
    }
}

impl Log for ToTheHost {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    #[allow(clippy::print_stderr, reason = "the host records standard error as the run's log")]
    fn log(&self, record: &Record<'_>) {
        eprintln!("{} {}: {}", record.level(), record.target(), record.args());
    }

    fn flush(&self) {}
}
