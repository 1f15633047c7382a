//! The small runs of the tenant that is to be left in peace: one after another begins at its time, whether the ones before
//! have ended or not, so that a stall is seen by all that it delays.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;

use super::stage::Stage;
use crate::api::client::Client;

/// Runs of one phase, and the time from the start of one to the start of the next.
const RUNS: usize = 20;
const PACE: Duration = Duration::from_millis(100);

static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// How long the slowest run of a phase took, from its start to the answer that it has ended: with so few, that is their p99
/// and more. All of them must complete.
pub async fn slowest(stage: &Stage) -> Duration {
    let mut runs = JoinSet::new();
    let mut ticks = tokio::time::interval(PACE);
    for _ in 0..RUNS {
        ticks.tick().await;
        let input = stage.charge(NUMBER.fetch_add(1, Ordering::Relaxed));
        runs.spawn(timed(stage.quiet.clone(), json!({ "input": input })));
    }
    runs.join_all().await.into_iter().max().unwrap()
}

async fn timed(client: Client, start: serde_json::Value) -> Duration {
    let began = Instant::now();
    let started = client.post("/v1/activities/send/runs", &start).await.expect(201);
    let path = format!("/v1/runs/{}?wait=30", started["run_id"].as_str().unwrap());
    let run = client.get(&path).await.expect(200);
    assert_eq!(run["state"], "completed", "{run}");
    began.elapsed()
}
