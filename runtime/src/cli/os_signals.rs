//! Ctrl-C and SIGTERM: the first asks everything to stop, a second ends the process at once.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The exit code of a process that was interrupted.
const INTERRUPTED: i32 = 130;

/// A token that is cancelled by the first signal from now on.
pub(super) fn stop() -> io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        for times in 0.. {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if times > 0 {
                std::process::exit(INTERRUPTED);
            }
            tracing::info!("stopping; a second signal ends at once");
            stop.cancel();
        }
    });
    Ok(token)
}
