//! Ends runs that did not start within `schedule_to_start` or did not end within `schedule_to_close`. One that is running is
//! ended by its own worker.

use std::convert::Infallible;
use std::time::Duration;

use crate::store::{self, Store};

/// Runs ended in one transaction.
const BATCH: i64 = 500;

const START_LATE: &str =
    r#"{"code":"timed-out","message":"the run did not start within schedule_to_start","kind":"retryable"}"#;
const CLOSE_LATE: &str =
    r#"{"code":"timed-out","message":"the run did not end within schedule_to_close","kind":"retryable"}"#;

/// Ends all such runs and gives their number.
pub async fn run_once(store: &Store) -> Result<usize, store::Error> {
    let mut ended = 0;
    loop {
        let batch = store::duty::expire(store, BATCH, START_LATE, CLOSE_LATE).await?;
        ended += batch;
        if batch < BATCH as usize {
            return Ok(ended);
        }
    }
}

pub async fn run_forever(store: &Store, pause: Duration) -> Infallible {
    loop {
        tokio::time::sleep(pause).await;
        match run_once(store).await {
            Ok(0) => {}
            Ok(ended) => tracing::info!(runs = ended, "runs ended because their time was over"),
            Err(error) => tracing::warn!(error = %error, "ending late runs failed; it is tried again"),
        }
    }
}
