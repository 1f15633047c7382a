//! Reserved request headers: they name effects, over both interfaces, and never reach the wire.

use serde_json::{Value, json};

use super::{arrivals, deploy, effects, error_of, fetched, fetched_twice, post, with, world};
use crate::harness::World;

fn headed(world: &World, headers: Value) -> Value {
    with(post(&world.charges()), json!({ "headers": headers }))
}

/// R-E05.
#[tokio::test(flavor = "multi_thread")]
async fn a_header_names_the_effect_and_is_not_on_the_wire() {
    let world = world(|_| {}).await;
    let calls =
        [headed(&world, json!([["Deedbox-Effect", "pay"]])), headed(&world, json!([["deedbox-effect", "fee"]]))];
    let (run, output) = fetched_twice(&world, &calls).await;
    assert_eq!(output[1]["headers"]["deedbox-source"], "replayed", "{output}");
    let mut names: Vec<_> = effects(&world, run).await.into_iter().map(|effect| effect.identity).collect();
    names.sort();
    assert_eq!(names, ["fee", "pay"]);
    let arrivals = arrivals(&world).await;
    assert_eq!(arrivals.len(), 2);
    let reserved = |arrival: &deedbox_books::Arrival| arrival.headers.iter().any(|(name, _)| name.contains("deedbox"));
    assert!(!arrivals.iter().any(reserved), "{arrivals:?}");
}

/// R-E05: one business effect for two runs.
#[tokio::test(flavor = "multi_thread")]
async fn two_headers_make_a_business_effect_that_other_runs_share() {
    let world = world(|_| {}).await;
    let headers = json!([["deedbox-business-operation", "charge"], ["deedbox-business-key", "order-7"]]);
    let call = headed(&world, headers);
    let (_, first) = fetched(&world, std::slice::from_ref(&call)).await;
    let (_, second) = fetched(&world, &[call]).await;
    assert_eq!(first[0]["headers"]["deedbox-source"], "sent");
    assert_eq!(second[0]["headers"]["deedbox-source"], "replayed");
    assert_eq!(arrivals(&world).await.len(), 1);
}

/// R-E05.
#[tokio::test(flavor = "multi_thread")]
async fn a_header_says_what_becomes_of_an_unknown_outcome() {
    let world = world(|_| {}).await;
    deploy(&world, "keyless", json!({})).await;
    world.script(&[deedbox_books::Behaviour::CutAfterApply]).await;
    let (run, output) = fetched(&world, &[headed(&world, json!([["deedbox-on-unknown", "at-most-once"]]))]).await;
    assert!(error_of(&output[0]).contains("outcome unknown"), "{output}");
    assert_eq!(effects(&world, run).await[0].state, "escaped");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reserved_header_that_is_not_known_is_refused_with_those_that_are() {
    let world = world(|_| {}).await;
    let (run, output) = fetched(&world, &[headed(&world, json!([["deedbox-efect", "pay"]]))]).await;
    let error = error_of(&output[0]);
    for known in ["deedbox-effect", "deedbox-business-operation", "deedbox-business-key", "deedbox-on-unknown"] {
        assert!(error.contains(known), "{error}");
    }
    assert!(effects(&world, run).await.is_empty() && arrivals(&world).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_headers_work_the_same_over_the_interface_of_deedbox() {
    let world = world(|_| {}).await;
    world.deploy("send", "stripe", json!({})).await;
    let call = |headers: Value, identity: Value| json!({ "method": "POST", "url": world.charges(), "json": {}, "headers": headers, "identity": identity });
    let calls = [
        call(json!([["deedbox-effect", "pay"]]), json!("positional")),
        call(json!([["deedbox-effect", "pay"]]), json!({ "named": "other" })),
        call(json!([["deedbox-what", "pay"]]), json!("positional")),
    ];
    let run = world.start("send", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[0]["status"], 201, "{output}");
    assert_eq!([&output[1]["error"], &output[2]["error"]], ["invalid-request"; 2], "{output}");
    assert_eq!(effects(&world, run).await[0].identity, "pay");
    assert_eq!(arrivals(&world).await.len(), 1);
}
