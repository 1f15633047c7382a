//! Ends runs whose worker was lost in their last allowed attempt, so that a module which kills its worker stops.

use std::convert::Infallible;
use std::time::Duration;

use crate::store::{self, Store};

/// Runs ended in one statement.
const BATCH: i64 = 100;

const FAILURE: &str =
    r#"{"code":"worker-lost","message":"the worker was lost in the last allowed attempt","kind":"retryable"}"#;

/// Ends all such runs and gives their number.
pub async fn run_once(store: &Store) -> Result<usize, store::Error> {
    let mut ended = 0;
    loop {
        let batch = store::lease::fail_lost(store, BATCH, FAILURE).await?;
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
            Ok(ended) => tracing::warn!(runs = ended, "runs ended because their workers were lost"),
            Err(error) => tracing::warn!(error = %error, "rescuing failed; it is tried again"),
        }
    }
}
