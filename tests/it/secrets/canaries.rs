//! Canaries in every place where a secret may be, and a fleet of real processes that meets all that goes wrong: nothing that it
//! wrote or told has one, in any form.

mod fleet;
mod search;

use data_encoding::{BASE64, HEXLOWER};
use deedbox::store::tenant::ADMIN;
use deedbox_books::Behaviour;
use serde_json::{Value, json};
use uuid::Uuid;

use self::fleet::Fleet;
use self::search::Canary;
use super::TENANT;
use crate::api::mint;
use crate::harness::nats::{Nats, stream_config};
use crate::harness::shared;

const SOON: std::time::Duration = std::time::Duration::from_secs(30);

/// With characters that encodings treat in their own ways.
fn value(name: &str) -> String {
    format!("canary-{name}+/={}", Uuid::new_v4().simple())
}

fn secret_part(token: &str) -> String {
    token.rsplit('.').next().unwrap().to_owned()
}

/// F-H01, F-H04, F-H06, F-E14, R-L16.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_canary_is_in_anything_that_a_fleet_writes_or_tells() {
    let old = std::fs::read_to_string(shared::master_key_file()).unwrap().trim().to_owned();
    let new = HEXLOWER.encode(&[Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat());
    let mut fleet = Fleet::start(vec![("DEEDBOX_MASTER_KEY", old.clone())]).await;
    let nats_password = value("nats");
    let nats = Nats::start_with(&["--user", "bank", "--pass", &nats_password]).await;
    make_stream(&nats, &nats_password).await;

    take_a_token(&mut fleet).await;
    let secrets = put_secrets(&mut fleet, nats_password).await;
    for profile in ["in-query", "in-header"] {
        meet_failures(&mut fleet, profile, &secrets).await;
    }
    guest_headers(&mut fleet).await;
    messages(&mut fleet, nats).await;
    crash_and_replay(&mut fleet).await;
    broken_database(&mut fleet).await;

    fleet.canaries.push(Canary::new("the new master key", new.clone()));
    fleet.keys = vec![("DEEDBOX_MASTER_KEY", new.clone()), ("DEEDBOX_OTHER_MASTER_KEYS", old)];
    fleet.finish(&["key", "rotate"]).await;
    fleet.finish(&["key", "list"]).await;
    fleet.end().await;
    fleet.keys = vec![("DEEDBOX_MASTER_KEY", new)];
    fleet.begin().await;
    meet_failures(&mut fleet, "in-header", &secrets).await;
    for path in [
        "/v1/runs",
        "/v1/effects",
        "/v1/secrets",
        "/v1/providers",
        "/v1/activities",
        "/v1/callbacks?state=delivered",
        "/v1/hooks",
    ] {
        fleet.get(path).await.expect(200);
    }
    fleet.end().await;
    were_sent(&fleet, &secrets).await;
    assert_eq!(fleet.found(), Vec::<String>::new());
    planted(&mut fleet).await;
    let Fleet { server, world, .. } = fleet;
    drop(world);
    server.end().await;
}

async fn make_stream(nats: &Nats, password: &str) {
    let options = async_nats::ConnectOptions::with_user_and_password("bank".into(), password.into());
    let context = async_nats::jetstream::new(options.connect(nats.url()).await.unwrap());
    context.create_stream(stream_config("ORDERS")).await.unwrap();
}

/// The one answer that has the token's text is not kept; the token is used from then on.
async fn take_a_token(fleet: &mut Fleet) {
    let admin = mint(&fleet.world, ADMIN).await;
    fleet.canaries.push(Canary::new("the administrator's token", secret_part(&admin)));
    let own = fleet.client.clone();
    fleet.client = own.with_token(&admin);
    let path = format!("/v1/tenants/{TENANT}/tokens");
    let minted = fleet.keyed(reqwest::Method::POST, &path, &json!({ "label": "canary" })).await.expect(201);
    fleet.get(&path).await.expect(200);
    let token = minted["token"].as_str().unwrap().to_owned();
    fleet.canaries.push(Canary::new("a tenant's token", secret_part(&token)));
    fleet.client = own.with_token(&token);
}

/// The credentials of the two profiles.
struct Secrets {
    query: String,
    bearer: String,
}

