//! Where a guest may send, and what it may send.

use serde_json::{Value, json};

use crate::harness::World;
use crate::harness::raw::full_listener;

mod capture;
mod pooled;
mod proxies;
mod redirects;
mod rules;
mod spellings;
mod wire;

async fn errors(world: &World, calls: Vec<Value>) -> Vec<(String, String)> {
    let run = world.start("send", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    output.as_array().unwrap().iter().map(|call| (text(&call["error"]), text(&call["message"]))).collect()
}

fn post(url: &str) -> Value {
    json!({ "method": "POST", "url": url, "json": {} })
}

#[tokio::test(flavor = "multi_thread")]
async fn only_allowed_origins_are_reached_and_the_denial_names_the_rule() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    let port = world.books.address.port();
    let urls = [
        format!("https://127.0.0.1:{port}/"),
        format!("http://127.0.0.2:{port}/"),
        "http://127.0.0.1/".to_owned(),
        format!("http://localhost:{port}/"),
        "http://169.254.169.254/latest/meta-data".to_owned(),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://127.0.0.1.evil.test:{port}/"),
    ];
    for (error, message) in errors(&world, urls.iter().map(|url| post(url)).collect()).await {
        assert_eq!(error, "denied", "{message}");
        assert!(message.contains("policy.egress.allow"), "{message}");
    }
    assert!(world.books.arrivals().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_name_at_a_private_address_is_denied_until_the_address_is_named() {
    let world = World::keyed().await;
    let url = format!("http://localhost:{}/v1/charges", world.books.address.port());
    let origin = url.replace("/v1/charges", "");
    world.deploy("send", "stripe", json!({ "egress": { "allow": [origin] } })).await;
    let (error, message) = errors(&world, vec![post(&url)]).await.remove(0);
    assert_eq!(error, "denied");
    assert!(message.contains("policy.egress.private_addresses"), "{message}");
    let both = json!({ "egress": { "allow": [origin], "private_addresses": ["127.0.0.1", "::1"] } });
    world.deploy("send", "stripe", both).await;
    assert_eq!(errors(&world, vec![post(&url)]).await[0].0, "-");
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_spellings_of_an_allowed_address_are_that_address_and_user_information_is_refused() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    let port = world.books.address.port();
    let spelled = [format!("http://2130706433:{port}/a"), format!("HTTP://0x7f.1:{port}/b")];
    for (error, message) in errors(&world, spelled.iter().map(|url| post(url)).collect()).await {
        assert_eq!(error, "-", "{message}");
    }
    let refused = [
        format!("http://user@127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}@169.254.169.254/"),
        "ftp://127.0.0.1/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "not a url".to_owned(),
        "http:///".to_owned(),
    ];
    for (error, message) in errors(&world, refused.iter().map(|url| post(url)).collect()).await {
        assert_eq!(error, "invalid-request", "{message}");
    }
    assert_eq!(world.books.arrivals().await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_of_the_host_and_malformed_requests_are_refused_and_nothing_is_claimed() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    let with = |name: &str, value: &str| {
        let mut call = post(&world.charges());
        call["headers"] = json!([[name, value]]);
        call
    };
    let mut calls: Vec<Value> = ["host", "transfer-encoding", "content-length", "connection", "proxy-authorization"]
        .iter()
        .chain(&["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"])
        .map(|name| with(name, "1"))
        .collect();
    calls.extend([with("x y", "1"), with("x", "a\r\nb: c"), with("x", "a\u{0}b"), with("x", &"v".repeat(64 << 10))]);
    calls.push(json!({ "method": "G ET", "url": world.charges() }));
    calls.push(json!({ "method": "CONNECT", "url": world.charges() }));
    calls.push(json!({ "method": "POST", "url": world.charges(), "identity": { "named": "" } }));
    for (error, message) in errors(&world, calls).await {
        assert_eq!(error, "invalid-request", "{message}");
    }
    assert!(world.books.arrivals().await.unwrap().is_empty());
    assert!(crate::harness::claimed(&world.database).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wire_has_one_right_host_and_no_headers_that_nobody_set() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    errors(&world, vec![post(&world.charges())]).await;
    let arrival = &world.books.arrivals().await.unwrap()[0];
    let mut names: Vec<&str> = arrival.headers.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept-encoding", "connection", "content-length", "content-type", "host", "idempotency-key"]);
    assert_eq!(arrival.header("host"), Some(world.books.address.to_string().as_str()));
}

/// F-E19: however a provider stalls, the call ends by its time-out, and the ledger knows whether anything was sent.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_stalls_in_any_way_ends_the_call_in_time() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let answering = silent.local_addr().unwrap();
    // Whoever connects is accepted and hears nothing.
    let accepting = tokio::spawn(async move {
        let mut held = Vec::new();
        while held.len() < 16 {
            held.push(silent.accept().await.unwrap());
        }
    });
    let full = full_listener("127.0.0.1:0").await;
    let stalls = [format!("http://{answering}"), format!("https://{answering}"), format!("http://{}", full.0)];
    let mut settings = crate::harness::config();
    settings.gateway.connect_ms = 400;
    let options = deedbox_books::Options { keyless: false, convention: None };
    let world = World::with(options, settings).await;
    world.deploy("send", "keyless", json!({ "egress": { "allow": stalls }, "on_unknown": "at-most-once" })).await;
    let calls: Vec<Value> = stalls
        .iter()
        .map(|origin| json!({ "method": "POST", "url": format!("{origin}/x"), "timeout_ms": 400 }))
        .collect();
    let begun = std::time::Instant::now();
    let run = world.start("send", json!({ "calls": calls })).await;
    assert!(world.node.worker().run_once().await.unwrap());
    assert!(begun.elapsed().as_secs() < 5, "three calls of 400 ms took {:?}", begun.elapsed());
    let output = world.output(run).await;
    let errors: Vec<_> = (0..3).map(|i| output[i]["error"].clone()).collect();
    assert_eq!(errors, ["outcome-unknown", "unreachable", "unreachable"], "{output}");
    let states: Vec<_> = world.sends(run).await.into_iter().map(|send| send.state).collect();
    assert_eq!(states, ["escaped", "released", "released"]);
    accepting.abort();
}
