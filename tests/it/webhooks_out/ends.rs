//! However a run ends, its receiver is told of it.

use serde_json::{Value, json};

use super::Stage;
use crate::harness::lease;

/// What the receiver was told of the run, as its last message.
async fn told_of(stage: &Stage, run: &str) -> Value {
    assert_eq!(stage.settled(run).await["state"], "delivered");
    let mut of_run = stage.told().await.into_iter().filter(|told| told.body["data"]["run_id"] == run);
    of_run.next_back().unwrap().body
}

fn failed_as(body: &Value, code: &str) {
    assert_eq!((&body["type"], &body["data"]["state"]), (&json!("run.failed"), &json!("failed")), "{body}");
    assert_eq!(body["data"]["failure"]["code"], code, "{body}");
    assert_eq!(body["data"].get("output"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_tells_how() {
    let stage = Stage::new().await;
    stage.deploy("fail").await;
    let run = stage.start("fail", json!({ "code": "card-declined", "message": "m", "kind": "permanent" })).await;
    stage.api.work().await;
    failed_as(&told_of(&stage, &run).await, "card-declined");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cancelled_tells_of_it_alone_or_with_many() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let (one, other) = (stage.start("noop", json!(1)).await, stage.start("noop", json!(2)).await);
    stage.api.acme.post(&format!("/v1/runs/{one}/cancel"), &json!({})).await.expect(200);
    stage.api.acme.post("/v1/runs/cancel", &json!({ "activity": "noop" })).await.expect(200);
    for run in [one, other] {
        let body = told_of(&stage, &run).await;
        assert_eq!((&body["type"], &body["data"]["state"]), (&json!("run.cancelled"), &json!("cancelled")), "{body}");
        assert_eq!((body["data"].get("failure"), body["data"].get("output")), (None, None));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cancelled_while_it_runs_tells_of_it() {
    let stage = Stage::new().await;
    stage.deploy("spin").await;
    let run = stage.start("spin", json!(1)).await;
    stage.api.begin_working();
    stage.api.until_state(&run, "running").await;
    stage.api.acme.post(&format!("/v1/runs/{run}/cancel"), &json!({})).await.expect(202);
    stage.api.until_state(&run, "cancelled").await;
    assert_eq!(told_of(&stage, &run).await["type"], "run.cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_time_is_over_tells_of_it() {
    let stage = Stage::new().await;
    stage.deploy_with("noop", json!({ "schedule_to_start": "60s" })).await;
    let run = stage.start("noop", json!(1)).await;
    stage.api.world.database.advance_seconds(61).await;
    failed_as(&told_of(&stage, &run).await, "timed-out");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_worker_is_lost_in_its_last_attempt_tells_of_it() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let run = stage.start("noop", json!(1)).await;
    assert_eq!(lease(stage.api.world.node.store(), "lost", 10, 60_000).await.len(), 1);
    stage.api.world.expire_leases().await;
    failed_as(&told_of(&stage, &run).await, "worker-lost");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_end_of_a_run_that_is_begun_again_is_told_under_an_id_of_its_own() {
    let stage = Stage::new().await;
    stage.deploy("fail-until").await;
    let run = stage.start("fail-until", json!({ "attempt": 2 })).await;
    stage.api.work().await;
    failed_as(&told_of(&stage, &run).await, "not-yet");
    stage.api.acme.post(&format!("/v1/runs/{run}/retry"), &json!({})).await.expect(200);
    assert_eq!(stage.callback(&run).await["state"], "pending");
    stage.redeliver(&run).await.refused(409, "run_state_conflict");
    stage.api.work().await;
    assert_eq!(told_of(&stage, &run).await["type"], "run.completed");
    let told = stage.told().await;
    assert!(told.len() == 2 && told[0].id != told[1].id, "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_not_told_yet_is_not_told_once_the_run_is_begun_again() {
    let stage = Stage::new().await;
    stage.deploy("fail-until").await;
    let run = stage.start("fail-until", json!({ "attempt": 2 })).await;
    stage.api.work().await;
    assert_eq!(stage.callback(&run).await["state"], "due");
    stage.api.acme.post(&format!("/v1/runs/{run}/retry"), &json!({})).await.expect(200);
    stage.api.work().await;
    assert_eq!(told_of(&stage, &run).await["type"], "run.completed");
    assert_eq!(stage.told().await.len(), 1);
}
