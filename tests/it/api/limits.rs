//! How large and how deep a request may be, and how many may come. What is too much is refused with an error of its own, and
//! the server goes on.

use std::time::Duration;

use deedbox::config::ApiConfig;
use reqwest::Method;
use serde_json::json;

use super::wire::Wire;
use super::{Api, mint};
use crate::harness::{World, config};

/// A server with limits of the test's own.
pub async fn with(change: impl FnOnce(&mut ApiConfig)) -> Api {
    let mut settings = config();
    change(&mut settings.api);
    Api::with(World::keyed().await, settings).await
}

/// The head of a request with a JSON body, but for the empty line at its end.
pub fn head(method: &str, path: &str, token: &str, kind: &str) -> String {
    format!("{method} {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-type: {kind}\r\n")
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn headers_are_taken_up_to_their_limit_and_refused_above_it() {
    let api = with(|_| {}).await;
    let mut wire = Wire::open(&api.origin).await;
    // `host` and its value are five bytes, the name of the other is five.
    let padded = |bytes: usize| format!("x-pad: {}\r\n", "a".repeat(bytes - 10));
    assert_eq!(wire.get("/healthz", &padded(32 << 10)).await.status, 200);
    let said = wire.get("/healthz", &padded((32 << 10) + 1)).await;
    assert!(said.refused(431, "deedbox.headers_too_large").contains("32768"), "{said:?}");
    let fields = |count: usize| (1..count).map(|i| format!("x-{i}: a\r\n")).collect::<String>();
    assert_eq!(wire.get("/healthz", &fields(100)).await.status, 200);
    wire.get("/healthz", &fields(101)).await.refused(431, "deedbox.headers_too_large");
    // Far above it the library refuses by itself, and hangs up.
    for (path, headers) in
        [("/healthz".to_owned(), padded(200 << 10)), (format!("/{}", "a".repeat(200 << 10)), String::new())]
    {
        let mut wire = Wire::open(&api.origin).await;
        wire.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n")).await;
        let said = String::from_utf8(wire.rest().await).unwrap();
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    }
    assert_eq!(wire.get("/healthz", "").await.status, 200);
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn a_target_is_taken_up_to_its_limit_and_refused_above_it() {
    let api = with(|_| {}).await;
    let mut wire = Wire::open(&api.origin).await;
    let target = |bytes: usize| format!("/healthz?{}", "a".repeat(bytes - 9));
    assert_eq!(wire.get(&target(8 << 10), "").await.status, 200);
    let said = wire.get(&target((8 << 10) + 1), "").await;
    assert!(said.refused(414, "deedbox.target_too_long").contains("8192"), "{said:?}");
    wire.get(&format!("/{}", "a".repeat(30_000)), "").await.refused(414, "deedbox.target_too_long");
    assert_eq!(wire.get("/healthz", "").await.status, 200);
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn json_is_taken_as_deep_as_the_limit_and_no_deeper() {
    let api = with(|_| {}).await;
    api.deploy("listen", json!({})).await;
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let send = async |path: &str, body: String| {
        api.acme.raw(Method::POST, path, Some("application/json"), body.into_bytes()).await
    };
    // The body is a level as well.
    let start = |levels: usize| format!("{{\"input\": {}}}", nested(levels - 1));
    let run = send("/v1/activities/listen/runs", start(128)).await.expect(201)["run_id"].as_str().unwrap().to_owned();
    let answer = send("/v1/activities/listen/runs", start(129)).await;
    assert!(answer.message(400, "validation_error").contains("128 levels"), "{answer:?}");
    let go = format!("/v1/runs/{run}/signals/go");
    send(&go, nested(128)).await.expect(202);
    for payload in [nested(129), nested(30_000), "[".repeat(30_000), "{\"a\":".repeat(129)] {
        assert!(send(&go, payload).await.message(400, "validation_error").contains("128 levels"));
    }
    send(&go, format!("\"{}\"", "[".repeat(1000))).await.expect(202);
    for (path, body) in [("/v1/activities/listen", "{\"policy\":"), ("/v1/secrets/key", "{\"value\":")] {
        let body = format!("{body}{}}}", nested(128)).into_bytes();
        let answer = api.acme.raw(Method::PUT, path, Some("application/json"), body).await;
        assert!(answer.message(400, "validation_error").contains("128 levels"), "{answer:?}");
    }
}

/// F-K03: whether its sender says how large it is, or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_larger_body_is_refused_and_the_connection_goes_on() {
    let api = with(|api| api.max_body_bytes = 1_000).await;
    api.deploy("noop", json!({})).await;
    let head = head("POST", "/v1/activities/noop/runs", &mint(&api.world, "acme").await, "application/json");
    let body = |bytes: usize| format!("{{\"input\":\"{}\"}}", "x".repeat(bytes - 12));
    let mut wire = Wire::open(&api.origin).await;
    for (bytes, status) in [(1_000, 201), (1_001, 413), (1_000, 201), (100_000, 413)] {
        let text = body(bytes);
        let told = format!("{head}content-length: {bytes}\r\n\r\n{text}");
        let (first, second) = text.split_at(500);
        let untold = format!(
            "{head}transfer-encoding: chunked\r\n\r\n1f4\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
            second.len()
        );
        for request in [told, untold] {
            assert!(wire.send(request).await);
            let said = wire.answer().await;
            match status {
                413 => assert!(said.refused(413, "payload_too_large").contains("1000")),
                _ => assert_eq!(said.status, status, "{said:?}"),
            }
        }
    }
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_are_refused_on_every_kind_of_route() {
    let api = with(|_| {}).await;
    let token = mint(&api.world, "acme").await;
    let json = "application/json";
    let cases = [
        ("POST", "/v1/activities/noop/runs", token.as_str(), json, 413),
        ("POST", "/v1/modules", &token, "application/wasm", 413),
        ("POST", "/v1/modules", &token, "text/plain", 415),
        ("PUT", "/v1/secrets/key", "nonsense", json, 401),
        ("POST", "/v1/nothing", &token, json, 404),
        ("PATCH", "/v1/runs", &token, json, 405),
    ];
    const BODY: usize = 100 << 20;
    let part = vec![b'x'; 1 << 20];
    for (method, path, token, kind, status) in cases {
        let mut wire = Wire::open(&api.origin).await;
        let head = head(method, path, token, kind);
        wire.send(format!("{head}content-length: {BODY}\r\n\r\n")).await;
        let mut sent = 0;
        // A server that has refused takes no more of it.
        while sent < BODY && wire.send(&part).await {
            sent += part.len();
        }
        let said = wire.answer().await;
        assert_eq!(said.status, status, "{method} {path}: {said:?}");
    }
    api.acme.get("/v1/runs").await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_above_the_limit_wait_and_are_served_later() {
    let api = with(|api| api.max_connections = 2).await;
    let (mut first, mut second) = (Wire::open(&api.origin).await, Wire::open(&api.origin).await);
    for wire in [&mut first, &mut second] {
        assert_eq!(wire.get("/healthz", "").await.status, 200);
    }
    let mut third = Wire::open(&api.origin).await;
    let mut answer = Box::pin(third.get("/healthz", ""));
    let early = tokio::time::timeout(Duration::from_millis(300), &mut answer).await;
    assert!(early.is_err(), "{early:?}");
    assert_eq!(second.get("/healthz", "").await.status, 200);
    drop(first);
    assert_eq!(answer.await.status, 200);
}
