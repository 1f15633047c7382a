//! Sweeps what has outlived its time, and claims that nobody is at any more, in batches, so that no sweep holds the database
//! for long.

use std::convert::Infallible;

use crate::config::{RetentionConfig, ms};
use crate::store::{self, Store};

/// Runs swept in one statement.
const BATCH: i64 = 200;

/// Answers to request keys swept in one statement.
const KEYS: i64 = 1_000;

/// Sweeps all that is due, and gives the number of runs.
pub async fn run_once(store: &Store, config: &RetentionConfig) -> Result<u64, store::Error> {
    while store::duty::escape_left(store, BATCH).await? > 0 {}
    while store::request_key::sweep(store, config.request_keys_hours, KEYS).await? == KEYS.unsigned_abs() {}
    let mut swept = 0;
    loop {
        let batch = store::retention::sweep(store, config.days, BATCH).await?;
        swept += batch;
        if batch < BATCH.unsigned_abs() {
            return Ok(swept);
        }
    }
}

pub async fn run_forever(store: &Store, config: &RetentionConfig) -> Infallible {
    loop {
        match run_once(store, config).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "swept runs whose time is over"),
            Err(error) => tracing::warn!(error = %error, "sweeping failed; it is tried again"),
        }
        tokio::time::sleep(ms(config.pause_ms)).await;
    }
}