async fn put_secrets(fleet: &mut Fleet, nats: String) -> Secrets {
    let signing = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
    let webhook = BASE64.encode(&signing);
    let secrets = Secrets { query: value("query"), bearer: value("bearer") };
    for (name, value) in [
        ("query", secrets.query.clone()),
        ("bearer", secrets.bearer.clone()),
        ("nats", nats),
        ("webhook", format!("whsec_{webhook}")),
        ("unused", value("unused")),
    ] {
        fleet.put(&format!("/v1/secrets/{name}"), &json!({ "value": value })).await.expect(204);
        fleet.canaries.push(Canary::new("a secret", value));
    }
    fleet.canaries.push(Canary::new("a webhook's key", webhook));
    let refused = value("refused");
    fleet.canaries.push(Canary::new("a refused secret", refused.clone()));
    fleet.put("/v1/secrets/refused", &json!({ "value": "x", "vaule": refused })).await.refused(400, "validation_error");
    secrets
}

fn policy(origins: &[String], profile: &str) -> Value {
    let providers: serde_json::Map<_, _> = origins.iter().map(|origin| (origin.clone(), json!(profile))).collect();
    json!({
        "egress": { "allow": origins },
        "providers": providers,
        "credentials": {
            "in-query": { "secret": "query", "account": "main" },
            "in-header": { "secret": "bearer", "account": "main" },
        },
        "retry": { "max_attempts": 4, "initial_interval": "1ms", "jitter": "none" },
    })
}

fn call(url: &str, name: &str) -> Value {
    let identity = json!({ "named": name });
    json!({ "method": "POST", "url": url, "json": { "n": 1 }, "timeout_ms": 20_000, "identity": identity })
}

/// Nobody listens, no TLS, no such name, silence, a body that breaks off, an echo of all headers, a refusal with the credential in
/// every form; and a success whose end is told to a receiver.
async fn meet_failures(fleet: &mut Fleet, profile: &str, secrets: &Secrets) {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let origin = fleet.world.origin();
    let (tls, nowhere) = (origin.replace("http://", "https://"), "http://no-such-host.invalid".to_owned());
    let origins = [format!("http://{nobody}"), tls, nowhere, origin.clone()];
    let policy = policy(&origins, profile);
    fleet.deploy("send", policy).await;
    let value = if profile == "in-query" { &secrets.query } else { &secrets.bearer };
    // A provider writes no dumps.
    let forms = Canary::new("", value.clone()).forms().into_iter().filter(|form| !form.contains("\\\\"));
    let body = Some(forms.collect::<Vec<_>>().join("\n"));
    let refusal = Behaviour::StatusBeforeApply { status: 402, retry_after: None, body };
    let script = [Behaviour::HoldBeforeApply, Behaviour::LyingLength, Behaviour::Echo, refusal, Behaviour::Normal];
    fleet.world.script(&script).await;
    let mut calls: Vec<Value> = origins[..3]
        .iter()
        .zip(["nobody", "tls", "nowhere"])
        .map(|(origin, name)| call(&format!("{origin}/x"), name))
        .collect();
    calls.extend(["silent", "broken", "echo", "refused", "good"].map(|name| call(&fleet.world.charges(), name)));
    calls[3]["timeout_ms"] = json!(1_000);
    let callback = json!({ "url": format!("{origin}/hooks?of=acme") });
    let run = fleet.begin_run("send", &json!({ "input": { "calls": calls }, "callback": callback })).await;
    let output = fleet.ended(&run).await;
    let results: Vec<String> = output.as_array().unwrap().iter().map(result).collect();
    let expected = ["unreachable", "unreachable", "unreachable", "timed-out", "connection-lost", "200", "402", "201"];
    assert_eq!(results, expected, "{profile}");
    let told = async || fleet.client.get(&format!("/v1/runs/{run}/callback")).await.json()["state"] == "delivered";
    crate::worker::until("the receiver is told", told).await;
}

fn result(call: &Value) -> String {
    call["error"].as_str().map_or_else(|| call["status"].to_string(), str::to_owned)
}

/// What a guest puts into a header is its own, and still no log's.
async fn guest_headers(fleet: &mut Fleet) {
    let mut call = call(&fleet.world.charges(), "guest");
    call["headers"] = json!([["x-guest", "canary-{subkey:canary}"]]);
    let run = fleet.begin_run("send", &json!({ "input": { "calls": [call] } })).await;
    assert_eq!(result(&fleet.ended(&run).await[0]), "201");
    let arrivals = fleet.world.books.arrivals().await.unwrap();
    let sent = arrivals.iter().find_map(|arrival| arrival.header("x-guest")).unwrap().to_owned();
    fleet.canaries.push(Canary::new("a guest's header", sent));
}

