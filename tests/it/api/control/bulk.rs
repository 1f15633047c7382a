//! Cancelling many runs at once: exactly those that fit all that is said. Nobody else's, and never all of them by
//! leaving something out.

use std::time::Duration;

use deedbox_books::Behaviour;
use serde_json::{Value, json};

use super::super::client::Client;
use super::{Answer, Api, run_of, start};

async fn cancel_many(client: &Client, body: &Value) -> Answer {
    client.post("/v1/runs/cancel", body).await
}

fn done(cancelled: usize, requested: usize, more: bool) -> Value {
    json!({ "cancelled": cancelled, "requested": requested, "more": more })
}

/// The states of these runs.
async fn states(api: &Api, runs: &[&String]) -> Vec<String> {
    let mut states = Vec::new();
    for run in runs {
        states.push(api.run(run).await["state"].as_str().unwrap().to_owned());
    }
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_cancelled_by_activity_by_label_and_by_state() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    api.deploy("listen", json!({})).await;
    let waiting = api.start("listen", json!({ "asks": [{ "wait": { "name": "go" } }] })).await;
    api.work().await;
    let queued = api.start("listen", json!({ "asks": [] })).await;
    let plain = api.start("noop", json!(1)).await;
    let labelled = |value: &str| json!({ "input": 1, "labels": { "shop": value, "kind": "test" } });
    let mine = run_of(&start(&api.acme, "noop", &labelled("7")).await);
    let theirs = run_of(&start(&api.acme, "noop", &labelled("8")).await);
    let all = [&waiting, &queued, &plain, &mine, &theirs];

    let both = json!({ "label": "shop:7", "activity": "listen" });
    assert_eq!(cancel_many(&api.acme, &both).await.expect(200), done(0, 0, false), "all that is said must fit");
    let body = json!({ "label": "shop:7", "reason": "the shop is closed" });
    assert_eq!(cancel_many(&api.acme, &body).await.expect(200), done(1, 0, false));
    assert_eq!(states(&api, &all).await, ["waiting", "queued", "queued", "cancelled", "queued"]);
    assert_eq!(api.run(&mine).await["cancel_reason"], "the shop is closed");
    assert_eq!(cancel_many(&api.acme, &body).await.expect(200), done(0, 0, false));

    let body = json!({ "activity": "listen", "state": "waiting" });
    assert_eq!(cancel_many(&api.acme, &body).await.expect(200), done(1, 0, false));
    assert_eq!(states(&api, &all).await, ["cancelled", "queued", "queued", "cancelled", "queued"]);
    assert_eq!(cancel_many(&api.acme, &json!({ "activity": "noop" })).await.expect(200), done(2, 0, false));
    assert_eq!(states(&api, &all).await, ["cancelled", "queued", "cancelled", "cancelled", "cancelled"]);
    assert_eq!(cancel_many(&api.acme, &json!({ "state": "queued" })).await.expect(200), done(1, 0, false));
    assert_eq!(states(&api, &all).await, ["cancelled"; 5]);
}

/// Runs that were started after the order was thought of are not caught by it.
#[tokio::test(flavor = "multi_thread")]
async fn runs_are_cancelled_up_to_a_time_oldest_first_and_in_parts() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let mut runs = Vec::new();
    for n in 0..6 {
        runs.push(api.start("noop", json!(n)).await);
    }
    let until = api.run(&runs[4]).await["created_at"].clone();
    let body = json!({ "created_before": until, "limit": 2 });
    let all: Vec<&String> = runs.iter().collect();
    let mut expected = ["queued"; 6];
    for (count, more) in [(2, true), (2, true), (1, false), (0, false)] {
        assert_eq!(cancel_many(&api.acme, &body).await.expect(200), done(count, 0, more));
        let next = expected.iter().position(|state| *state == "queued").unwrap();
        expected[next..next + count].fill("cancelled");
        assert_eq!(states(&api, &all).await, expected);
    }
    let ended_first = api.run(&runs[0]).await["ended_at"].clone();
    let early = json!({ "created_before": ended_first, "activity": "noop", "limit": 1_000 });
    let caught = cancel_many(&api.acme, &early).await.expect(200);
    assert_eq!(caught, done(1, 0, false), "all six were there when the first was cancelled");
}

