//! The OpenWOP v2 host profile, over sockets: what the specification's conformance scenarios assert, in our own words,
//! and the specification's own client. Nothing here knows how a run is kept.
//!
//! The scenarios that kill a process are the crash tests: `crash_process.rs` (killed before, in and after a send),
//! `crash_matrix.rs` (every point of a claim), `chaos/killed.rs` and `chaos/storm.rs` (accepted runs are dispatched by
//! others within a lease).

mod client;
mod control;
mod create;
mod discovery;
mod effects;
mod events;
mod fixtures;
mod ids;
mod keys;
mod schemas;

use std::time::Duration;

use deedbox::api::openwop::fixtures as component;
use deedbox::config::Config;
use deedbox_books::Options;
use serde_json::{Value, json};

use crate::api::Api;
use crate::api::client::{Answer, Client};
use crate::harness::{World, config};

/// Settings in which discovery names the fixtures.
fn settings() -> Config {
    let mut settings = config();
    settings.api.openwop_fixtures = true;
    settings
}

/// A node that serves and works. Its tenant `acme` has the fixtures.
async fn host() -> Api {
    host_with(settings()).await
}

async fn host_with(settings: Config) -> Api {
    let api = idle_with(settings).await;
    api.begin_working();
    api
}

/// The same, and nobody works.
async fn idle_with(settings: Config) -> Api {
    let world = World::with(Options { keyless: false, convention: None }, settings.clone()).await;
    let api = Api::with(world, settings).await;
    component::install(api.world.node.registry(), api.world.node.store(), "acme").await.unwrap();
    api
}

/// The segment of a path that stands for an id.
fn segment(id: &str) -> String {
    let passes = |c: &u8| c.is_ascii_alphanumeric() || b"._-".contains(c);
    id.bytes().map(|c| if passes(&c) { char::from(c).to_string() } else { format!("~{c:02X}") }).collect()
}

fn run_path(id: &str) -> String {
    format!("/runs/{}", segment(id))
}

/// Starts a run; gives its whole id.
async fn create(client: &Client, workflow: &str, inputs: Value) -> String {
    let answer = client.post("/runs", &json!({ "workflowId": workflow, "inputs": inputs })).await;
    schemas::created(&answer.expect(201))
}

/// Starts a run under a key.
async fn create_keyed(client: &Client, key: &str, body: &Value) -> Answer {
    client.send(client.request(reqwest::Method::POST, "/runs").header("idempotency-key", key).json(body)).await
}

async fn snapshot(client: &Client, id: &str) -> Value {
    schemas::snapshot(&client.get(&run_path(id)).await.expect(200))
}

/// All events of a run, once it has ended.
async fn whole_log(client: &Client, id: &str) -> Vec<Value> {
    let (mut events, mut after) = (Vec::new(), String::new());
    for _ in 0..20 {
        let answer = client.get(&format!("{}/events/poll?timeout=30{after}", run_path(id))).await;
        let page = schemas::poll(&answer.expect(200));
        events.extend(page["events"].as_array().unwrap().iter().cloned());
        after = format!("&afterSequence={}", page["lastSequence"]);
        if page["isTerminal"] == true {
            return events;
        }
    }
    panic!("the run {id} does not end: {events:?}");
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// How long a run may take to get somewhere.
const SOON: Duration = Duration::from_secs(30);

/// Waits until a run has a status.
async fn until_status(client: &Client, id: &str, status: &str) -> Value {
    let give_up = std::time::Instant::now() + SOON;
    loop {
        let now = snapshot(client, id).await;
        if now["status"] == status {
            return now;
        }
        assert!(std::time::Instant::now() < give_up, "it is not {status}: {now}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
