//! Redirects are the guest's to judge: where they lead, nothing was claimed and no key is known.

use deedbox_books::Options;
use serde_json::{Value, json};

use super::capture::{Canary, Capture, values};
use super::post;
use crate::harness::{TENANT, World, config};

const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
const SECRET: &str = "canary-2d40b8e17f";

/// A provider that answers `/STATUS/NUMBER` with a redirect to the place of that number.
async fn redirecting(places: Vec<String>) -> Capture {
    Capture::answering(move |path| {
        let (status, number) = path.trim_start_matches('/').split_once('/').unwrap();
        format!("{status} Moved\r\nlocation: {}\r\n", places[number.parse::<usize>().unwrap()])
    })
    .await
}

fn places(canary: &Canary) -> Vec<String> {
    let port = canary.port();
    vec![
        "http://169.254.169.254/latest/meta-data".to_owned(),
        format!("http://127.0.0.1:{port}/x"),
        format!("http://localhost:{port}/x"),
        format!("http://[::1]:{port}/x"),
        format!("//127.0.0.1:{port}/x"),
        "https://elsewhere.test/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "/200/0".to_owned(),
    ]
}

/// All places that can be named are allowed: it would be allowed to go there.
fn policy(origin: &str, canary: &Canary) -> Value {
    let port = canary.port();
    json!({
        "egress": {
            "allow": [
                origin, format!("http://127.0.0.1:{port}"), format!("http://localhost:{port}"),
                format!("http://[::1]:{port}"), "http://169.254.169.254", "https://elsewhere.test",
            ],
            "private_addresses": ["127.0.0.1", "::1"],
        },
        "providers": { origin: "stripe" },
        "retry": { "max_attempts": 1 },
    })
}

/// F-E01, F-E09.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_given_to_the_guest_and_not_followed() {
    let (world, canary) = (World::keyed().await, Canary::new());
    let places = places(&canary);
    let provider = redirecting(places.clone()).await;
    world.deploy("send", "stripe", policy(&provider.origin(), &canary)).await;
    let mut calls = Vec::new();
    for status in STATUSES {
        for number in 0..places.len() {
            let url = format!("{}/{status}/{number}", provider.origin());
            calls.extend(["POST", "GET"].map(|method| json!({ "method": method, "url": url })));
        }
    }
    let run = world.start("send", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    for (call, answer) in calls.iter().zip(output.as_array().unwrap()) {
        let status: u16 = call["url"].as_str().unwrap().split('/').nth(3).unwrap().parse().unwrap();
        assert_eq!(answer["status"], status, "{call}: {answer}");
    }
    assert_eq!(provider.seen().len(), calls.len(), "each call is one request");
    assert_eq!(world.sends(run).await.len(), calls.len() / 2, "reads are not claimed");
    canary.untouched();
}

/// F-E01: the same for an ordinary HTTP client.
#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_is_not_followed_for_a_client_of_wasi_http() {
    let (world, canary) = (World::keyed().await, Canary::new());
    let places = places(&canary);
    let provider = redirecting(places.clone()).await;
    let guests = "deedbox_test_guests_wasi_http.wasm";
    world.deploy_from(guests, "fetch", "stripe", policy(&provider.origin(), &canary)).await;
    let url = |status: u16, number: usize| format!("{}/{status}/{number}", provider.origin());
    let all = STATUSES.iter().flat_map(|status| (0..places.len()).map(move |number| (*status, number)));
    let calls: Vec<_> = all.map(|(status, number)| json!({ "method": "POST", "url": url(status, number) })).collect();
    let run = world.start("fetch", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    assert!(output.as_array().unwrap().iter().all(|answer| answer["status"].as_u64().unwrap() / 100 == 3), "{output}");
    assert_eq!(provider.seen().len(), calls.len());
    canary.untouched();
}

/// A node that knows a provider whose credential goes in a header of its own.
async fn world_with_api_key() -> (World, tempfile::TempDir) {
    let profiles = tempfile::tempdir().unwrap();
    let profile = r#"
        name = "api-key"
        version = "1"
        source = "this test"
        credential = { header = "X-Api-Key" }
        [[operation]]
        [operation.key]
        carrier = { header = "Idempotency-Key" }
    "#;
    std::fs::write(profiles.path().join("api-key.toml"), profile).unwrap();
    let mut settings = config();
    settings.gateway.profiles_dir = Some(profiles.path().to_owned());
    let world = World::with(Options { keyless: false, convention: None }, settings).await;
    world.node.gateway().vault().put(TENANT, "key", SECRET).await.unwrap();
    (world, profiles)
}

/// F-E09: another port, and another host of the same port. Neither the host goes there, nor does a guest that goes there by
/// itself take along what belongs to the first provider.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_does_not_go_to_where_its_provider_redirects() {
    let (world, _profiles) = world_with_api_key().await;
    let second = Capture::ok().await;
    let to = second.origin();
    let first = Capture::answering(move |path| match path {
        "/begin" => format!("307 Moved\r\nlocation: {to}/next\r\nset-cookie: session=canary-cookie\r\n"),
        _ => "200 OK\r\n".to_owned(),
    })
    .await;
    let policy = json!({
        "egress": {
            "allow": [first.origin(), first.named(), second.origin()],
            "private_addresses": ["127.0.0.1", "::1"],
        },
        "providers": { first.origin(): "api-key", first.named(): "keyless", second.origin(): "keyless" },
        "credentials": { "api-key": { "secret": "key", "account": "main" } },
        "retry": { "max_attempts": 1 },
    });
    world.deploy("send", "api-key", policy).await;
    let begin = post(&format!("{}/begin", first.origin()));
    let alone = world.start("send", json!({ "calls": [begin] })).await;
    world.work().await;
    assert_eq!(world.output(alone).await[0]["status"], 307);
    assert!(second.seen().is_empty());
    let elsewhere = [format!("{}/next", second.origin()), format!("{}/next", first.named())];
    let calls = json!([begin, post(&elsewhere[0]), post(&elsewhere[1])]);
    let run = world.start("send", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!([&output[1]["status"], &output[2]["status"]], [200, 200], "{output}");

    let (begun, followed): (Vec<_>, Vec<_>) =
        first.seen().into_iter().chain(second.seen()).partition(|request| request.starts_with("POST /begin "));
    assert_eq!((begun.len(), followed.len()), (2, 2));
    for request in &begun {
        assert_eq!(values(request, "x-api-key"), [SECRET]);
        assert_eq!(values(request, "idempotency-key").len(), 1);
    }
    let keys: Vec<_> = begun.iter().flat_map(|request| values(request, "idempotency-key")).collect();
    for request in &followed {
        assert!(!request.contains(SECRET) && !request.contains("canary-cookie"), "{request}");
        assert!(values(request, "x-api-key").is_empty() && values(request, "cookie").is_empty(), "{request}");
        assert!(keys.iter().all(|key| !request.contains(key)), "{request}");
    }
}
