//! Makes runs ready whose time has come: a start or retry time, or the end of a wait. The timers are rows, so that they
//! outlive every process.

use std::convert::Infallible;
use std::time::Duration;

use crate::config::ms;
use crate::store::{self, Store};

/// Runs made ready in one statement.
const BATCH: i64 = 1_000;

/// The shortest pause between two looks.
const MIN_PAUSE: Duration = Duration::from_millis(5);

/// Makes all that is due ready, and gives the time until the next timer.
pub async fn run_once(store: &Store) -> Result<Option<Duration>, store::Error> {
    loop {
        let promoted = store::duty::promote(store, BATCH).await?;
        if promoted.runs < BATCH {
            return Ok(promoted.next_ms.map(|left| ms(left.max(0).unsigned_abs())));
        }
    }
}

pub async fn run_forever(store: &Store, poll: Duration) -> Infallible {
    let mut pause = MIN_PAUSE;
    loop {
        tokio::time::sleep(pause).await;
        pause = match run_once(store).await {
            Ok(next) => next.unwrap_or(poll).clamp(MIN_PAUSE, poll),
            Err(error) => {
                tracing::warn!(error = %error, "timers failed; it is tried again");
                poll
            }
        };
    }
}
