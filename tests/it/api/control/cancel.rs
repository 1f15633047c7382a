//! Cancelling one run: at once where no worker has it, and soon where one has. Nothing of it reaches a provider after
//! that, and what was under way stays a question.

use std::time::Duration;

use deedbox_books::{Behaviour, Options};
use serde_json::{Value, json};

use super::{Api, assert_own_only, between_attempts, ended_as, order};
use crate::harness::{World, config};

const SOON: Duration = Duration::from_secs(20);

async fn cancel(api: &Api, run: &str, body: Value) -> super::Answer {
    api.acme.post(&format!("/v1/runs/{run}/cancel"), &body).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_no_worker_has_is_cancelled_at_once() {
    let api = Api::idle().await;
    api.deploy("listen", json!({})).await;
    let waiting = api.start("listen", json!({ "asks": [{ "wait": { "name": "go" } }] })).await;
    api.work().await;
    assert_eq!(api.run(&waiting).await["state"], "waiting");
    api.deploy("noop", json!({})).await;
    let queued = api.start("noop", json!(1)).await;
    for run in [&waiting, &queued] {
        let shown = cancel(&api, run, json!({ "reason": "ordered twice" })).await.expect(200);
        assert_eq!(shown, api.run(run).await);
        assert_eq!((&shown["state"], &shown["cancel_reason"]), (&json!("cancelled"), &json!("ordered twice")));
        assert_eq!((&shown["cancel_requested"], &shown["due_at"]), (&json!(true), &Value::Null));
        assert_eq!((&shown["waiting_for"], &shown["failure"]), (&Value::Null, &Value::Null));
        assert_ne!(shown["ended_at"], Value::Null);
        // Again is no fault, and changes nothing.
        assert_eq!(cancel(&api, run, json!({ "reason": "another" })).await.expect(200), shown);
        assert_eq!(order(&api.acme, run, "cancel").await.expect(200), shown);
    }
    api.world.work().await;
    for (run, attempts) in [(&waiting, 1), (&queued, 0)] {
        assert_eq!(api.outcomes(run).await.len(), attempts, "nothing of it runs any more");
    }
}

/// F-C15. The next call of the guest would follow the one that is held.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_run_is_stopped_and_nothing_of_it_reaches_the_provider_any_more() {
    let api = Api::idle().await;
    api.deploy("send", api.policy("stripe")).await;
    api.world.script(&[Behaviour::HoldBeforeApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a"), api.charge("b")] })).await;
    api.begin_working();
    api.world.books.wait_for_arrivals(1, SOON).await.unwrap();
    let asked = cancel(&api, &run, json!({ "reason": "stop" })).await;
    assert_eq!(
        (&asked.expect(202)["cancel_requested"], &asked.json()["cancel_reason"]),
        (&json!(true), &json!("stop"))
    );
    let ended = api.ended(&run).await;
    assert_eq!((&ended["state"], &ended["output"]), (&json!("cancelled"), &Value::Null), "{ended}");
    assert_eq!(api.outcomes(&run).await, ["cancelled"]);
    let effects = api.effects_of(&run).await;
    assert_eq!((effects.len(), &effects[0]["state"]), (1, &json!("escaped")), "what became of it is not known");
    api.world.books.release().await.unwrap();

    // Whatever was under way would have arrived before this one.
    let after = api.start("send", json!({ "calls": [api.charge("after")] })).await;
    assert_eq!(api.ended(&after).await["state"], "completed");
    assert_eq!(api.world.books.arrivals().await.unwrap().len(), 2);
    assert_eq!(cancel(&api, &run, json!({})).await.expect(200)["cancel_reason"], "stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_spins_is_stopped_too() {
    let api = Api::idle().await;
    api.deploy("spin", json!({})).await;
    let run = api.start("spin", json!(1)).await;
    api.begin_working();
    api.until_state(&run, "running").await;
    order(&api.acme, &run, "cancel").await.expect(202);
    assert_eq!(api.ended(&run).await["state"], "cancelled");
    assert_eq!(api.outcomes(&run).await, ["cancelled"]);
}

/// A guest that ends by itself when it is asked to stop has done its work, and the run says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_returns_when_it_is_asked_to_stop_completes_its_run() {
    let mut patient = config();
    patient.host.stop_ms = 20_000;
    let world = World::with(Options { keyless: false, convention: None }, patient).await;
    let api = Api::with(world, config()).await;
    api.deploy("wait-cancelled", json!({})).await;
    let run = api.start("wait-cancelled", json!(1)).await;
    api.begin_working();
    api.until_state(&run, "running").await;
    order(&api.acme, &run, "cancel").await.expect(202);
    let ended = api.ended(&run).await;
    assert_eq!((&ended["state"], &ended["output"]), (&json!("completed"), &json!(true)), "{ended}");
}

/// Whoever waits for the end hears of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_is_told_to_those_who_wait_for_its_end() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    let waiting = tokio::spawn({
        let (acme, path) = (api.acme.clone(), format!("/v1/runs/{run}?wait=30"));
        async move { acme.get(&path).await.expect(200) }
    });
    order(&api.acme, &run, "cancel").await.expect(200);
    assert_eq!(waiting.await.unwrap()["state"], "cancelled");
}

