//! Every operation that the server describes, for runs in every state and for requests that are wrong in every way:
//! each is answered with what was asked for or with a code, and never as a fault of the server.

use std::time::Duration;

use deedbox_books::{Behaviour, Options};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::Answer;
use super::described::Operation;
use super::{Api, mint};
use crate::harness::{World, config};

/// A run in every state, by a name for it.
struct Runs {
    api: Api,
    all: Vec<(&'static str, String)>,
    working: tokio::task::JoinHandle<bool>,
}

impl Runs {
    async fn begin() -> Self {
        let mut settings = config();
        settings.signals.wait_ms = 50;
        // The one that runs must not give up.
        (settings.gateway.default_send_ms, settings.gateway.max_send_ms) = (60_000, 60_000);
        let keyless = Options { keyless: true, convention: None };
        let api = Api::with(World::with(keyless, settings.clone()).await, settings).await;
        api.deploy("send", api.policy("keyless")).await;
        api.deploy("listen", json!({})).await;
        api.deploy("fail", json!({ "retry": { "initial_interval": "1h", "jitter": "none" } })).await;
        let charge = json!({ "calls": [api.charge("a")] });
        let failure = |kind: &str| json!({ "code": "no", "message": "m", "kind": kind });
        let wait = json!({ "asks": [{ "wait": { "name": "go" } }] });
        let mut all = vec![("completed", api.start("send", charge.clone()).await)];
        all.push(("failed", api.start("fail", failure("permanent")).await));
        all.push(("waiting for a time", api.start("fail", failure("retryable")).await));
        all.push(("waiting for a signal", api.start("listen", wait).await));
        let mut connection = api.world.database.connect().await;
        // One of them waits for an hour.
        let ready = "select count(*) from runs where rank is not null or state = 'running'";
        while sqlx::query_scalar::<_, i64>(ready).fetch_one(&mut connection).await.unwrap() > 0 {
            api.world.node.worker().run_once().await.unwrap();
        }
        api.world.script(&[Behaviour::CutAfterApply]).await;
        all.push(("waiting for an answer", api.start("send", charge.clone()).await));
        while sqlx::query_scalar::<_, i64>(ready).fetch_one(&mut connection).await.unwrap() > 0 {
            api.world.node.worker().run_once().await.unwrap();
        }
        let cancelled = api.start("send", charge.clone()).await;
        api.acme.post(&format!("/v1/runs/{cancelled}/cancel"), &json!({})).await.expect(200);
        all.push(("cancelled", cancelled));
        api.world.script(&[Behaviour::HoldBeforeApply]).await;
        all.push(("running", api.start("send", charge.clone()).await));
        let worker = api.world.node.worker().clone();
        let working = tokio::spawn(async move { worker.run_once().await.unwrap() });
        api.world.books.wait_for_arrivals(3, Duration::from_secs(20)).await.unwrap();
        let paused = api.start("send", charge.clone()).await;
        api.acme.post(&format!("/v1/runs/{paused}/pause"), &json!({})).await.expect(200);
        all.push(("paused", paused));
        all.push(("queued", api.start("send", charge).await));
        Self { api, all, working }
    }

