//! The time-outs of a run: to its start, and to its end.

use std::time::Duration;

use deedbox_books::{Behaviour, Options};
use serde_json::Value;

use super::*;
use crate::harness::{config, work_once};

async fn failure(world: &World, run: Uuid) -> (String, String) {
    let failure: Value = world.failure(run).await;
    (failure["code"].as_str().unwrap().to_owned(), failure["message"].as_str().unwrap().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_does_not_start_in_time_fails() {
    let world = World::keyed().await;
    world.deploy("noop", "stripe", json!({ "timeouts": { "schedule_to_start": "60s" } })).await;
    let late = world.start("noop", json!(1)).await;
    let in_time = world.start("noop", json!(2)).await;
    world
        .database
        .execute(&format!("update runs set rank = rank - interval '1 hour' where run_id = '{in_time}'"))
        .await;
    work_once(&world.node).await;
    world.database.advance_seconds(61).await;
    world.work().await;
    assert_eq!(world.output(in_time).await, json!(2));
    let (code, message) = failure(&world, late).await;
    assert_eq!((code.as_str(), message.contains("schedule_to_start")), ("timed-out", true));
    assert!(world.attempts(late).await.is_empty());
}

/// The whole run, with its retries: what waits for a retry ends at the time, and its open question stays open.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_does_not_end_in_time_fails_and_its_question_stays_open() {
    let world = World::keyless().await;
    let policy = json!({ "timeouts": { "schedule_to_close": "100s" }, "retry": { "initial_interval": "1s" } });
    world.deploy("send", "keyless", policy).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let call = json!({ "method": "POST", "url": world.charges(), "json": {} });
    let run = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    assert_eq!(world.run(run).await.state, "waiting");
    world.database.advance_seconds(101).await;
    world.work().await;
    let (code, message) = failure(&world, run).await;
    assert_eq!((code.as_str(), message.contains("schedule_to_close")), ("timed-out", true));
    assert_eq!(world.sends(run).await[0].state, "escaped");
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1);
}

/// An attempt under way is stopped at the time, its socket closed, and no other follows although some are left.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_is_stopped_when_the_runs_time_is_over() {
    let mut config = config();
    (config.gateway.default_send_ms, config.gateway.max_send_ms) = (60_000, 60_000);
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    let policy =
        json!({ "timeouts": { "schedule_to_close": "2s", "start_to_close": "60s" }, "retry": { "max_attempts": 9 } });
    world.deploy("send", "stripe", policy).await;
    world.script(&[Behaviour::HoldAfterApply]).await;
    let call = json!({ "method": "POST", "url": world.charges(), "json": {} });
    let run = world.start("send", json!({ "calls": [call] })).await;
    work_once(&world.node).await;
    assert_eq!(world.outcomes(run).await, ["timed-out"]);
    let (code, message) = failure(&world, run).await;
    assert_eq!((code.as_str(), message.contains("schedule_to_close")), ("timed-out", true));
    let attempt = &world.attempts(run).await[0];
    let lasted = (attempt.ended_at.unwrap() - attempt.started_at).to_std().unwrap();
    assert!(lasted > Duration::from_millis(1_500) && lasted < Duration::from_secs(6), "{lasted:?}");
    assert_eq!(world.sends(run).await[0].state, "escaped", "the run ended with it open");
}

/// A retry that could only begin after the run's time is none: the run fails with what happened.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_that_would_come_too_late_is_not_waited_for() {
    let world = World::keyed().await;
    let policy = json!({ "timeouts": { "schedule_to_close": "50s" }, "retry": { "initial_interval": "60s" } });
    world.deploy("fail", "stripe", policy).await;
    let run = world.start("fail", json!({ "code": "down", "message": "m", "kind": "retryable" })).await;
    work_once(&world.node).await;
    assert_eq!(failure(&world, run).await.0, "down");
}

/// A run whose worker is lost after its time is over is not run again.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_run_whose_time_is_over_ends() {
    let world = World::keyed().await;
    world.deploy("noop", "stripe", json!({ "timeouts": { "schedule_to_close": "100s" } })).await;
    let run = world.start("noop", json!(1)).await;
    lease(world.node.store(), "lost", 1, 60_000).await;
    world.database.advance_seconds(200).await;
    world.work().await;
    assert_eq!(failure(&world, run).await.0, "timed-out");
    assert_eq!(world.outcomes(run).await, ["worker-lost"]);
}

/// F-I12, R-D31. The timers are rows: they outlive every worker.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_time_outlives_its_worker() {
    let world = World::keyed().await;
    world.deploy("fail-until", "stripe", json!({ "retry": { "initial_interval": "300s" } })).await;
    let run = world.start("fail-until", json!({ "attempt": 2 })).await;
    work_once(&world.node).await;
    assert_eq!(world.run(run).await.state, "waiting");
    let other = world.second("after the restart", deedbox::probe::none()).await;
    assert!(!other.worker().run_once().await.unwrap(), "not before its time");
    world.database.advance_seconds(301).await;
    work_once(&other).await;
    assert_eq!(world.output(run).await, json!(2));
    assert_eq!(world.outcomes(run).await, ["failed", "completed"], "every attempt is in the history");
}
