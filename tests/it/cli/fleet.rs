//! A fleet put together by hand: `migrate`, `serve` and `worker` on a database of one's own.

use std::path::Path;

use deedbox::store;
use serde_json::json;
use tokio::process::Command;

use super::program::{Running, component_file, deedbox, finish, order, place, provider};
use crate::api::tls::new_pair;
use crate::harness::{Database, shared};

/// An empty database on the tests' own server.
async fn empty(name: &str) -> String {
    let other = Database::fresh().await.url;
    let (path, query) = other.split_once('?').unwrap();
    let server = path.rsplit_once('/').unwrap().0;
    store::create_database(&format!("{server}/postgres?{query}"), name).await.unwrap();
    format!("{server}/{name}?{query}")
}

fn part(url: &str, arguments: &[&str], cache: &Path) -> Command {
    let mut command = deedbox(arguments);
    command.env("DATABASE_URL", url).arg("--master-key-file").arg(shared::master_key_file());
    command.arg("--cache-dir").arg(cache);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fleet_is_migrated_served_and_worked_for_by_hand() {
    let place = place();
    let (origin, books) = provider(place.path()).await;
    let url = empty("by_hand").await;
    let cache = |name: &str| place.path().join(name);
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["worker"]] {
        let words = finish(part(&url, arguments, &cache("early"))).await.failed(1);
        assert!(words.contains("deedbox migrate"), "{words}");
    }
    let migrate = || finish(deedbox(&["--json", "migrate", "--database-url", &url]));
    assert_eq!(migrate().await.json(), json!({ "migrated": true }));
    assert_eq!(migrate().await.json(), json!({ "migrated": true }));

    let mut serve = Running::start(part(&url, &["serve", "--listen", "127.0.0.1:0"], &cache("a")), cache("a.log"));
    let address = serve.line().await.strip_prefix("listening on ").unwrap().to_owned();
    let mut worker = Running::start(part(&url, &["worker", "--name", "w-1"], &cache("b")), cache("b.log"));
    assert_eq!(worker.line().await, "working as w-1");

    let admin = first_token(&url).await;
    let ask = |token: &str, arguments: &[&str]| {
        let mut command = deedbox(&[&["--json"], arguments].concat());
        command.env("DEEDBOX_URL", &address).env("DEEDBOX_TOKEN", token);
        finish(command)
    };
    ask(&admin, &["tenant", "create", "shop"]).await.well();
    let made = ask(&admin, &["token", "create", "--tenant", "shop"]).await.json();
    let token = made["token"].as_str().unwrap();
    let policy = cache("policy.toml");
    std::fs::write(&policy, format!("[egress]\nallow = [\"{origin}\"]\n[providers]\n\"{origin}\" = \"stripe\"\n"))
        .unwrap();
    let component = component_file(place.path(), "charge_once.wasm");
    ask(token, &["deploy", &component, "--policy", policy.to_str().unwrap()]).await.well();
    let run = ask(token, &["start", "charge-once", "--input", &order(&origin), "--wait"]).await.json();
    assert_eq!(run["output"]["charge_id"], "ch_1");
    assert_eq!(books.applied().await.unwrap().len(), 1);
    let attempts = ask(token, &["runs", "attempts", run["run_id"].as_str().unwrap()]).await.json();
    assert_eq!(attempts["items"][0]["worker"], "w-1");

    for running in [worker, serve] {
        running.signal("TERM").await;
        let ended = running.end().await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.err.contains("ERROR") && !ended.err.contains("panicked"), "{ended:?}");
    }
}

/// The first administrator's token, which only the database can be given: once, and again only if it is asked for.
async fn first_token(url: &str) -> String {
    let bootstrap = |more: &[&str]| {
        let arguments = [&["--json", "token", "bootstrap", "--database-url", url], more].concat();
        finish(deedbox(&arguments))
    };
    let first = bootstrap(&[]).await.json();
    assert!(bootstrap(&[]).await.failed(1).contains("--another"));
    let another = bootstrap(&["--another", "--label", "the other one"]).await.json();
    assert_ne!(first["token"], another["token"]);
    first["token"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_a_certificate_is_called_by_who_trusts_it() {
    let place = place();
    let url = empty("over_tls").await;
    finish(deedbox(&["migrate", "--database-url", &url])).await.well();
    let admin = first_token(&url).await;
    let (pair, other) = (new_pair(), new_pair());
    let file = |name: &str, text: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let certificate = file("cert.pem", &pair.certificate_pem);
    let (key, other_key) = (file("key.pem", &pair.key_pem), file("other.pem", &other.key_pem));
    let serving = |certificate: &str, key: &str| {
        let flags = ["serve", "--listen", "127.0.0.1:0", "--tls-cert", certificate, "--tls-key", key];
        part(&url, &flags, &place.path().join("cache"))
    };
    for (certificate, key, words) in [
        ("nowhere", key.as_str(), "--tls-cert"),
        (certificate.as_str(), certificate.as_str(), "private key"),
        (certificate.as_str(), other_key.as_str(), "together"),
    ] {
        let said = finish(serving(certificate, key)).await.failed(1);
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(finish(deedbox(&["serve", "--tls-cert", &certificate])).await.failed(2).contains("--tls-key"));

    let mut serve = Running::start(serving(&certificate, &key), place.path().join("log"));
    let address = serve.line().await.strip_prefix("listening on ").unwrap().to_owned();
    assert!(address.starts_with("https://"), "{address}");
    let ask = |url: &str, trusted: Option<&str>| {
        let mut command = deedbox(&["tenant", "list", "--url", url]);
        command.env("DEEDBOX_TOKEN", &admin);
        if let Some(file) = trusted {
            command.env("DEEDBOX_CA_CERT", file);
        }
        finish(command)
    };
    ask(&address, Some(&certificate)).await.well();
    let said = ask(&address, None).await.failed(3);
    assert!(said.contains("not trusted") && said.contains("--ca-cert"), "{said}");
    ask(&address.replace("https", "http"), None).await.failed(3);
    assert!(ask(&address, Some(&key)).await.failed(2).contains("--ca-cert"));
    serve.signal("TERM").await;
    assert_eq!(serve.end().await.code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_that_lacks_what_it_needs_says_which() {
    let place = place();
    let missing = place.path().join("no-key");
    let nowhere = "postgres://someone@localhost/nothing?host=/nowhere";
    let mut command = deedbox(&["worker", "--master-key-file", missing.to_str().unwrap()]);
    command.env("DATABASE_URL", nowhere).arg("--cache-dir").arg(place.path());
    assert!(finish(command).await.failed(1).contains("no-key"));
    assert!(finish(deedbox(&["serve"])).await.failed(2).contains("--database-url"));
    for arguments in [&["serve", "--listen", "127.0.0.1:0"][..], &["worker"]] {
        let words = finish(part(nowhere, arguments, place.path())).await.failed(1);
        assert!(words.contains("database cannot be reached"), "{words}");
    }
    let words = finish(deedbox(&["migrate", "--database-url", nowhere])).await.failed(1);
    assert!(words.contains("database cannot be reached"), "{words}");
    let words = finish(deedbox(&["migrate", "--database-url", "nonsense"])).await.failed(1);
    assert!(words.contains("database address"), "{words}");
}
