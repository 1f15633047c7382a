//! `/v1/hooks`: senders that prove themselves by a signature start and signal runs, over sockets. The signatures are made here
//! by the senders' own rules, not by the code that checks them.

use chrono::Utc;
use data_encoding::{BASE64, HEXLOWER};
use hmac::{Hmac, KeyInit, Mac};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Sha256, Sha512};

use super::Api;
use super::client::{Answer, Client, whole_list};

mod alike;
mod managed;
mod mapped;
mod noted;
mod once;
mod signed;

/// A delivery as it goes over the wire.
#[derive(Clone, Debug)]
pub struct Sent {
    headers: Vec<(String, String)>,
    body: String,
}

impl Sent {
    fn new(headers: &[(&str, &str)], body: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { headers, body: body.to_owned() }
    }

    /// The same with another header of that name; without it, if there is no value.
    fn with(&self, name: &str, value: Option<&str>) -> Self {
        let mut sent = self.clone();
        sent.headers.retain(|(there, _)| there != name);
        sent.headers.extend(value.map(|value| (name.to_owned(), value.to_owned())));
        sent
    }

    pub async fn to(&self, client: &Client, hook: &str) -> Answer {
        let request = client.request(Method::POST, &format!("/v1/hooks/{hook}")).body(self.body.clone());
        let request = request.header("content-type", "application/json");
        client.send(self.headers.iter().fold(request, |request, (name, value)| request.header(name, value))).await
    }
}

fn sha256(key: &[u8], parts: &[&str]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    parts.iter().for_each(|part| mac.update(part.as_bytes()));
    mac.finalize().into_bytes().to_vec()
}

fn sha512(key: &[u8], body: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha512>::new_from_slice(key).unwrap();
    mac.update(body.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

pub fn github(secret: &str, id: &str, body: &str) -> Sent {
    let signature = format!("sha256={}", HEXLOWER.encode(&sha256(secret.as_bytes(), &[body])));
    Sent::new(&[("x-hub-signature-256", &signature), ("x-github-delivery", id), ("x-github-event", "push")], body)
}

fn stripe(secret: &str, time: i64, body: &str) -> Sent {
    let signature = HEXLOWER.encode(&sha256(secret.as_bytes(), &[&time.to_string(), ".", body]));
    Sent::new(&[("stripe-signature", &format!("t={time},v1={signature}"))], body)
}

/// `secret` is `whsec_` and Base64.
fn standard(secret: &str, id: &str, time: i64, body: &str) -> Sent {
    let key = BASE64.decode(secret.trim_start_matches("whsec_").as_bytes()).unwrap();
    let time = time.to_string();
    let signature = format!("v1,{}", BASE64.encode(&sha256(&key, &[id, ".", &time, ".", body])));
    Sent::new(&[("webhook-id", id), ("webhook-timestamp", &time), ("webhook-signature", &signature)], body)
}

fn now() -> i64 {
    Utc::now().timestamp()
}

/// A served tenant with the activity `noop` and the secret `key`.
async fn api(secret: &str) -> Api {
    let api = Api::idle().await;
    prepare(&api, secret).await;
    api
}

async fn prepare(api: &Api, secret: &str) {
    api.deploy("noop", json!({})).await;
    put_secret(&api.acme, "key", secret).await;
}

async fn put_secret(client: &Client, name: &str, value: &str) {
    client.put(&format!("/v1/secrets/{name}"), &json!({ "value": value })).await.expect(204);
}

/// A hook of GitHub's scheme that starts `noop`, with some members replaced.
fn starting(members: &Value) -> Value {
    let mut hook = json!({ "verify": { "scheme": "github", "secret": "key" }, "start": { "activity": "noop" } });
    for (name, member) in members.as_object().unwrap() {
        hook[name] = member.clone();
    }
    hook
}

/// The same, to signal.
fn signalling(signal: Value) -> Value {
    json!({ "verify": { "scheme": "github", "secret": "key" }, "signal": signal })
}

async fn put(client: &Client, name: &str, hook: &Value) {
    let answer = client.put(&format!("/v1/hooks/{name}"), hook).await;
    assert!(matches!(answer.status, 200 | 201), "{answer:?}");
}

async fn runs(api: &Api) -> Vec<Value> {
    whole_list(&api.acme.get("/v1/runs").await)
}

async fn deliveries(api: &Api, hook: &str) -> Vec<Value> {
    whole_list(&api.acme.get(&format!("/v1/hooks/{hook}/deliveries")).await)
}

/// The run of an accepted delivery.
#[track_caller]
fn accepted(answer: &Answer) -> String {
    let told = answer.expect(202);
    assert_eq!(told["accepted"], true, "{told}");
    told["run_id"].as_str().unwrap().to_owned()
}

fn is_replay(answer: &Answer) -> bool {
    answer.header("openwop-idempotent-replay") == "true"
}