/// F-C15.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_ended_otherwise_cannot_be_cancelled() {
    let api = Api::idle().await;
    for state in ["completed", "failed"] {
        let run = ended_as(&api, state).await;
        let before = api.run(&run).await;
        let refused = cancel(&api, &run, json!({ "reason": "late" })).await.refused(409, "run_terminal");
        assert_eq!(refused["details"], json!({ "runStatus": state }));
        assert_eq!(api.run(&run).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_cancels_a_run() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    assert_own_only(&api, &run, "cancel").await;
    order(&api.acme, &run, "cancel").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reason_is_short_and_the_body_is_understood_or_refused() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    let wrong = [
        json!({ "reason": "x".repeat(1_025) }),
        json!({ "reason": 1 }),
        json!({ "reasons": "x" }),
        json!([]),
        json!("x"),
    ];
    for body in wrong {
        cancel(&api, &run, body).await.refused(400, "validation_error");
    }
    let path = format!("/v1/runs/{run}/cancel");
    let answer = api.acme.raw(reqwest::Method::POST, &path, Some("text/plain"), b"{}".to_vec()).await;
    answer.refused(415, "unsupported_media_type");
    assert_eq!(api.run(&run).await["state"], "queued");
    let longest = "x".repeat(1_024);
    assert_eq!(cancel(&api, &run, json!({ "reason": longest })).await.expect(200)["cancel_reason"], json!(longest));
    // A text that no column could hold as it is.
    let second = api.start("noop", json!(1)).await;
    assert_eq!(cancel(&api, &second, json!({ "reason": "a\0b" })).await.expect(200)["cancel_reason"], "a\u{fffd}b");
}

/// Nobody sends it again, and nobody knows whether it happened: that stays a question.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_cancelled_between_two_attempts_leaves_its_claimed_effect_escaped() {
    let api = Api::idle().await;
    let run = between_attempts(&api, Behaviour::CutAfterApply).await;
    assert_eq!(cancel(&api, &run, json!({})).await.expect(200)["state"], "cancelled");
    let effect = api.effects_of(&run).await.remove(0);
    assert_eq!(effect["state"], "escaped", "{effect}");
    assert_ne!(effect["settled_at"], Value::Null);
    api.world.database.advance_seconds(61).await;
    api.world.work().await;
    assert_eq!(api.outcomes(&run).await, ["failed"]);
    assert_eq!(api.world.books.arrivals().await.unwrap().len(), 1);
    let said = json!({ "outcome": "happened", "note": "seen in the dashboard" });
    let path = format!("/v1/effects/{}/resolve", effect["effect_id"].as_str().unwrap());
    assert_eq!(api.acme.post(&path, &said).await.expect(200)["state"], "completed");
    assert_eq!(api.run(&run).await["state"], "cancelled");
}