/// F-C15.
#[tokio::test(flavor = "multi_thread")]
async fn running_runs_are_asked_to_stop_and_counted_apart() {
    let api = Api::idle().await;
    api.deploy("send", api.policy("stripe")).await;
    api.world.script(&[Behaviour::HoldBeforeApply]).await;
    let running = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    api.begin_working();
    api.world.books.wait_for_arrivals(1, Duration::from_secs(20)).await.unwrap();
    let later = json!({ "input": { "calls": [] }, "delay": "1h" });
    let queued = run_of(&start(&api.acme, "send", &later).await);
    let body = json!({ "activity": "send", "reason": "all of them" });
    assert_eq!(cancel_many(&api.acme, &body).await.expect(200), done(1, 1, false));
    for run in [&running, &queued] {
        let ended = api.ended(run).await;
        assert_eq!((&ended["state"], &ended["cancel_reason"]), (&json!("cancelled"), &json!("all of them")));
    }
    assert_eq!(api.effects_of(&running).await[0]["state"], "escaped");
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_other_tenants_are_never_caught() {
    let api = Api::idle().await;
    let version = api.deploy("noop", json!({})).await;
    let other = api.tenant("other").await;
    let uploaded = other.upload(crate::harness::component(super::super::GUESTS)).await.expect(201);
    assert_eq!(uploaded["digest"], version["module"]);
    other.put("/v1/activities/noop", &json!({ "module": version["module"] })).await.expect(201);
    let body = json!({ "input": 1, "labels": { "shop": "7" } });
    let theirs = run_of(&start(&other, "noop", &body).await);
    let mine = run_of(&start(&api.acme, "noop", &body).await);
    let orders = [
        json!({ "label": "shop:7" }),
        json!({ "activity": "noop" }),
        json!({ "state": "queued" }),
        json!({ "created_before": (chrono::Utc::now() + chrono::TimeDelta::hours(1)).to_rfc3339() }),
    ];
    for (n, order) in orders.iter().enumerate() {
        let caught = cancel_many(&api.acme, order).await.expect(200);
        assert_eq!(caught["cancelled"], if n == 0 { 1 } else { 0 }, "{order}: {caught}");
        assert_eq!(other.get(&format!("/v1/runs/{theirs}")).await.expect(200)["state"], "queued", "{order}");
    }
    assert_eq!(api.run(&mine).await["state"], "cancelled");
    api.admin().await.post("/v1/runs/cancel", &orders[2]).await.refused(403, "forbidden");
    api.nobody().post("/v1/runs/cancel", &orders[2]).await.refused(401, "unauthenticated");
}

/// Nobody cancels everything by leaving something out.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_does_not_say_which_runs_is_refused() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    let wrong = [
        json!({}),
        json!({ "reason": "x" }),
        json!({ "limit": 10 }),
        json!({ "activity": null }),
        json!({ "activity": "a b" }),
        json!({ "state": "completed" }),
        json!({ "state": "" }),
        json!({ "label": "shop" }),
        json!({ "label": "a b:x" }),
        json!({ "created_before": "yesterday" }),
        json!({ "activity": "noop", "limit": 0 }),
        json!({ "activity": "noop", "limit": -1 }),
        json!({ "activity": "noop", "limit": 1_001 }),
        json!({ "activity": "noop", "reason": "x".repeat(1_025) }),
        json!({ "activity": "noop", "colour": 1 }),
    ];
    for body in wrong {
        cancel_many(&api.acme, &body).await.refused(400, "validation_error");
    }
    assert_eq!(api.run(&run).await["state"], "queued");
}
