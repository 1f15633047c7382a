//! Starts that come later, and starts that go first: no run begins before its time, and of those that are ready the
//! priority decides.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};

use super::{Api, run_of, start};

async fn noops() -> Api {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    api
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_does_not_begin_before_its_time() {
    let an_hour = json!((Utc::now() + TimeDelta::hours(1)).to_rfc3339());
    for when in [json!({ "delay": "1h" }), json!({ "start_at": an_hour })] {
        let api = noops().await;
        let mut body = when.clone();
        body["input"] = json!("later");
        let answer = start(&api.acme, "noop", &body).await;
        assert_eq!(answer.expect(201)["state"], "queued");
        let run = run_of(&answer);
        let shown = api.run(&run).await;
        assert_eq!((&shown["state"], &shown["started_at"]), (&json!("queued"), &Value::Null));
        assert_ne!(shown["due_at"], Value::Null, "{when}");
        api.world.work().await;
        assert!(api.outcomes(&run).await.is_empty(), "{when}");
        api.world.database.advance_seconds(3_000).await;
        api.world.work().await;
        assert!(api.outcomes(&run).await.is_empty(), "{when}");
        api.world.database.advance_seconds(3_610).await;
        api.work().await;
        assert_eq!(api.ended(&run).await["output"], "later");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_that_has_passed_is_now() {
    let api = noops().await;
    let past = (Utc::now() - TimeDelta::days(1_000)).to_rfc3339();
    for body in [json!({ "start_at": past }), json!({ "delay": "0s" })] {
        let run = run_of(&start(&api.acme, "noop", &body).await);
        let shown = api.run(&run).await;
        assert_eq!(shown["due_at"], shown["created_at"], "it is ready: {shown}");
        api.work().await;
        assert_eq!(api.ended(&run).await["state"], "completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_must_be_one_and_within_a_year() {
    let api = noops().await;
    let at = |days: i64| json!((Utc::now() + TimeDelta::days(days)).to_rfc3339());
    let wrong = [
        json!({ "delay": "1h", "start_at": at(1) }),
        json!({ "delay": "367days" }),
        json!({ "start_at": at(367) }),
        json!({ "start_at": "9999-12-31T00:00:00Z" }),
        json!({ "start_at": "tomorrow" }),
        json!({ "start_at": 1_700_000_000 }),
        json!({ "delay": "soon" }),
        json!({ "delay": "-1s" }),
        json!({ "delay": 60 }),
        json!({ "delay": "18446744073709551615s" }),
    ];
    for body in wrong {
        start(&api.acme, "noop", &body).await.refused(400, "validation_error");
    }
    for body in [json!({ "delay": "365days" }), json!({ "start_at": at(365) })] {
        start(&api.acme, "noop", &body).await.expect(201);
    }
}

/// A run that waits for its time can be paused, resumed and cancelled like any other.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_not_come_to_its_time_is_cancelled_at_once() {
    let api = noops().await;
    let run = run_of(&start(&api.acme, "noop", &json!({ "delay": "1h" })).await);
    let due = api.run(&run).await["due_at"].clone();
    super::order(&api.acme, &run, "pause").await.expect(200);
    let resumed = super::order(&api.acme, &run, "resume").await.expect(200);
    assert_eq!((&resumed["state"], &resumed["due_at"]), (&json!("queued"), &due), "its time has not come");
    assert_eq!(super::order(&api.acme, &run, "cancel").await.expect(200)["state"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ready_runs_the_one_of_the_first_priority_begins_first() {
    let api = noops().await;
    let mut runs = Vec::new();
    for (priority, expected) in [(json!(9), 9), (Value::Null, 5), (json!(1), 1)] {
        let run = run_of(&start(&api.acme, "noop", &json!({ "priority": priority })).await);
        assert_eq!(api.run(&run).await["priority"], expected);
        runs.push(run);
    }
    for run in runs.iter().rev() {
        assert_eq!(api.run(run).await["state"], "queued");
        assert!(api.world.node.worker().run_once().await.unwrap());
        assert_eq!(api.run(run).await["state"], "completed");
    }
    for wrong in [json!(0), json!(10), json!(-1), json!(1.5), json!("1"), json!(100_000)] {
        start(&api.acme, "noop", &json!({ "priority": wrong })).await.refused(400, "validation_error");
    }
}
