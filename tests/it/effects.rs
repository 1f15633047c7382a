//! Effects, from the guest to the provider's books: claims, keys, replays, refusals.

use std::time::Duration;

use deedbox_books::Behaviour;
use serde_json::{Value, json};

use crate::harness::{World, claimed};

mod business;
mod guest_keys;
mod one_key;
mod preconditions;

const SOON: Duration = Duration::from_secs(10);

fn post(url: &str, body: Value) -> Value {
    json!({ "method": "POST", "url": url, "json": body })
}

fn named(url: &str, name: &str) -> Value {
    json!({ "method": "POST", "url": url, "json": { "n": 1 }, "identity": { "named": name } })
}

/// R-D40, R-A02, R-D24.
#[tokio::test(flavor = "multi_thread")]
async fn a_charge_is_made_once_and_recorded() {
    let world = World::keyed().await;
    world.deploy_from("charge_once.wasm", "charge-once", "stripe", json!({})).await;
    let input = json!({ "order": "1042", "amount_cents": 4200, "customer": "cus_7", "provider_url": world.origin() });
    let run = world.start("charge-once", input).await;
    world.work().await;
    assert_eq!(world.output(run).await, json!({ "outcome": "charged", "charge_id": "ch_1" }));
    let applied = world.books.applied().await.unwrap();
    assert_eq!(applied.len(), 1);
    let sends = world.sends(run).await;
    assert_eq!(sends.len(), 1);
    assert_eq!(sends[0].state, "completed");
    assert_eq!(sends[0].wire_key, applied[0].key);
    assert_eq!(world.outcomes(run).await, ["completed"]);
}

/// F-B03.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_committed_before_the_provider_receives_anything() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[Behaviour::HoldBeforeApply]).await;
    let run = world.start("send", json!({ "calls": [post(&world.charges(), json!({ "a": 1 }))] })).await;
    let working = tokio::spawn({
        let worker = world.node.worker().clone();
        async move { worker.run_once().await }
    });
    world.books.wait_for_arrivals(1, SOON).await.unwrap();
    assert_eq!(claimed(&world.database).await, [("claimed".to_owned(), 1)], "seen from another session");
    world.books.release().await.unwrap();
    working.await.unwrap().unwrap();
    assert_eq!(world.output(run).await[0]["status"], 201);
}

