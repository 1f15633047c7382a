//! Whatever a place is called in a URL, what is judged is what would be connected to.

use serde_json::json;

use super::capture::Canary;
use super::{errors, post};
use crate::harness::World;

const WASI_GUESTS: &str = "deedbox_test_guests_wasi_http.wasm";

/// Spellings of addresses that are this machine, or lead to it or to a cloud's metadata.
const LITERALS: [&str; 22] = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0x7f000001",
    "0177.0.0.1",
    "0",
    "0.0.0.0",
    "127.0.0.1.",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:a9fe:a9fe]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2001:0:7f00:1::]",
    "[2002:7f00:1::]",
    "localhost",
    "localhost.",
    "LOCALHOST",
];

/// Gives what a client of `wasi:http` gets for each URL; `-` for an answer.
async fn fetched(world: &World, urls: &[String]) -> Vec<String> {
    let calls: Vec<_> = urls.iter().map(|url| json!({ "method": "POST", "url": url })).collect();
    let run = world.start("fetch", json!({ "calls": calls })).await;
    world.work().await;
    let output = world.output(run).await;
    output.as_array().unwrap().iter().map(|call| call["error"].as_str().unwrap_or("-").to_owned()).collect()
}

/// F-E04.
#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_an_address_gets_round_the_rules() {
    let (world, canary) = (World::keyed().await, Canary::new());
    let port = canary.port();
    let wide = json!({ "egress": { "allow": ["https://*.test", format!("http://*.test:{port}")] } });
    world.deploy("send", "stripe", wide.clone()).await;
    world.deploy_from(WASI_GUESTS, "fetch", "stripe", wide).await;
    let urls: Vec<_> = LITERALS.iter().map(|host| format!("http://{host}:{port}/")).collect();
    let all = errors(&world, urls.iter().map(|url| post(url)).collect()).await;
    assert_eq!(all.len(), urls.len());
    for ((error, message), url) in all.iter().zip(&urls) {
        assert_eq!(error, "denied", "{url}: {message}");
        assert!(message.contains("policy.egress.allow"), "{message}");
    }
    for (error, url) in fetched(&world, &urls).await.iter().zip(&urls) {
        assert_ne!(error, "-", "{url}");
    }
    canary.untouched();
}

/// F-E04: a rule for a name is no rule for the private addresses that it leads to.
#[tokio::test(flavor = "multi_thread")]
async fn no_spelling_of_an_allowed_name_reaches_a_private_address() {
    let (world, canary) = (World::keyed().await, Canary::new());
    let port = canary.port();
    world.deploy("send", "stripe", json!({ "egress": { "allow": [format!("http://localhost:{port}")] } })).await;
    let calls =
        ["localhost", "LOCALHOST", "LocalHost", "localhost."].map(|host| post(&format!("http://{host}:{port}/")));
    for (error, message) in errors(&world, calls.to_vec()).await {
        assert_eq!(error, "denied", "{message}");
    }
    canary.untouched();
}

/// F-E06, F-E07: the URL that is judged is the URL that is sent, and not a text that begins or ends like one.
#[tokio::test(flavor = "multi_thread")]
async fn a_url_is_read_once_and_by_one_reader() {
    let (world, canary) = (World::keyed().await, Canary::new());
    let (own, other) = (world.books.address.port(), canary.port());
    let allowed = format!("http://localhost:{own}");
    let policy = json!({ "egress": { "allow": [allowed], "private_addresses": ["127.0.0.1", "::1"] } });
    world.deploy("send", "stripe", policy.clone()).await;
    world.deploy_from(WASI_GUESTS, "fetch", "stripe", policy).await;
    let cases = [
        (format!("http://localhost:{own}@127.0.0.1:{other}/"), "invalid-request"),
        (format!("http://localhost@127.0.0.1:{other}/"), "invalid-request"),
        (format!("http://localhost:{own}@169.254.169.254/"), "invalid-request"),
        (format!("http://localhost%2f@127.0.0.1:{other}/"), "invalid-request"),
        (format!("http://localhost:{own}\\@127.0.0.1:{other}/"), "invalid-request"),
        (format!("http:\\\\localhost:{own}/"), "invalid-request"),
        (format!("http://local\thost:{own}/"), "invalid-request"),
        (format!("http://localhost:{own}\n.evil.test/"), "invalid-request"),
        (format!("http://localhost%00.evil.test:{own}/"), "invalid-request"),
        (format!("ws://localhost:{own}/"), "invalid-request"),
        (format!("http://localhost.evil.test:{own}/"), "denied"),
        (format!("http://evil.test:{own}/?{allowed}"), "denied"),
        (format!("http://127.0.0.1:{other}/?{allowed}"), "denied"),
        (format!("http://127.0.0.1:{other}/#@localhost:{own}"), "denied"),
        (format!("http://127.0.0.1:{other}/{allowed}"), "denied"),
        (format!("https://localhost:{own}/"), "denied"),
        ("http://localhost/".to_owned(), "denied"),
        (format!("http://localhost:{other}/"), "denied"),
        (format!("http://localhost.:{own}/"), "denied"),
    ];
    let calls = cases.iter().map(|(url, _)| post(url)).collect();
    for ((error, message), (url, expected)) in errors(&world, calls).await.iter().zip(&cases) {
        assert_eq!(error, expected, "{url}: {message}");
    }
    // What that client cannot read as a URL never leaves the guest.
    let readable = |url: &&String| url.starts_with("http") && !url.contains(['\\', '\t', '\n', '%']);
    let urls: Vec<_> = cases.iter().map(|(url, _)| url).filter(readable).cloned().collect();
    assert!(urls.len() >= 12);
    for (error, url) in fetched(&world, &urls).await.iter().zip(&urls) {
        assert_ne!(error, "-", "{url}");
    }
    assert!(world.books.arrivals().await.unwrap().is_empty());
    canary.untouched();
    let upper = format!("HTTP://LOCALHOST:{own}/v1/charges");
    assert_eq!(errors(&world, vec![post(&upper)]).await[0].0, "-", "a host is the same in upper case");
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1);
}