    async fn end(self) {
        self.api.world.books.release().await.unwrap();
        assert!(self.working.await.unwrap());
    }
}

/// Asserts that it is no fault of the server, and that a refusal has a code.
#[track_caller]
fn in_order(answer: &Answer, what: &str) {
    assert!((200..500).contains(&answer.status), "{what}: {answer:?}");
    if answer.status >= 400 {
        let body = answer.json();
        answer.refused(answer.status, body["error"].as_str().unwrap());
    }
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn every_view_of_a_run_is_there_in_every_state() {
    let runs = Runs::begin().await;
    let api = &runs.api;
    let mut seen = 0;
    // A run that was started without a callback has none.
    let is_there = |one: &Operation| one.method == Method::GET && !one.template.ends_with("/callback");
    for look in Operation::all(api).await.into_iter().filter(is_there) {
        for (state, run) in &runs.all {
            let Some(path) = look.path_of_run(run) else { continue };
            assert!(state.starts_with(api.run(run).await["state"].as_str().unwrap()) || *state == "paused");
            // One that has no end is looked at no further than its beginning.
            let response = api.acme.request(Method::GET, &path).send().await.unwrap();
            assert_eq!(response.status(), 200, "{path} of a run that is {state}");
            if !look.streams {
                response.text().await.unwrap();
            }
            seen += 1;
        }
    }
    assert!(seen >= 7 * runs.all.len(), "hardly any view was looked at: {seen}");
    runs.end().await;
}

/// F-K03: what an owner does to a run that is not in the state for it is refused with a code.
#[tokio::test(flavor = "multi_thread")]
async fn every_order_to_a_run_is_done_or_refused_in_every_state() {
    let runs = Runs::begin().await;
    let api = &runs.api;
    let (mut done, mut refused) = (0, 0);
    // To cancel comes last: hardly anything can follow it.
    let mut orders: Vec<Operation> =
        Operation::all(api).await.into_iter().filter(|one| one.method == Method::POST).collect();
    orders.sort_by_key(|order| order.template.ends_with("/cancel"));
    for order in orders {
        for (state, run) in &runs.all {
            let Some(path) = order.path_of_run(run) else { continue };
            let answer = api.acme.send(order.request(&api.acme, &path)).await;
            in_order(&answer, &format!("{path} of a run that was {state}"));
            if answer.status < 300 { done += 1 } else { refused += 1 }
        }
        for (_, run) in &runs.all {
            api.run(run).await;
        }
    }
    assert!(done > 10 && refused > 10, "{done} done, {refused} refused");
    runs.end().await;
}

/// F-K03: at every operation.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_cannot_be_one_is_refused_at_every_operation() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let long = "a".repeat(3_000);
    let upper = super::no_run().to_uppercase();
    let bad =
        ["x", "0", "-1", "null", "%00", "%FF", "%C3%28", "%20", "%2E%2E%2Fx", "'%20or%201=1--", "~", "~G0", "acme~2F"];
    let bad = bad.into_iter().chain([long.as_str(), upper.as_str(), "acme~2Fx", "other~2Fx", "%F0%9F%92%B6"]);
    let (all, mut tried) = (Operation::all(&api).await, 0);
    for text in bad {
        for one in &all {
            let Some(path) = one.path_with(text) else { continue };
            let caller = one.caller(&api.acme, &admin);
            in_order(&caller.send(one.request(caller, &path)).await, &format!("{} {path}", one.method));
            tried += 1;
        }
    }
    assert!(tried > 500, "hardly anything was tried: {tried}");
}

/// F-K03: at every operation that takes a body.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_none_is_refused_at_every_operation() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let deep = "[".repeat(100_000);
    let bodies: [&[u8]; 11] =
        [b"", b" ", b"{", b"{}{}", b"[]", b"null", b"1", b"\"x\"", b"{\"\\u0000\":1}", b"\xff\xfe", deep.as_bytes()];
    for one in Operation::all(&api).await.into_iter().filter(|one| one.takes.is_some()) {
        let (caller, path) = (one.caller(&api.acme, &admin), one.path());
        for body in bodies {
            for kind in [one.takes.as_deref(), Some("text/plain"), Some(""), None] {
                let answer = caller.raw(one.method.clone(), &path, kind, body.to_vec()).await;
                in_order(&answer, &one.name());
            }
        }
    }
    api.acme.get("/v1/runs").await.expect(200);
}

/// F-K03: a method that a path has not.
#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_is_not_described_is_refused_at_every_path() {
    let api = Api::idle().await;
    let all = Operation::all(&api).await;
    for one in &all {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            if all.iter().any(|other| other.template == one.template && other.method == method) {
                continue;
            }
            let answer = api.acme.send(api.acme.request(method.clone(), &one.path())).await;
            in_order(&answer, &format!("{method} {}", one.template));
            assert!(matches!(answer.status, 404 | 405), "{method} {}: {answer:?}", one.template);
        }
    }
}

/// F-K03: a hundred megabytes are refused before they have arrived.
#[tokio::test(flavor = "multi_thread")]
async fn a_huge_body_is_refused_at_every_operation() {
    let api = Api::idle().await;
    let tokens = [mint(&api.world, "acme").await, mint(&api.world, "_admin").await];
    for one in Operation::all(&api).await {
        let Some(kind) = &one.takes else { continue };
        let token = &tokens[usize::from(one.template.starts_with("/v1/tenants"))];
        let head = format!(
            "{} {} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-type: {kind}\r\n\
             content-length: {}\r\n\r\n{}",
            one.method,
            one.path(),
            100 << 20,
            "x".repeat(1_000)
        );
        let mut stream = TcpStream::connect(api.origin.trim_start_matches("http://")).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        let read = tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut first)).await;
        read.unwrap_or_else(|_| panic!("{} waits for all of it", one.name())).unwrap();
        assert!(first.starts_with(b"HTTP/1.1 4"), "{}: {}", one.name(), String::from_utf8_lossy(&first));
    }
}
