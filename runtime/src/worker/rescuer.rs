//! Takes back runs whose lease is over: another worker goes on with them, or they end, in their last allowed attempt, out of
//! time or cancelled. So a module that kills its worker stops.

use std::convert::Infallible;
use std::time::Duration;

use crate::store::duty::Rescued;
use crate::store::{self, Store};

/// Runs taken back in one transaction.
const BATCH: i64 = 500;

const LOST: &str =
    r#"{"code":"worker-lost","message":"the worker was lost in the last allowed attempt","kind":"retryable"}"#;
const LATE: &str =
    r#"{"code":"timed-out","message":"the run did not end within schedule_to_close","kind":"retryable"}"#;

/// The longest patience with workers that could not reach the database.
const MAX_PATIENCE: Duration = Duration::from_secs(5);

/// Takes back all such runs.
pub async fn run_once(store: &Store) -> Result<Rescued, store::Error> {
    let mut all = Rescued::default();
    loop {
        let batch = store::duty::rescue(store, BATCH, LOST, LATE).await?;
        all = Rescued { requeued: all.requeued + batch.requeued, ended: all.ended + batch.ended };
        if batch.total() < BATCH as usize {
            return Ok(all);
        }
    }
}

/// After a failure of the database, workers that live get the time to say so: that they could not reach it is no reason to
/// spend their attempts.
pub async fn run_forever(store: &Store, pause: Duration, lease: Duration) -> Infallible {
    let patience = (lease / 2).min(MAX_PATIENCE);
    let mut failed = false;
    loop {
        tokio::time::sleep(pause).await;
        if failed {
            failed = store.ping().await.is_err();
            if !failed {
                tokio::time::sleep(patience).await;
            }
            continue;
        }
        match run_once(store).await {
            Ok(rescued) if rescued.total() == 0 => {}
            Ok(rescued) => {
                tracing::warn!(requeued = rescued.requeued, ended = rescued.ended, "runs had lost their workers");
            }
            Err(error) => {
                failed = true;
                tracing::warn!(error = %error, "rescuing failed; it is tried again");
            }
        }
    }
}
