//! `GET /runs/{runId}/effects`, by the schema of the OpenWOP profile.

use std::time::Duration;

use deedbox::config::DirectoryConfig;
use deedbox_books::{Behaviour, Options};
use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

use super::client::Answer;
use super::{Api, no_run};
use crate::harness::nats::Nats;
use crate::harness::{World, config, logs};

const CREDENTIAL: &str = "sk_canary_4242";
const BODY: &str = "canary-body-77";
const HEADER: &str = "canary-header-31";

/// The profile's schema, read from the fixtures; nothing is fetched.
fn schema() -> Validator {
    let read = |name: &str| -> Value {
        let path = format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let (witness, ids) = (read("effect-ledger-projection.schema.json"), read("ids.schema.json"));
    let id = ids["$id"].as_str().unwrap().to_owned();
    let registry = Registry::new().add(id, ids).unwrap().prepare().unwrap();
    let options = jsonschema::options().with_registry(&registry).offline();
    options.should_validate_formats(true).build(&witness).unwrap()
}

/// The rows of a witness that holds to the schema.
#[track_caller]
fn rows(answer: &Answer, run: &str) -> Vec<Value> {
    let witness = answer.expect(200);
    let broken: Vec<String> = schema().iter_errors(&witness).map(|error| error.to_string()).collect();
    assert_eq!(broken, Vec::<String>::new(), "{witness}");
    assert_eq!(witness["runId"], format!("acme/{run}"));
    for canary in [CREDENTIAL, BODY, HEADER, "acct_7", "/v1/charges"] {
        assert!(!answer.text.contains(canary), "{canary}: {}", answer.text);
    }
    witness["effects"].as_array().unwrap().clone()
}

fn states(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| row["state"].as_str().unwrap()).collect()
}

async fn witness(api: &Api, run: &str) -> Vec<Value> {
    rows(&api.acme.get(&format!("/runs/acme~2F{run}/effects")).await, run)
}

/// A call with a canary in its body and its headers.
fn call(api: &Api, name: &str) -> Value {
    let mut call = api.charge(name);
    call["json"] = json!({ "note": BODY });
    call["headers"] = json!([["x-canary", HEADER]]);
    call
}

async fn deploy(api: &Api, profile: &str) {
    let mut policy = api.policy(profile);
    if profile == "stripe" {
        api.acme.put("/v1/secrets/key", &json!({ "value": CREDENTIAL })).await.expect(204);
        policy["credentials"] = json!({ "stripe": { "secret": "key", "account": "acct_7" } });
    }
    api.deploy("send", policy).await;
}

/// The schema itself must be able to refuse.
#[test]
fn the_schema_refuses_what_is_no_witness() {
    let row = json!({ "effectId": format!("acme/{}", "0".repeat(64)), "nodeId": "a", "attempt": 1,
        "keying": "activity-recipe", "state": "completed", "at": "2026-01-01T00:00:00.000001Z" });
    let with = |field: &str, value: Value| {
        let mut row = row.clone();
        row[field] = value;
        json!({ "runId": format!("acme/{}", no_run()), "effects": [row] })
    };
    assert!(schema().is_valid(&with("attempt", json!(1))));
    for (field, value) in [
        ("effectId", json!("acme/short")),
        ("attempt", json!(0)),
        ("state", json!("done")),
        ("at", json!("yesterday")),
        ("body", json!("x")),
    ] {
        assert!(!schema().is_valid(&with(field, value)), "{field}");
    }
}