async fn keys(world: &World) -> Vec<String> {
    world
        .books
        .arrivals()
        .await
        .unwrap()
        .into_iter()
        .map(|arrival| arrival.key.expect("every send has a key"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_run_that_the_guest_sends_itself_names_the_effect_and_is_what_the_provider_gets() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    let with_key = |key: &str| json!({ "method": "POST", "url": world.charges(), "json": { "key": key }, "headers": [["Idempotency-Key", key]] });
    let calls = [with_key("{run-key}"), with_key("{subkey:email}"), with_key("made-up-by-a-client-library")];
    let run = world.start("send", json!({ "calls": calls, "then": ["trap", "return"] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert!(output.as_array().unwrap().iter().all(|call| call["source"] == "replayed"), "{output}");
    let run_key = deedbox::key::run_key(crate::harness::TENANT, run);
    let subkey = deedbox::key::subkey(&run_key, "email").unwrap();
    let keys = keys(&world).await;
    assert_eq!(keys[..2], [run_key.text(), subkey.text()]);
    assert_ne!(keys[2], "made-up-by-a-client-library");
    assert_eq!(world.books.applied().await.unwrap().len(), 3);
}

/// F-B05.
#[tokio::test(flavor = "multi_thread")]
async fn another_request_under_a_claimed_identity_is_refused_and_not_sent() {
    for (identity, said) in [(json!({ "named": "volatile" }), "volatile"), (json!("positional"), "charges #0")] {
        let world = World::keyed().await;
        world.deploy("send", "stripe", json!({})).await;
        let call =
            json!({ "method": "POST", "url": world.charges(), "body": "attempt {attempt}", "identity": identity });
        let run = world.start("send", json!({ "calls": [call], "then": ["fail", "return"] })).await;
        assert!(world.node.worker().run_once().await.unwrap());
        let claimed = world.sends(run).await;
        world.work().await;
        let output = world.output(run).await;
        assert_eq!(output[0]["error"], "effect-mismatch", "{output}");
        assert!(output[0]["message"].as_str().unwrap().contains(said), "{output}");
        let arrivals = world.books.arrivals().await.unwrap();
        let sends = world.sends(run).await;
        assert_eq!((arrivals.len(), sends.len()), (1, 1), "nothing was sent");
        assert!(arrivals[0].key.is_some());
        assert_eq!((&sends[0].wire_key, &claimed[0].wire_key), (&arrivals[0].key, &arrivals[0].key));
    }
}

/// F-B10.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_is_one_send_and_an_unknown_outcome() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[Behaviour::Normal, Behaviour::CutAfterApply]).await;
    let calls = [named(&world.charges(), "one"), named(&world.charges(), "two"), named(&world.charges(), "two")];
    let run = world.start("send", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[1]["error"], "connection-lost", "{output}");
    assert_eq!(output[2]["status"], 201, "{output}");
    assert_eq!(world.books.arrivals().await.unwrap().len(), 3, "one arrival a send");
    assert_eq!(world.books.applied().await.unwrap().len(), 2);
    let results: Vec<_> = world.sends(run).await.into_iter().map(|send| send.result.unwrap()).collect();
    assert_eq!(results, ["answered", "unknown", "answered"]);
}

/// R-A06, R-D27, R-E14, R-L17, R-L26.
#[tokio::test(flavor = "multi_thread")]
async fn a_finished_effect_replays_its_answer_in_the_next_attempt() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    let declined = format!("{}/v1/declined", world.origin());
    let calls = [post(&world.charges(), json!({ "n": 1 })), post(&declined, json!({ "n": 1 }))];
    let run = world.start("send", json!({ "calls": calls, "then": ["trap", "return"] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!((output[0]["source"].as_str(), output[0]["status"].as_u64()), (Some("replayed"), Some(201)));
    assert_eq!((output[1]["source"].as_str(), output[1]["status"].as_u64()), (Some("replayed"), Some(402)));
    assert!(output[1]["body"].as_str().unwrap().contains("card_declined"));
    assert_eq!(world.books.arrivals().await.unwrap().len(), 2);
    assert_eq!(world.outcomes(run).await, ["trap", "completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_calls_at_one_place_are_counted_apart_and_replayed_in_order() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    let calls = vec![post(&world.charges(), json!({ "n": 1 })); 3];
    let run = world.start("send", json!({ "calls": calls, "then": ["fail", "return"] })).await;
    world.work().await;
    let ids: Vec<String> = world.output(run).await.as_array().unwrap().iter().map(charge_id).collect();
    assert_eq!(ids, ["ch_1", "ch_2", "ch_3"]);
    assert_eq!(world.books.applied().await.unwrap().len(), 3);
}

fn charge_id(call: &Value) -> String {
    let body: Value = serde_json::from_str(call["body"].as_str().unwrap()).unwrap();
    body["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_loop_in_the_body_sends_the_same_effect_again() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[Behaviour::CutAfterApply, Behaviour::CutAfterApply]).await;
    let mut call = post(&world.charges(), json!({ "n": 1 }));
    call["repeat"] = json!(5);
    let run = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["calls"], 3);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_that_name_one_business_operation_share_one_effect() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    let call = json!({ "method": "POST", "url": world.charges(), "json": { "n": 1 }, "identity": { "business": ["charge", "42"] } });
    let first = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    let second = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    let (first, second) = (world.output(first).await, world.output(second).await);
    assert_eq!(first[0]["effect_id"], second[0]["effect_id"]);
    assert_eq!((first[0]["source"].as_str(), second[0]["source"].as_str()), (Some("sent"), Some("replayed")));
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1);
}

/// R-L09.
#[tokio::test(flavor = "multi_thread")]
async fn a_keyless_provider_that_did_not_answer_leaves_an_open_question() {
    let world = World::keyless().await;
    world.deploy("send", "keyless", json!({})).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let run = world.start("send", json!({ "calls": [post(&world.charges(), json!({ "n": 1 }))] })).await;
    world.work().await;
    let found = world.run(run).await;
    assert_eq!(found.state, "waiting");
    assert!(found.waiting_effect.is_some() && found.due_at.is_none());
    assert_eq!(world.sends(run).await[0].state, "escaped");
    assert_eq!(world.outcomes(run).await, ["suspended"]);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_nobody_vouches_for_is_sent_and_not_relied_upon() {
    let world = World::keyed().await;
    world.deploy("send", "unlisted", json!({})).await;
    world.script(&[Behaviour::CutBeforeApply]).await;
    let run = world.start("send", json!({ "calls": [post(&world.charges(), json!({ "n": 1 }))] })).await;
    world.work().await;
    assert_eq!(world.run(run).await.state, "waiting");
    assert!(world.books.arrivals().await.unwrap()[0].key.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_choice_for_unknown_outcomes_is_followed() {
    let world = World::keyless().await;
    world.deploy("send", "keyless", json!({})).await;
    world.script(&[Behaviour::CutAfterApply, Behaviour::CutAfterApply]).await;
    let call = |choice: &str, name: &str| {
        let mut call = named(&world.charges(), name);
        call["on_unknown"] = json!(choice);
        call["repeat"] = json!(1);
        call
    };
    let calls = [call("at-most-once", "once"), call("at-least-once", "twice")];
    let run = world.start("send", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[0]["error"], "outcome-unknown", "{output}");
    assert_eq!(output[1]["status"], 201, "{output}");
    assert_eq!(world.books.applied().await.unwrap().len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_surely_was_not_processed_is_sent_again_even_without_a_key() {
    let world = World::keyless().await;
    world.deploy("send", "keyless", json!({ "retry": { "max_attempts": 2 } })).await;
    world.script(&[Behaviour::StatusBeforeApply { status: 429, retry_after: Some(1), body: None }]).await;
    let call = post(&world.charges(), json!({ "n": 1 }));
    let run = world.start("send", json!({ "calls": [call, call] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!((output[0]["status"].as_u64(), output[1]["status"].as_u64()), (Some(429), Some(201)));
    assert_eq!(output[0]["effect_id"], output[1]["effect_id"]);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_cannot_be_reached_leaves_the_effect_released() {
    let world = World::keyed().await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let origin = format!("http://{nobody}");
    world.deploy("send", "stripe", json!({ "egress": { "allow": [origin] } })).await;
    let run = world.start("send", json!({ "calls": [post(&format!("{origin}/x"), json!({}))] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[0]["error"], "unreachable", "{output}");
    let sends = world.sends(run).await;
    assert_eq!((sends[0].state.as_str(), sends[0].result.as_deref()), ("released", Some("not-applied")));
}

/// R-D09, R-D11, R-E05, R-L01.
#[tokio::test(flavor = "multi_thread")]
async fn reads_pass_through_unclaimed_and_idempotent_methods_are_sent_again() {
    let world = World::keyless().await;
    world.deploy("send", "keyless", json!({})).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let put = json!({ "method": "PUT", "url": world.charges(), "json": { "n": 1 }, "repeat": 1 });
    let get = json!({ "method": "GET", "url": world.charges() });
    let run = world.start("send", json!({ "calls": [put, get] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!((output[0]["status"].as_u64(), output[0]["calls"].as_u64()), (Some(201), Some(2)));
    assert_eq!((output[1]["status"].as_u64(), output[1]["effect_id"].as_str()), (Some(200), None));
    assert_eq!(world.sends(run).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_flight_leaves_the_effect_claimed_under_its_key() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[Behaviour::InFlight, Behaviour::InFlight]).await;
    let mut call = post(&world.charges(), json!({ "n": 1 }));
    call["repeat"] = json!(2);
    let run = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["status"], 201);
    let results: Vec<_> = world.sends(run).await.into_iter().map(|send| send.result.unwrap()).collect();
    assert_eq!(results, ["in-flight", "in-flight", "answered"]);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_answer_is_had_again_where_that_is_safe_and_its_status_is_kept_where_not() {
    for (world, profile, second) in
        [(World::keyed().await, "stripe", "sent"), (World::keyless().await, "keyless", "replayed")]
    {
        world.deploy("send", profile, json!({})).await;
        world.script(&[Behaviour::LyingLength]).await;
        let call = named(&world.charges(), "cut");
        let run = world.start("send", json!({ "calls": [call, call] })).await;
        world.work().await;
        let output = world.output(run).await;
        assert_eq!(output[0]["error"], "connection-lost", "{output}");
        assert_eq!(output[1]["source"], second, "{output}");
        assert_eq!(output[1]["not_kept"], second == "replayed", "{output}");
        assert_eq!(world.books.applied().await.unwrap().len(), 1);
    }
}

/// R-D42, F-E17.
#[tokio::test(flavor = "multi_thread")]
async fn an_endless_answer_is_cut_at_the_cap_and_the_effect_is_done() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[Behaviour::EndlessBody]).await;
    let call = named(&world.charges(), "endless");
    let run = world.start("send", json!({ "calls": [call, call] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[0]["error"], "response-too-large", "{output}");
    assert_eq!(
        (output[1]["source"].as_str(), output[1]["not_kept"].as_bool()),
        (Some("replayed"), Some(true)),
        "{output}"
    );
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1);
}
