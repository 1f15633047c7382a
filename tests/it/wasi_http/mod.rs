//! `wasi:http`: guests with an ordinary HTTP client go through the same gateway, and guests with sockets nowhere.

use std::time::Duration;

use deedbox::config::Config;
use deedbox::store::ledger;
use deedbox_books::Options;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::cell::everything;
use crate::harness::{TENANT, World, config};

mod answers;
mod client;
mod effects;
mod names;
mod sockets;
mod streamed;

const GUESTS: &str = "deedbox_test_guests_wasi_http.wasm";
const SOON: Duration = Duration::from_secs(10);

async fn world(change: impl FnOnce(&mut Config)) -> World {
    let mut config = config();
    change(&mut config);
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    deploy(&world, "stripe", json!({})).await;
    world
}

async fn deploy(world: &World, profile: &str, policy: Value) {
    world.deploy_from(GUESTS, "fetch", profile, policy).await;
}

fn post(url: &str) -> Value {
    json!({ "method": "POST", "url": url, "body": "{\"n\":1}" })
}

/// A call with the members of `more` put over it.
fn with(mut call: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        call[name] = value.clone();
    }
    call
}

/// Starts a run with these calls, works until nothing is due, and gives what they came to.
async fn fetched(world: &World, calls: &[Value]) -> (Uuid, Value) {
    let run = world.start("fetch", json!({ "calls": calls })).await;
    world.work().await;
    (run, world.output(run).await)
}

/// As [`fetched`], with a first attempt that fails after its calls.
async fn fetched_twice(world: &World, calls: &[Value]) -> (Uuid, Value) {
    let run = world.start("fetch", json!({ "calls": calls, "fail_up_to": 1 })).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["failed", "completed"]);
    (run, world.output(run).await)
}

async fn effects(world: &World, run: Uuid) -> Vec<ledger::Entry> {
    ledger::list_of_run(world.node.store(), TENANT, run, &everything()).await.unwrap()
}

async fn arrivals(world: &World) -> Vec<deedbox_books::Arrival> {
    world.books.arrivals().await.unwrap()
}

fn error_of(outcome: &Value) -> &str {
    outcome["error"].as_str().unwrap_or_else(|| panic!("no error: {outcome}"))
}