/// R-L13, R-L14, R-L16, R-L23.
#[tokio::test(flavor = "multi_thread")]
async fn a_clean_effect_is_witnessed_once_and_shows_no_content() {
    logs::keep();
    let api = Api::idle().await;
    deploy(&api, "stripe").await;
    let run = api.start("send", json!({ "calls": [call(&api, "a"), call(&api, "b")] })).await;
    assert_eq!(witness(&api, &run).await, Vec::<Value>::new());
    api.work().await;
    let arrivals = api.world.books.arrivals().await.unwrap();
    assert_eq!(arrivals[0].header("authorization"), Some(&*format!("Bearer {CREDENTIAL}")));
    assert!(arrivals[0].header("x-canary") == Some(HEADER) && arrivals[0].body.contains(BODY));
    let rows = witness(&api, &run).await;
    assert_eq!(states(&rows), ["completed", "completed"]);
    for (row, arrival) in rows.iter().zip(&arrivals) {
        assert_eq!(
            (&row["nodeId"], &row["attempt"], &row["keying"]),
            (&json!("send"), &json!(1), &json!("activity-recipe"))
        );
        assert_eq!(row["providerKey"].as_str(), arrival.key.as_deref());
    }
    let effects = api.effects_of(&run).await;
    assert_eq!(rows[1]["effectId"], format!("acme/{}", effects[1]["effect_id"].as_str().unwrap()));
    assert_eq!(rows[1]["at"], effects[1]["sends"][0]["started_at"]);
    let ledger = api.acme.get("/v1/effects").await.text;
    assert!([CREDENTIAL, BODY, HEADER].iter().all(|canary| !ledger.contains(canary)), "{ledger}");
    assert!(!logs::all().contains(CREDENTIAL));
}

/// R-L24, R-Z09.
#[tokio::test(flavor = "multi_thread")]
async fn two_sends_of_one_effect_are_two_rows_under_one_id_and_one_key() {
    let api = Api::idle().await;
    deploy(&api, "stripe").await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let run = api.start("send", json!({ "calls": [call(&api, "a")], "fail_on_error": true })).await;
    api.work().await;
    let rows = witness(&api, &run).await;
    assert_eq!(states(&rows), ["claimed", "completed"]);
    assert_eq!((&rows[0]["attempt"], &rows[1]["attempt"]), (&json!(1), &json!(2)));
    let same =
        |name: &str| rows[0][name] == rows[1][name] && rows[0][name].as_str().is_some_and(|text| !text.is_empty());
    assert!(same("effectId") && same("providerKey") && same("keying"), "{rows:?}");
    let arrivals = api.world.books.arrivals().await.unwrap();
    assert!(arrivals.iter().all(|arrival| arrival.key.as_deref() == rows[0]["providerKey"].as_str()));
    assert_eq!((arrivals.len(), api.world.books.applied().await.unwrap().len()), (2, 1));
}

/// R-L15.
#[tokio::test(flavor = "multi_thread")]
async fn an_escaped_effect_is_witnessed_as_escaped_and_without_a_key() {
    let api = Api::keyless().await;
    deploy(&api, "keyless").await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let run = api.start("send", json!({ "calls": [call(&api, "a")] })).await;
    api.work().await;
    let rows = witness(&api, &run).await;
    assert_eq!(states(&rows), ["escaped"]);
    assert_eq!(rows[0].get("providerKey"), None);
}

