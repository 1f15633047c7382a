//! Webhooks out: what a receiver is told of the ends of runs. The receiver keeps books on disk; every signature in them is
//! checked here, with nothing of the program's own.

mod again;
mod crowd;
mod delivery;
mod ends;
mod refused;

use data_encoding::BASE64;
use deedbox::config::Config;
use deedbox_books::{Arrival, Options};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::api::Api;
use crate::api::client::{Answer, assert_members};
use crate::harness::{World, config};
use crate::worker::until;

const KEY: &[u8; 32] = b"a canary of exactly 32 bytes....";

/// A tenant with a secret that signs, beside a receiver.
struct Stage {
    api: Api,
}

/// A message that arrived, and was signed as it should be.
#[derive(Debug)]
struct Told {
    id: String,
    timestamp: u64,
    body: Value,
}

impl Stage {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    /// Tries follow each other at once, but for what the settings change.
    async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let mut settings = config();
        settings.webhooks.first_pause_ms = 1;
        settings.webhooks.max_pause_ms = 20;
        change(&mut settings);
        let world = World::with(Options { keyless: true, convention: None }, settings.clone()).await;
        let stage = Self { api: Api::with(world, settings).await };
        stage.put_secret("webhook", &secret(KEY)).await;
        stage
    }

    async fn put_secret(&self, name: &str, value: &str) {
        self.api.acme.put(&format!("/v1/secrets/{name}"), &json!({ "value": value })).await.expect(204);
    }

    /// Deploys one of the test guests, which makes one attempt and may tell the receiver.
    async fn deploy(&self, activity: &str) {
        self.deploy_with(activity, json!({})).await;
    }

    async fn deploy_with(&self, activity: &str, timeouts: Value) {
        let egress = json!({ "allow": [self.api.world.origin()] });
        let policy = json!({ "egress": egress, "retry": { "max_attempts": 1 }, "timeouts": timeouts });
        self.api.deploy(activity, policy).await;
    }

    fn url(&self) -> String {
        format!("{}/hooks?of=acme", self.api.world.origin())
    }

    async fn asked(&self, activity: &str, body: &Value) -> Answer {
        self.api.acme.post(&format!("/v1/activities/{activity}/runs"), body).await
    }

    /// Starts a run that tells of its end; gives its id.
    async fn start(&self, activity: &str, input: Value) -> String {
        let answer = self.asked(activity, &json!({ "input": input, "callback": { "url": self.url() } })).await;
        answer.expect(201)["run_id"].as_str().unwrap().to_owned()
    }

    async fn callback(&self, run: &str) -> Value {
        self.api.acme.get(&format!("/v1/runs/{run}/callback")).await.expect(200)
    }

    async fn redeliver(&self, run: &str) -> Answer {
        self.api.acme.post(&format!("/v1/runs/{run}/callback/redeliver"), &json!({})).await
    }

    /// One round of maintenance: each message that is due is tried once.
    async fn try_once(&self) {
        self.api.world.node.worker().run_once().await.unwrap();
    }

    /// Tries until the message is delivered or given up; gives the callback.
    async fn settled(&self, run: &str) -> Value {
        let settled = async || {
            self.try_once().await;
            matches!(self.callback(run).await["state"].as_str(), Some("delivered" | "failed"))
        };
        until("the callback is settled", settled).await;
        self.callback(run).await
    }

    /// All that the receiver was told, oldest first.
    async fn told(&self) -> Vec<Told> {
        let arrivals = self.api.world.books.arrivals().await.unwrap();
        arrivals.iter().filter(|arrival| arrival.path_and_query == "/hooks?of=acme").map(checked).collect()
    }
}

fn secret(key: &[u8]) -> String {
    format!("whsec_{}", BASE64.encode(key))
}

fn signature(key: &[u8], arrival: &Arrival) -> String {
    let header = |name: &str| arrival.header(name).unwrap().to_owned();
    let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(key).unwrap();
    mac.update(format!("{}.{}.{}", header("webhook-id"), header("webhook-timestamp"), arrival.body).as_bytes());
    format!("v1,{}", BASE64.encode(mac.finalize().into_bytes().as_slice()))
}

fn checked(arrival: &Arrival) -> Told {
    assert_eq!(arrival.header("webhook-signature").unwrap(), signature(KEY, arrival));
    assert_eq!(arrival.header("content-type"), Some("application/json"));
    assert!(arrival.header("user-agent").unwrap().starts_with("deedbox/"), "{arrival:?}");
    let body: Value = serde_json::from_str(&arrival.body).unwrap();
    assert_members(&body, &["type", "timestamp", "data"]);
    let timestamp = arrival.header("webhook-timestamp").unwrap().parse().unwrap();
    assert!(arrival.at.timestamp().unsigned_abs().abs_diff(timestamp) < 60, "{arrival:?}");
    Told { id: arrival.header("webhook-id").unwrap().to_owned(), timestamp, body }
}
