//! What is on the wire, byte for byte, whatever headers a guest sets.

use serde_json::{Value, json};

use super::capture::{Capture, values};
use super::{errors, post};
use crate::harness::World;

/// Headers that are the host's, with values that would be seen.
const HEADERS: [(&str, &str); 14] = [
    ("host", "canary-host.test"),
    ("Host", "canary-host.test"),
    ("transfer-encoding", "chunked"),
    ("Transfer-Encoding", "identity"),
    ("content-length", "1"),
    ("content-length", "4096"),
    ("connection", "keep-alive, canary-hop"),
    ("keep-alive", "timeout=canary"),
    ("proxy-authorization", "Basic canary"),
    ("proxy-connection", "canary"),
    ("x-forwarded-for", "10.11.12.13"),
    ("forwarded", "for=10.11.12.13"),
    ("upgrade", "canary"),
    ("te", "canary"),
];

fn policy(provider: &Capture) -> Value {
    json!({ "egress": { "allow": [provider.origin()] }, "providers": { provider.origin(): "stripe" } })
}

/// One right host, one framing, and nothing that only the host may say.
fn check(request: &str, provider: &Capture) {
    assert_eq!(values(request, "host"), [provider.address.to_string()], "{request}");
    assert_eq!(values(request, "connection"), ["close"], "{request}");
    assert!(values(request, "transfer-encoding").is_empty(), "{request}");
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    assert_eq!(values(request, "content-length"), [body.len().to_string()], "{request}");
    let lower = request.to_lowercase();
    assert!(!lower.contains("canary") && !lower.contains("10.11.12.13"), "{request}");
}

/// F-E12.
#[tokio::test(flavor = "multi_thread")]
async fn headers_of_the_host_are_refused_and_the_wire_has_one_host_and_one_framing() {
    let (world, provider) = (World::keyed().await, Capture::ok().await);
    world.deploy("send", "stripe", policy(&provider)).await;
    let url = format!("{}/v1/charges", provider.origin());
    let with = |(name, value): &(&str, &str)| {
        let mut call = post(&url);
        call["headers"] = json!([[name, value]]);
        call
    };
    for (error, message) in errors(&world, HEADERS.iter().map(with).collect()).await {
        assert_eq!(error, "invalid-request", "{message}");
    }
    assert!(provider.seen().is_empty());
    let mut own = post(&url);
    own["headers"] = json!([["x-own", "1"]]);
    assert_eq!(errors(&world, vec![own]).await[0].0, "-");
    let seen = provider.seen();
    assert_eq!(seen.len(), 1);
    check(&seen[0], &provider);
    assert_eq!(values(&seen[0], "x-own"), ["1"]);
}

/// F-E12: client libraries set some of them by themselves, so that over `wasi:http` they are left out, or the call fails.
#[tokio::test(flavor = "multi_thread")]
async fn headers_of_the_host_do_not_pass_over_wasi_http() {
    let (world, provider) = (World::keyed().await, Capture::ok().await);
    world.deploy_from("deedbox_test_guests_wasi_http.wasm", "fetch", "stripe", policy(&provider)).await;
    let call = |number: usize, headers: Value| {
        let url = format!("{}/v1/{number}", provider.origin());
        json!({ "method": "POST", "url": url, "body": "{\"n\":1}", "headers": headers })
    };
    let evil = HEADERS.iter().enumerate().map(|(number, (name, value))| call(number, json!([[name, value]])));
    let calls: Vec<_> = evil.chain([call(HEADERS.len(), json!([["x-own", "1"]]))]).collect();
    let run = world.start("fetch", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    let answered = output.as_array().unwrap().iter().filter(|answer| answer["status"] == 200).count();
    assert_eq!(output[HEADERS.len()]["status"], 200, "{output}");
    let seen = provider.seen();
    let whole: Vec<_> = seen.iter().filter(|request| request.ends_with("{\"n\":1}")).collect();
    assert!(whole.len() >= answered && whole.len() == seen.len(), "{seen:?}");
    seen.iter().for_each(|request| check(request, &provider));
}
