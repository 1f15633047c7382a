//! Requests that are none, over both interfaces: the guest is told, nothing is sent, and nobody else notices.

use serde_json::{Value, json};

use super::{WASI_GUESTS, once};
use crate::harness::World;

/// A world whose guests may send to an address at which nobody may arrive.
struct Silent {
    world: World,
    canary: std::net::TcpListener,
}

impl Silent {
    async fn new() -> Self {
        let canary = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        canary.set_nonblocking(true).unwrap();
        Self { world: World::keyed().await, canary }
    }

    fn authority(&self) -> String {
        self.canary.local_addr().unwrap().to_string()
    }

    fn policy(&self) -> Value {
        let mut policy = once("60s");
        policy["egress"] = json!({ "allow": [format!("http://{}", self.authority())] });
        policy
    }

    /// Nothing was claimed and nobody has connected; a neighbour works.
    async fn stayed_silent(&self) {
        assert_eq!(self.canary.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "something was sent");
        assert!(crate::harness::claimed(&self.world.database).await.is_empty());
        self.world.deploy("noop", "stripe", json!({})).await;
        let run = self.world.start("noop", json!(1)).await;
        self.world.work().await;
        assert_eq!(self.world.output(run).await, json!(1));
    }
}

/// F-E11.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_request_over_deedbox_http_is_refused_with_words_and_never_sent() {
    let silent = Silent::new().await;
    let world = &silent.world;
    world.deploy("send", "stripe", silent.policy()).await;
    let url = format!("http://{}/x", silent.authority());
    let call = |headers: Value| json!({ "method": "POST", "url": url, "headers": headers });
    let mut calls: Vec<Value> = [
        json!([["x", "a\rb"]]),
        json!([["x", "a\nb"]]),
        json!([["x", "a\r\nhost: elsewhere.test"]]),
        json!([["x", "a\0b"]]),
        json!([["x\r\ny", "1"]]),
        json!([["x\0y", "1"]]),
        json!([["x y", "1"]]),
        json!([["", "1"]]),
        json!([["é", "1"]]),
        json!([["x", "v".repeat(1 << 20)]]),
        json!((0..100_000).map(|n| json!([format!("x-{n}"), "1"])).collect::<Vec<_>>()),
    ]
    .into_iter()
    .map(call)
    .collect();
    for method in ["G ET", "", "GET\r\n", "GET\0", "CONNECT", "TRACE", &"M".repeat(100)] {
        calls.push(json!({ "method": method, "url": url }));
    }
    let address = silent.authority();
    for url in ["", "/x", "http:", "http://", "http://a b/", &format!("http://a b@{address}/"), "http://[::1/", "x"] {
        calls.push(json!({ "method": "POST", "url": url }));
    }
    calls.push(json!({ "method": "POST", "url": format!("{url}?{}", "q".repeat(1 << 20)) }));
    let count = calls.len();
    let run = world.start("send", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output.as_array().unwrap().len(), count);
    for (number, outcome) in output.as_array().unwrap().iter().enumerate() {
        assert_eq!(outcome["error"], "invalid-request", "call {number}: {outcome}");
    }
    silent.stayed_silent().await;
}

/// F-E11.
#[tokio::test(flavor = "multi_thread")]
async fn a_bad_request_over_wasi_http_is_refused_where_it_is_made_and_never_sent() {
    let silent = Silent::new().await;
    let world = &silent.world;
    world.deploy_from(WASI_GUESTS, "raw-requests", "stripe", silent.policy()).await;
    let good = json!({ "method": "POST", "authority": silent.authority(), "path": "/x" });
    let with = |changes: Value| {
        let mut request = good.clone();
        changes.as_object().unwrap().iter().for_each(|(name, value)| request[name] = value.clone());
        request
    };
    let cases = [
        (with(json!({ "headers": [["x", "a\rb"]] })), "headers"),
        (with(json!({ "headers": [["x", "a\nb"]] })), "headers"),
        (with(json!({ "headers": [["x", "a\r\nhost: elsewhere.test"]] })), "headers"),
        (with(json!({ "headers": [["x", "a\0b"]] })), "headers"),
        (with(json!({ "headers": [["x\r\ny", "1"]] })), "headers"),
        (with(json!({ "headers": [["", "1"]] })), "headers"),
        (with(json!({ "headers": [["host", "elsewhere.test"]] })), "headers"),
        (with(json!({ "headers": [["transfer-encoding", "chunked"]] })), "headers"),
        (with(json!({ "value_bytes": 1 << 20 })), "headers"),
        (with(json!({ "more_headers": 100_000 })), "headers"),
        // Within what a guest may put together, and more than may be sent.
        (with(json!({ "value_bytes": 40 << 10 })), "answer"),
        (with(json!({ "method": "G ET" })), "method"),
        (with(json!({ "method": "" })), "method"),
        (with(json!({ "method": "GET\r\n" })), "method"),
        (with(json!({ "method": "TRACE" })), "answer"),
        (with(json!({ "authority": "a b" })), "authority"),
        (with(json!({ "authority": "a\r\nb" })), "authority"),
        (with(json!({ "authority": "a\0b" })), "authority"),
        (with(json!({ "path": "/a b" })), "path"),
        (with(json!({ "path": "/a\r\nb" })), "path"),
        (with(json!({ "path": "http://elsewhere.test/" })), "path"),
        (with(json!({ "path": null })), "handle"),
        (with(json!({ "authority": null })), "handle"),
    ];
    let requests: Vec<&Value> = cases.iter().map(|(request, _)| request).collect();
    let run = world.start("raw-requests", json!({ "requests": requests })).await;
    world.work().await;
    let output = world.output(run).await;
    for (number, (request, step)) in cases.iter().enumerate() {
        let told = output[number].as_str().unwrap();
        let request = request.to_string();
        assert!(told.starts_with(step), "`{told}` for {}", &request[..request.len().min(200)]);
    }
    let logs = crate::harness::cell::logs(world, run).await;
    assert!(logs.iter().any(|log| log.text.contains("host.max_field_bytes")), "what was too large is said: {logs:?}");
    silent.stayed_silent().await;
}
