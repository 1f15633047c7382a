//! Credentials: put into requests by the host, and into nothing else.

use std::io::Write;
use std::path::Path;

use deedbox::store;
use deedbox_books::{Behaviour, Options};
use serde_json::{Value, json};
use sqlx::Row;
use tokio_util::sync::CancellationToken;

use crate::api::client::Client;
use crate::api::{mint, serve};
use crate::harness::{World, config, logs};

mod canaries;
mod old_format;
mod reflected;
mod rotation;

const TENANT: &str = "acme";

fn policy(profile: &str) -> Value {
    json!({ "credentials": { profile: { "secret": "key", "account": "main" } }, "retry": { "max_attempts": 1 } })
}

fn call(url: &str) -> Value {
    json!({ "method": "POST", "url": url, "json": { "n": 1 } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_injected_where_the_profile_says_and_replaces_the_guests_own() {
    let world = World::keyed().await;
    world.node.gateway().vault().put(TENANT, "key", "sk_test_4242").await.unwrap();
    world.deploy("send", "stripe", policy("stripe")).await;
    let mut own = call(&world.charges());
    own["headers"] = json!([["authorization", "Bearer guest"], ["idempotency-key", "made-up"]]);
    let run = world.start("send", json!({ "calls": [own] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["status"], 201);
    let arrival = &world.books.arrivals().await.unwrap()[0];
    assert_eq!(arrival.header("authorization"), Some("Bearer sk_test_4242"));
    assert_eq!(arrival.key, world.sends(run).await[0].wire_key);
    assert_eq!(arrival.headers.iter().filter(|(name, _)| name == "idempotency-key").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_secret_is_denied_before_anything_is_claimed() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", policy("stripe")).await;
    let run = world.start("send", json!({ "calls": [call(&world.charges())] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[0]["error"], "denied");
    assert!(output[0]["message"].as_str().unwrap().contains("deedbox secret set key"), "{output}");
    assert!(world.sends(run).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_accounts_at_one_provider_never_share_an_effect() {
    let world = World::keyed().await;
    world.node.gateway().vault().put(TENANT, "key", "sk").await.unwrap();
    let mut paid = call(&world.charges());
    paid["identity"] = json!({ "business": ["charge", "42"] });
    let mut ids = Vec::new();
    for account in ["north", "south"] {
        let credentials = json!({ "credentials": { "stripe": { "secret": "key", "account": account } } });
        world.deploy("send", "stripe", credentials).await;
        let run = world.start("send", json!({ "calls": [paid] })).await;
        world.work().await;
        ids.push(world.output(run).await[0]["effect_id"].clone());
    }
    assert_ne!(ids[0], ids[1]);
    assert_eq!(world.books.applied().await.unwrap().len(), 2);
}

/// F-H01.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_in_the_query_is_in_no_error_log_or_table() {
    logs::keep();
    let canary = "canary-5f0c1d77e3b94a6d";
    let profiles = tempfile::tempdir().unwrap();
    write_profile(profiles.path());
    let mut settings = config();
    settings.gateway.profiles_dir = Some(profiles.path().to_owned());
    settings.gateway.connect_ms = 500;
    let world = World::with(Options { keyless: false, convention: None }, settings).await;
    world.node.gateway().vault().put(TENANT, "key", canary).await.unwrap();

    let nobody = format!("http://{}", std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let tls = world.origin().replace("http://", "https://");
    let nowhere = "http://no-such-host.invalid".to_owned();
    let origins = [nobody, tls, nowhere, world.origin()];
    let mut policy = policy("in-query");
    policy["egress"] = json!({ "allow": origins });
    policy["providers"] =
        origins.iter().map(|o| (o.clone(), json!("in-query"))).collect::<serde_json::Map<_, _>>().into();
    world.deploy("send", "in-query", policy).await;
    world
        .script(&[Behaviour::HoldBeforeApply, Behaviour::LyingLength, Behaviour::CutAfterApply, Behaviour::Normal])
        .await;
    let mut calls: Vec<Value> = origins[..3].iter().map(|origin| call(&format!("{origin}/x"))).collect();
    for name in ["slow", "lying", "cut", "good"] {
        let mut call = call(&world.charges());
        call["timeout_ms"] = json!(300);
        call["identity"] = json!({ "named": name });
        calls.push(call);
    }
    let run = world.start("send", json!({ "calls": calls, "fail_on_error": false })).await;
    world.work().await;

    let output = world.output(run).await;
    let errors: Vec<_> = output.as_array().unwrap().iter().map(|call| call["error"].as_str().unwrap_or("-")).collect();
    let expected =
        ["unreachable", "unreachable", "unreachable", "timed-out", "connection-lost", "connection-lost", "-"];
    assert_eq!(errors, expected, "{output}");
    let arrived = world.books.arrivals().await.unwrap();
    assert!(arrived.iter().all(|arrival| arrival.path_and_query.contains(canary)), "the provider must get it");
    assert!(!output.to_string().contains(canary));
    assert!(!logs::all().contains(canary));
    assert!(logs::all().contains("deedbox"), "something must have been logged");
    assert_eq!(tables_with(&world, canary).await, Vec::<String>::new());
    let told = told_by_the_api(&world, run).await;
    assert!(told.contains("api_key") || told.contains("charges"), "the effects must have been told: {told}");
    assert!(!told.contains(canary), "{told}");
}

/// All that the HTTP API says of a run.
async fn told_by_the_api(world: &World, run: uuid::Uuid) -> String {
    let stop = CancellationToken::new();
    let origin = serve(&world.database, config(), stop.clone()).await;
    let client = Client::new(&origin, Some(mint(world, TENANT).await));
    let mut told = String::new();
    for what in ["", "/attempts", "/effects", "/log"] {
        let answer = client.get(&format!("/v1/runs/{run}{what}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        told.push_str(&format!("{:?}\n{}\n", answer.headers, answer.text));
    }
    stop.cancel();
    told
}

fn write_profile(dir: &Path) {
    let text = r#"
        name = "in-query"
        version = "1"
        source = "this test"
        credential = { query = "api_key" }
        [[operation]]
        [operation.key]
        carrier = { header = "Idempotency-Key" }
    "#;
    std::fs::File::create(dir.join("in-query.toml")).unwrap().write_all(text.as_bytes()).unwrap();
}

/// The tables in which a text is to be seen, as a dump of the database would show it.
pub async fn tables_with(world: &World, text: &str) -> Vec<String> {
    let mut connection = world.database.connect().await;
    let names = "select table_name::text from information_schema.tables where table_schema = 'public'";
    let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut connection).await.unwrap();
    assert!(names.contains(&"effects".to_owned()));
    let mut found = Vec::new();
    for name in names {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!("select row_to_json(t)::text, t.*::text from {name} t")));
        let hex = text.bytes().map(|b| format!("{b:02x}")).collect::<String>();
        for row in rows.fetch_all(&mut connection).await.unwrap() {
            let (json, plain): (String, String) = (row.get(0), row.get(1));
            if [text, &hex].iter().any(|form| json.contains(form) || plain.contains(form)) {
                found.push(name.clone());
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_secret_cannot_be_moved_to_another_name_or_tenant() {
    let world = World::keyed().await;
    world.node.gateway().vault().put(TENANT, "other", "sk_other").await.unwrap();
    let sealed = store::secret::find(world.node.store(), TENANT, "other").await.unwrap().unwrap();
    store::secret::put(world.node.store(), TENANT, "key", &sealed).await.unwrap();
    world.deploy("send", "stripe", policy("stripe")).await;
    let run = world.start("send", json!({ "calls": [call(&world.charges())] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!(output[0]["error"], "denied", "{output}");
    assert!(world.books.arrivals().await.unwrap().is_empty());
}
