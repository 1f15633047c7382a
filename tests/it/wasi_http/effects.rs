//! An effect over `wasi:http` is claimed, keyed, credentialed, recorded and replayed like any other.

use deedbox_books::Behaviour;
use serde_json::json;

use super::{SOON, arrivals, deploy, effects, fetched, fetched_twice, post, with, world};
use crate::harness::{TENANT, World, claimed};

/// R-E04, R-L02.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_claimed_before_the_provider_receives_anything() {
    let world = world(|_| {}).await;
    world.script(&[Behaviour::HoldBeforeApply]).await;
    let run = world.start("fetch", json!({ "calls": [post(&world.charges())] })).await;
    let worker = world.node.worker().clone();
    let working = tokio::spawn(async move { worker.run_once().await });
    world.books.wait_for_arrivals(1, SOON).await.unwrap();
    assert_eq!(claimed(&world.database).await, [("claimed".to_owned(), 1)], "seen from another session");
    world.books.release().await.unwrap();
    working.await.unwrap().unwrap();
    assert_eq!(world.output(run).await[0]["status"], 201);
}

/// R-E05, R-L08: the key on the wire is the ledger's, and the credential is the tenant's.
#[tokio::test(flavor = "multi_thread")]
async fn it_carries_the_wire_key_and_the_credential_and_says_where_its_answer_is_from() {
    let world = world(|_| {}).await;
    world.node.gateway().vault().put(TENANT, "key", "sk_test_4242").await.unwrap();
    deploy(&world, "stripe", json!({ "credentials": { "stripe": { "secret": "key", "account": "main" } } })).await;
    let own = json!([["authorization", "Bearer guest"], ["idempotency-key", "made-up"], ["te", "trailers"]]);
    let (run, output) = fetched(&world, &[with(post(&world.charges()), json!({ "headers": own }))]).await;
    assert_eq!(output[0]["status"], 201, "{output}");
    let [effect] = effects(&world, run).await.try_into().unwrap();
    let [arrival] = arrivals(&world).await.try_into().unwrap();
    assert!(arrival.key.is_some());
    assert_eq!(arrival.key, effect.wire_key);
    assert_eq!(arrival.header("authorization"), Some("Bearer sk_test_4242"));
    assert_eq!(arrival.header("te"), None, "it belongs to the host");
    assert_eq!((arrival.body.as_str(), arrival.header("content-length")), ("{\"n\":1}", Some("7")));
    let headers = &output[0]["headers"];
    assert_eq!(headers["deedbox-source"], "sent");
    assert_eq!(headers["deedbox-effect-id"], crate::harness::cell::hex(&effect.effect_id));
}

/// R-E04.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_not_claimed() {
    let world = world(|_| {}).await;
    let get = json!({ "method": "GET", "url": format!("{}/v1/charges", world.origin()) });
    let (run, output) = fetched(&world, &[get]).await;
    assert!(output[0]["status"].is_u64(), "{output}");
    assert_eq!(output[0]["headers"]["deedbox-effect-id"], json!(null));
    assert!(effects(&world, run).await.is_empty());
    assert_eq!(arrivals(&world).await.len(), 1);
}

/// R-E06, R-L10, F-E12.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_attempt_gets_the_recorded_answer_and_sends_nothing() {
    let world = world(|_| {}).await;
    let other = format!("{}/v1/refunds", world.origin());
    let (run, output) = fetched_twice(&world, &[post(&world.charges()), post(&other), post(&world.charges())]).await;
    let sources: Vec<_> = (0..3).map(|at| output[at]["headers"]["deedbox-source"].clone()).collect();
    assert_eq!(sources, ["replayed"; 3], "{output}");
    assert_eq!(arrivals(&world).await.len(), 3, "two calls at one place are two effects once the first was answered");
    assert_eq!(effects(&world, run).await.len(), 3);
    assert_eq!(world.sends(run).await.len(), 3);
}

/// F-B10: the attempt dies in the middle of a send; the next one sends again under the same key.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_is_cut_off_is_followed_by_one_under_the_same_key() {
    let world = world(|_| {}).await;
    deploy(&world, "stripe", json!({ "timeouts": { "start_to_close": "1s" } })).await;
    world.script(&[Behaviour::HoldAfterApply]).await;
    // The provider may be busy with the first send still when the second comes.
    let (run, output) = fetched(&world, &[with(post(&world.charges()), json!({ "retries": 1_000 }))]).await;
    assert_eq!(output[0]["status"], 201, "{output}");
    let keys: Vec<_> = arrivals(&world).await.into_iter().map(|arrival| arrival.key).collect();
    assert!(keys.len() >= 2 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
    assert_eq!(world.outcomes(run).await, ["timed-out", "completed"]);
}

/// R-L10: the guest is not asked; its attempt ends inside the call.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_outcome_suspends_the_run() {
    let world = world(|_| {}).await;
    deploy(&world, "keyless", json!({})).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let run = world.start("fetch", json!({ "calls": [post(&world.charges())] })).await;
    world.work().await;
    let [effect] = effects(&world, run).await.try_into().unwrap();
    assert_eq!(effect.state, "escaped");
    let run_now = world.run(run).await;
    assert_eq!((run_now.state.as_str(), run_now.waiting_effect), ("waiting", Some(effect.effect_id)));
    assert_eq!(world.outcomes(run).await, ["suspended"]);
}

/// One provider wants a pause, so that the run rests; the call to another that is under way ends by itself, and does not
/// become an open question.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_for_one_call_does_not_cut_another_that_is_under_way() {
    let world = World::keyless().await;
    let busy = "http://127.0.0.1:9";
    let policy = json!({
        "egress": { "allow": [world.origin(), busy] },
        "providers": { world.origin(): "keyless", busy: "stripe" },
    });
    deploy(&world, "keyless", policy).await;
    deedbox::store::rate::block(world.node.store(), TENANT, "stripe", "", 3_600_000).await.unwrap();
    world.script(&[Behaviour::SlowAfterApply { ms: 800 }]).await;
    let calls = [post(&world.charges()), post(&format!("{busy}/v1/charges"))];
    let run = world.start("fetch", json!({ "calls": calls, "together": true })).await;
    crate::harness::work_once(&world.node).await;
    assert_eq!(world.outcomes(run).await, ["deferred"]);
    let made = effects(&world, run).await;
    assert_eq!(made.iter().map(|effect| effect.state.as_str()).collect::<Vec<_>>(), ["completed"]);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}
