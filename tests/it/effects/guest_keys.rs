//! Keys that a guest puts into a request itself.

use deedbox_books::{Convention, Options};
use serde_json::{Value, json};

use crate::harness::{World, config};

fn with_key(world: &World, key: &str, n: u32) -> Value {
    json!({ "method": "POST", "url": world.charges(), "json": { "n": n }, "headers": [["Idempotency-Key", key]] })
}

/// R-D14, R-D15: under `trust` a natural key names the effect, and the provider gets a key derived from it.
#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_key_names_the_effect_and_is_not_what_the_provider_gets() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({ "guest_keys": "trust" })).await;
    let calls = [with_key(&world, "order-42", 1), with_key(&world, "order-43", 2), with_key(&world, "order-42", 1)];
    let run = world.start("send", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    let sources: Vec<_> = (0..3).map(|i| output[i]["source"].clone()).collect();
    assert_eq!(sources, ["sent", "sent", "replayed"], "{output}");
    let arrivals = world.books.arrivals().await.unwrap();
    assert_eq!(arrivals.len(), 2);
    assert!(arrivals.iter().all(|arrival| !arrival.key.as_ref().unwrap().contains("order")), "{arrivals:?}");
    assert_ne!(arrivals[0].key, arrivals[1].key);
}

/// No tenant can collide with another inside a provider account that both use.
#[tokio::test(flavor = "multi_thread")]
async fn one_trusted_key_of_two_runs_is_two_effects_with_two_wire_keys() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({ "guest_keys": "trust" })).await;
    for _ in 0..2 {
        world.start("send", json!({ "calls": [with_key(&world, "order-42", 1)] })).await;
    }
    world.work().await;
    let arrivals = world.books.arrivals().await.unwrap();
    assert_eq!(arrivals.len(), 2);
    assert_ne!(arrivals[0].key, arrivals[1].key);
}

/// R-D12: a key that a client library invents anew for every call is replaced, also inside a body.
#[tokio::test(flavor = "multi_thread")]
async fn an_invented_key_in_the_body_is_replaced_and_is_no_part_of_the_digest() {
    let options = Options { keyless: false, convention: Some(Convention::square()) };
    let world = World::with(options, config()).await;
    world.deploy("send", "square", json!({ "retry": { "max_attempts": 3 } })).await;
    let body = "{\"amount\":1.50, \"idempotency_key\":\"invented-{attempt}\", \"big\":9007199254740993}";
    let url = format!("{}/v2/payments", world.origin());
    let call = json!({ "method": "POST", "url": url, "body": body, "headers": [["content-type", "application/json"]] });
    let run = world.start("send", json!({ "calls": [call], "then": ["fail", "return"] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[0]["source"], "replayed", "another invented key is the same request: {output}");
    let arrivals = world.books.arrivals().await.unwrap();
    assert_eq!(arrivals.len(), 1);
    let key = world.sends(run).await[0].wire_key.clone().unwrap();
    let expected = format!("{{\"amount\":1.50, \"idempotency_key\":\"{key}\", \"big\":9007199254740993}}");
    assert_eq!(arrivals[0].body, expected, "every other byte is the guest's");
}

/// A key of the run, where the provider takes its key in the body.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_run_in_the_body_passes_as_it_is() {
    let options = Options { keyless: false, convention: Some(Convention::square()) };
    let world = World::with(options, config()).await;
    world.deploy("send", "square", json!({})).await;
    let url = format!("{}/v2/payments", world.origin());
    let call = json!({ "method": "POST", "url": url, "body": "{\"idempotency_key\":\"{subkey:pay}\"}" });
    let run = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    let subkey = deedbox::key::subkey(&deedbox::key::run_key("acme", run), "pay").unwrap();
    assert_eq!(world.books.arrivals().await.unwrap()[0].key, Some(subkey.text()));
}