/// A message that arrives, and one to a server that is gone.
async fn messages(fleet: &mut Fleet, mut nats: Nats) {
    let mut policy = policy(&[fleet.world.origin()], "in-header");
    policy["messaging"] = json!({ "server": nats.url(), "user": "bank", "secret": "nats", "account": "main" });
    policy["retry"]["max_attempts"] = json!(1);
    fleet.deploy("publish", policy).await;
    let publish = json!({ "input": { "messages": [{ "subject": "orders.paid", "payload": "42" }] } });
    let run = fleet.begin_run("publish", &publish).await;
    assert_eq!(fleet.ended(&run).await[0]["stream"], "ORDERS");
    nats.stop();
    let run = fleet.begin_run("publish", &publish).await;
    assert_eq!(fleet.ended(&run).await[0]["error"], "unreachable");
}

/// The worker is killed after the provider has applied, and another sends again under the same key, and replays the rest.
async fn crash_and_replay(fleet: &mut Fleet) {
    let applied = fleet.world.books.applied().await.unwrap().len() as u64;
    fleet.world.script(&[Behaviour::Normal, Behaviour::HoldAfterApply]).await;
    let mut calls = [call(&fleet.world.charges(), "first"), call(&fleet.world.charges(), "second")];
    calls.iter_mut().for_each(|call| call["timeout_ms"] = json!(60_000));
    let run = fleet.begin_run("send", &json!({ "input": { "calls": calls } })).await;
    fleet.world.books.wait_for_applied(applied + 2, SOON).await.unwrap();
    fleet.replace_worker().await;
    let output = fleet.ended(&run).await;
    assert_eq!((&output[0]["source"], &output[1]["status"]), (&json!("replayed"), &json!(201)), "{output}");
}

/// A statement that fails is answered with an id and nothing of what is behind the API.
async fn broken_database(fleet: &mut Fleet) {
    fleet.world.database.execute("alter table secrets rename to secrets_away").await;
    let lost = value("lost");
    fleet.canaries.push(Canary::new("a secret that could not be put", lost.clone()));
    let answers = [fleet.get("/v1/secrets").await, fleet.put("/v1/secrets/lost", &json!({ "value": lost })).await];
    for answer in answers {
        let body = answer.refused(500, "internal_error");
        assert_eq!(body["details"]["correlationId"], answer.header("x-request-id"));
        assert_eq!(body["details"].as_object().unwrap().len(), 1, "{body}");
        let text = answer.text.to_lowercase();
        for word in ["secrets", "relation \"", "select", "insert", "sql", "postgres", "127.0.0.1", "socket", ".rs", "/"]
        {
            assert!(!text.contains(word), "{word}: {text}");
        }
    }
    fleet.world.database.execute("alter table secrets_away rename to secrets").await;
}

/// Else a fleet that sends nothing would pass.
async fn were_sent(fleet: &Fleet, secrets: &Secrets) {
    let arrivals = fleet.world.books.arrivals().await.unwrap();
    let bearer = format!("Bearer {}", secrets.bearer);
    assert!(arrivals.iter().any(|arrival| arrival.header("authorization") == Some(bearer.as_str())));
    let forms = Canary::new("", secrets.query.clone()).forms();
    assert!(arrivals.iter().any(|arrival| forms.iter().any(|form| arrival.path_and_query.contains(form.as_str()))));
    assert!(arrivals.iter().any(|arrival| arrival.header("webhook-signature").is_some()));
    let logs = std::fs::read(fleet.written().join("part-2.log")).unwrap();
    assert!(String::from_utf8_lossy(&logs).contains("TRACE"), "the logs must be complete");
}

/// The search would have found one: in a table, in a file, in an answer.
async fn planted(fleet: &mut Fleet) {
    let value = fleet.canaries.iter().find(|canary| canary.what == "a secret").unwrap().value.clone();
    let base64 = BASE64.encode(format!("Basic user:{value}").as_bytes());
    let row = format!("create table planted (x text); insert into planted values ($canary${base64}$canary$)");
    fleet.world.database.execute(&row).await;
    std::fs::write(fleet.written().join("cache/planted"), HEXLOWER.encode(format!("x{value}").as_bytes())).unwrap();
    fleet.plant(json!({ "a": value }).to_string());
    let found = fleet.found();
    for place in ["the dump", "cache/planted", "an answer"] {
        assert!(found.iter().any(|it| it.starts_with("a secret in ") && it.ends_with(place)), "{place}: {found:?}");
    }
    assert_eq!(found.len(), 3, "{found:?}");
}
