//! What a client gets where there is no answer to give: the fitting code of `wasi:http`.

use deedbox_books::Behaviour;
use serde_json::json;

use super::{arrivals, deploy, effects, error_of, fetched, fetched_twice, post, with, world};
use crate::harness::cell::logs;

/// F-E21.
#[tokio::test(flavor = "multi_thread")]
async fn a_denied_place_is_a_denied_request_and_the_log_says_what_to_allow() {
    let world = world(|_| {}).await;
    let (run, output) = fetched(&world, &[post("https://elsewhere.test/")]).await;
    assert!(error_of(&output[0]).contains("HttpRequestDenied"), "{output}");
    let logs = logs(&world, run).await;
    let said = logs.iter().any(|log| log.text.contains("policy.egress.allow"));
    assert!(said, "{logs:?}");
    assert!(effects(&world, run).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_not_there_is_unavailable_and_the_effect_is_released() {
    let world = world(|_| {}).await;
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let origin = format!("http://{gone}");
    deploy(&world, "stripe", json!({ "egress": { "allow": [origin] }, "providers": { &origin: "stripe" } })).await;
    let (run, output) = fetched(&world, &[post(&format!("{origin}/v1/charges"))]).await;
    assert!(error_of(&output[0]).contains("DestinationUnavailable"), "{output}");
    assert_eq!(effects(&world, run).await[0].state, "released");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_of_the_guests_is_kept() {
    let world = world(|_| {}).await;
    world.script(&[Behaviour::HoldAfterApply]).await;
    let (run, output) = fetched(&world, &[with(post(&world.charges()), json!({ "first_byte_ms": 300 }))]).await;
    assert!(error_of(&output[0]).contains("ConnectionReadTimeout"), "{output}");
    assert_eq!(effects(&world, run).await[0].state, "escaped", "unknown when the run ended");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_above_the_cap_is_an_error_and_the_effect_is_done() {
    let world = world(|config| config.gateway.max_response_bytes = 4 << 10).await;
    world.script(&[Behaviour::EndlessBody]).await;
    let (run, output) = fetched(&world, &[post(&world.charges())]).await;
    assert!(error_of(&output[0]).contains("HttpResponseBodySize"), "{output}");
    assert_eq!(effects(&world, run).await[0].state, "completed");
}

/// R-E06: an answer that was recorded without its body is an error on replay, never an empty body.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_was_not_kept_is_an_error_on_replay_and_nothing_is_sent() {
    let world = world(|config| config.gateway.max_kept_body_bytes = 8).await;
    let (run, output) = fetched_twice(&world, &[post(&world.charges())]).await;
    assert!(error_of(&output[0]).contains("has no body"), "{output}");
    assert_eq!(arrivals(&world).await.len(), 1);
    assert_eq!(world.sends(run).await.len(), 1);
}
