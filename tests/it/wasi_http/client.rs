//! What client libraries do by themselves: retries, calls at the same time, giving up.

use deedbox_books::Behaviour;
use serde_json::json;

use super::{SOON, arrivals, effects, error_of, fetched, post, with, world};

/// R-L10, F-B10: a retry loop inside a client sends the same effect again, not another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_retry_after_a_cut_is_the_same_effect_under_the_same_key() {
    let world = world(|_| {}).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let (run, output) = fetched(&world, &[with(post(&world.charges()), json!({ "retries": 3 }))]).await;
    assert_eq!((&output[0]["status"], &output[0]["tries"]), (&json!(201), &json!(2)), "{output}");
    let arrivals = arrivals(&world).await;
    assert_eq!(arrivals.len(), 2);
    assert_eq!(arrivals[0].key, arrivals[1].key);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
    assert_eq!(effects(&world, run).await.len(), 1);
}

/// F-B10: the client gives up by a timer of its own and calls again, while the first send goes on and is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_client_gives_up_is_not_lost_and_its_retry_is_the_same_effect() {
    let world = world(|config| config.gateway.in_flight_wait_ms = 5_000).await;
    world.script(&[Behaviour::SlowAfterApply { ms: 700 }]).await;
    let call = with(post(&world.charges()), json!({ "abandon_ms": 200, "retries": 50 }));
    let named = with(call, json!({ "headers": [["deedbox-effect", "pay"]] }));
    let (run, output) = fetched(&world, &[named]).await;
    assert_eq!(output[0]["status"], 201, "{output}");
    assert_eq!(output[0]["headers"]["deedbox-source"], "replayed");
    assert_eq!(effects(&world, run).await.len(), 1);
    assert_eq!(arrivals(&world).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_client_never_took_does_not_move_the_count() {
    let world = world(|_| {}).await;
    world.script(&[Behaviour::SlowAfterApply { ms: 500 }]).await;
    let given_up = with(post(&world.charges()), json!({ "abandon_ms": 200 }));
    // Refused as long as the first is under way.
    let again = with(post(&world.charges()), json!({ "retries": 1_000_000 }));
    let (run, output) = fetched(&world, &[given_up, again]).await;
    assert!(output[0]["error"].is_string(), "{output}");
    assert_eq!(output[1]["headers"]["deedbox-source"], "replayed", "{output}");
    assert_eq!(effects(&world, run).await.len(), 1);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_to_two_places_are_under_way_at_once() {
    let world = world(|_| {}).await;
    world.script(&[Behaviour::HoldBeforeApply, Behaviour::HoldBeforeApply]).await;
    let calls = [post(&world.charges()), post(&format!("{}/v1/refunds", world.origin()))];
    let run = world.start("fetch", json!({ "calls": calls, "together": true })).await;
    let worker = world.node.worker().clone();
    let working = tokio::spawn(async move { worker.run_once().await });
    world.books.wait_for_arrivals(2, SOON).await.unwrap();
    world.books.release().await.unwrap();
    working.await.unwrap().unwrap();
    let output = world.output(run).await;
    assert_eq!([&output[0]["status"], &output[1]["status"]], [201, 201], "{output}");
    assert_eq!(effects(&world, run).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_calls_at_one_place_at_once_the_first_is_made_and_the_second_is_told_to_take_a_name() {
    let world = world(|_| {}).await;
    world.script(&[Behaviour::SlowAfterApply { ms: 500 }]).await;
    let second = with(post(&world.charges()), json!({ "body": "{\"n\":2}" }));
    let run = world.start("fetch", json!({ "calls": [post(&world.charges()), second], "together": true })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[0]["status"], 201, "{output}");
    assert!(error_of(&output[1]).contains("a name"), "{output}");
    assert_eq!(arrivals(&world).await[0].body, "{\"n\":1}");
    assert_eq!(effects(&world, run).await.len(), 1);
}