/// R-L25.
#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_was_not_applied_is_witnessed_as_released() {
    let api = Api::keyless().await;
    deploy(&api, "keyless").await;
    let busy = Behaviour::StatusBeforeApply { status: 429, retry_after: None, body: None };
    api.world.script(&[busy.clone(), Behaviour::Normal, busy]).await;
    let calls = [call(&api, "a"), call(&api, "a"), call(&api, "b")];
    let run = api.start("send", json!({ "calls": calls })).await;
    api.work().await;
    let rows = witness(&api, &run).await;
    assert_eq!(states(&rows), ["released", "completed", "released"]);
    assert!(rows[0]["effectId"] == rows[1]["effectId"] && rows[2]["effectId"] != rows[0]["effectId"], "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_business_effect_is_witnessed_with_its_keying() {
    let api = Api::idle().await;
    deploy(&api, "stripe").await;
    let mut business = call(&api, "");
    business["identity"] = json!({ "business": ["pay", "order-7"] });
    let run = api.start("send", json!({ "calls": [business] })).await;
    api.work().await;
    let rows = witness(&api, &run).await;
    assert_eq!((rows.len(), &rows[0]["keying"]), (1, &json!("business-identity")));
    assert!(!rows[0].to_string().contains("order-7"), "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runs_id_is_taken_in_both_projections_and_belongs_to_its_tenant() {
    let api = Api::idle().await;
    deploy(&api, "stripe").await;
    let run = api.start("send", json!({ "calls": [call(&api, "a")] })).await;
    api.work().await;
    for form in [format!("acme~2F{run}"), format!("acme%2F{run}"), format!("%61cme~2F{run}"), format!("~61cme%2f{run}")]
    {
        assert_eq!(rows(&api.acme.get(&format!("/runs/{form}/effects")).await, &run).len(), 1);
    }
    for malformed in
        [format!("acme~2f{run}"), format!("acme~G0{run}"), format!("acme~2F{run}~"), "~".into(), "~FF".into()]
    {
        api.acme.get(&format!("/runs/{malformed}/effects")).await.refused(400, "validation_error");
    }
    for bare in [&run, "x"] {
        api.acme.get(&format!("/runs/{bare}/effects")).await.refused(400, "validation_error");
    }
    for unknown in [format!("acme~2F{}", no_run()), format!("acme~2F{}", run.to_uppercase()), "acme~2Fx".into()] {
        api.acme.get(&format!("/runs/{unknown}/effects")).await.refused(404, "not_found");
    }
    let other = api.tenant("other").await;
    let mut foreign = Vec::new();
    for form in [format!("acme~2F{run}"), format!("acme%2F{}", no_run()), "nobody~2Fx".into(), "acme~2F".into()] {
        foreign.push(other.get(&format!("/runs/{form}/effects")).await.refused(403, "id_tenant_mismatch"));
    }
    assert!(foreign.iter().all(|body| *body == foreign[0]), "{foreign:?}");
    other.get(&format!("/runs/other~2F{run}/effects")).await.refused(404, "not_found");
    api.nobody().get(&format!("/runs/acme~2F{run}/effects")).await.refused(401, "unauthenticated");
}

/// R-L24: what is not HTTP is witnessed like all else.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_and_a_file_are_witnessed_with_their_keys_and_without_their_content() {
    let exports = tempfile::tempdir().unwrap();
    let mut settings = config();
    let granted = DirectoryConfig { path: exports.path().to_owned(), tenants: Vec::new() };
    settings.files.directories.insert("exports".to_owned(), granted);
    let world = World::with(Options { keyless: false, convention: None }, settings.clone()).await;
    let api = Api::with(world, settings).await;
    let server = Nats::start().await;
    server.stream("ORDERS", Duration::from_secs(120)).await;
    let policy = json!({ "messaging": { "server": server.url() }, "files": { "allow": ["exports"] } });
    api.deploy("publish", policy.clone()).await;
    api.deploy("write-files", policy).await;
    let message = json!({ "subject": "orders.paid", "payload": BODY, "headers": [["x-canary", HEADER]] });
    let published = api.start("publish", json!({ "messages": [message] })).await;
    let written = api.start("write-files", json!({ "files": [{ "path": "exports/a.csv", "text": BODY }] })).await;
    api.work().await;
    let message = witness(&api, &published).await;
    assert_eq!((states(&message), &message[0]["nodeId"]), (vec!["completed"], &json!("publish")));
    assert_eq!(message[0]["providerKey"].as_str(), server.kept("ORDERS").await[0].id.as_deref());
    let file = witness(&api, &written).await;
    assert_eq!((states(&file), &file[0]["keying"]), (vec!["completed"], &json!("activity-recipe")));
    assert!(file[0]["providerKey"].as_str().is_some_and(|key| !key.is_empty()));
    let ledger = api.acme.get("/v1/effects").await.text;
    assert!(ledger.contains("file:///exports/a.csv") && ledger.contains("/orders.paid"), "{ledger}");
    assert!([BODY, HEADER].iter().all(|canary| !ledger.contains(canary)), "{ledger}");
}
