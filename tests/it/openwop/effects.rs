//! The scenarios of the effect ledger: what a row shows, one key for every try, and ids that are bound to their tenant.

use std::collections::BTreeSet;

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{create, host, host_with, run_path, settings, until_status};
use crate::api::client::Client;

const KEYINGS: [&str; 2] = ["business-identity", "activity-recipe"];

/// The specification's own schema of the projection. Nothing is fetched.
fn schema() -> Validator {
    let read = |name: &str| -> Value {
        let path = format!("{}/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let (witness, ids) = (read("effect-ledger-projection.schema.json"), read("ids.schema.json"));
    let id = ids["$id"].as_str().unwrap().to_owned();
    let registry = Registry::new().add(id, ids).unwrap().prepare().unwrap();
    jsonschema::options().with_registry(&registry).offline().should_validate_formats(true).build(&witness).unwrap()
}

/// The rows of a run, each of which shows what a row must.
async fn ledger(client: &Client, id: &str) -> Vec<Value> {
    let witness = client.get(&format!("{}/effects", run_path(id))).await.expect(200);
    let broken: Vec<String> = schema().iter_errors(&witness).map(|error| error.to_string()).collect();
    assert_eq!(broken, Vec::<String>::new(), "{witness}");
    assert_eq!(witness["runId"], id);
    let rows = witness["effects"].as_array().unwrap().clone();
    for row in &rows {
        assert!(KEYINGS.contains(&row["keying"].as_str().unwrap()), "{row}");
        let key = row["providerKey"].as_str().unwrap_or_default().to_lowercase();
        assert!(!["secret", "bearer ", "sk-"].iter().any(|word| key.contains(word)), "{row}");
    }
    rows
}

/// Scenario 3. R-L13.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_without_effects_has_an_empty_ledger() {
    let api = host().await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    until_status(&api.acme, &id, "completed").await;
    assert_eq!(ledger(&api.acme, &id).await, Vec::<Value>::new());
}

/// A provider that cuts the first connection without an answer and answers 204 to the second; gives the keys that it
/// saw.
async fn receiver(listener: TcpListener) -> Vec<String> {
    let mut keys = Vec::new();
    for answer in [&b""[..], b"HTTP/1.1 204 No Content\r\n\r\n"] {
        let (mut connection, _) = listener.accept().await.unwrap();
        keys.push(key_of(&mut connection).await);
        connection.write_all(answer).await.unwrap();
    }
    keys
}

/// The key of a request whose body, `{}`, has arrived.
async fn key_of(connection: &mut TcpStream) -> String {
    let mut request = Vec::new();
    while !request.ends_with(b"{}") {
        assert!(connection.read_buf(&mut request).await.unwrap() > 0, "the request was cut off");
    }
    let text = String::from_utf8(request).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(':'));
    let mut keys = lines.filter(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"));
    keys.next().unwrap_or_else(|| panic!("no key: {text}")).1.trim().to_owned()
}

/// Scenario 4. R-L24.
#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_sent_again_has_one_id_and_one_key() {
    let mut settings = settings();
    settings.api.openwop_seams = true;
    let api = host_with(settings).await;
    assert_eq!(
        api.nobody().get("/.well-known/openwop").await.expect(200)["conformance"]["seamsProfile"],
        "openwop-conformance-seams-v2"
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let provider = format!("http://{}/hook", listener.local_addr().unwrap());
    let seen = tokio::spawn(receiver(listener));
    let path = "/conformance/seams/sample/test/idempotency/effect-retry";
    let fired = api.acme.post(path, &json!({ "providerUrl": provider })).await.expect(201);
    let (id, effect) = (fired["runId"].as_str().unwrap(), &fired["effectId"]);

    let rows: Vec<Value> = ledger(&api.acme, id).await.into_iter().filter(|row| row["effectId"] == *effect).collect();
    assert_eq!(rows.len(), 2, "one for each send");
    let distinct = |name: &str| rows.iter().map(|row| row[name].to_string()).collect::<BTreeSet<_>>().len();
    assert_eq!((distinct("providerKey"), distinct("keying"), distinct("attempt")), (1, 1, 2));
    let seen = seen.await.unwrap();
    assert!(seen.iter().all(|key| Some(key.as_str()) == rows[0]["providerKey"].as_str()), "{seen:?} {rows:?}");
    // The suite asks with the id as it stands, too.
    let bare = api.acme.get(&format!("/runs/{id}/effects")).await.expect(200);
    assert_eq!(bare["effects"].as_array().unwrap().len(), 2);
    api.tenant("other").await.get(&format!("/runs/{id}/effects")).await.refused(403, "id_tenant_mismatch");
}

/// Scenario 6: effects' ids are bound, as runs' are.
#[tokio::test(flavor = "multi_thread")]
async fn every_effects_id_is_bound_to_its_tenant() {
    let api = host().await;
    api.deploy("send", api.policy("stripe")).await;
    let run = api.start("send", json!({ "calls": [api.charge("a"), api.charge("b")] })).await;
    api.ended(&run).await;
    let rows = ledger(&api.acme, &format!("acme/{run}")).await;
    let ids: BTreeSet<&str> = rows.iter().map(|row| row["effectId"].as_str().unwrap()).collect();
    assert_eq!((rows.len(), ids.len()), (2, 2));
    for id in ids {
        let opaque = id.strip_prefix("acme/").unwrap_or_else(|| panic!("{id}"));
        assert!((16..=128).contains(&opaque.len()) && !opaque.contains('~'), "{id}");
    }
}

/// Scenario 5 without its fork, which this host does not offer: every way out of a guest is named, and guarded.
#[tokio::test(flavor = "multi_thread")]
async fn every_way_out_of_a_guest_is_named_and_guarded() {
    let mut settings = settings();
    settings.api.openwop_seams = true;
    let api = host_with(settings).await;
    let manifest = api.acme.get("/host/effect-seams").await.expect(200);
    assert_eq!((&manifest["manifestVersion"], &manifest["host"]["name"]), (&json!("1"), &json!("deedbox")));
    let kinds: Vec<&Value> = manifest["seams"].as_array().unwrap().iter().map(|seam| &seam["kind"]).collect();
    assert_eq!(kinds, ["http", "queue", "storage"]);
    for seam in manifest["seams"].as_array().unwrap() {
        assert_eq!(seam["guarded"], true);
        assert!(!seam["guardedBy"].as_str().unwrap().is_empty() && seam["seam"].is_string(), "{seam}");
    }
    api.nobody().get("/host/effect-seams").await.refused(401, "unauthenticated");
}
