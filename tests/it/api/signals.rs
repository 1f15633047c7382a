//! `/v1/runs/{run}/signals`: messages to runs, over sockets. What was taken is told apart from what was there already,
//! and nothing that was taken is lost.

use deedbox::config::Config;
use deedbox_books::Options;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Answer, Client, whole_list};
use super::{Api, no_run};
use crate::harness::{World, config};

mod crowd;
mod effects;
mod keeping;
mod keys;
mod limits;

const KEY: &str = "0123456789abcdefABCD._~-";
const OTHER_KEY: &str = "another-key-0123456789-abc";

/// A node that serves, beside a keyed provider and a worker that waits for signals only for a moment.
async fn idle() -> Api {
    with(|_| {}).await
}

async fn with(change: impl FnOnce(&mut Config)) -> Api {
    of(Options { keyless: false, convention: None }, change).await
}

async fn of(provider: Options, change: impl FnOnce(&mut Config)) -> Api {
    let mut settings = config();
    settings.signals.wait_ms = 50;
    change(&mut settings);
    Api::with(World::with(provider, settings.clone()).await, settings).await
}

/// The input of a guest that waits for signals of these names, one after another, and returns their payloads.
fn waits_for(names: &[&str]) -> Value {
    let asks: Vec<Value> = names.iter().map(|name| json!({ "wait": { "name": name } })).collect();
    json!({ "asks": asks })
}

/// A run that waits for one signal, `go`, and has not begun.
async fn listener(api: &Api) -> String {
    api.deploy("listen", json!({})).await;
    api.start("listen", waits_for(&["go"])).await
}

fn path(run: &str, name: &str) -> String {
    format!("/v1/runs/{run}/signals/{name}")
}

/// Delivers a signal, under the key of a header if there is one.
async fn deliver(client: &Client, run: &str, name: &str, key: Option<&str>, payload: &Value) -> Answer {
    let request = client.request(Method::POST, &path(run, name)).json(payload);
    let request = match key {
        Some(key) => request.header("idempotency-key", key),
        None => request,
    };
    client.send(request).await
}

/// Asserts that a signal was taken, and whether it was the first under its key.
#[track_caller]
fn taken(answer: &Answer, delivered: bool) {
    assert_eq!(answer.expect(202), json!({ "signal_delivered": delivered }));
}

async fn signals_of(api: &Api, run: &str) -> Vec<Value> {
    whole_list(&api.acme.get(&format!("/v1/runs/{run}/signals")).await)
}

/// R-B01, R-B02, R-B08, F-D01.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_is_delivered_once_under_its_key() {
    let api = idle().await;
    let run = listener(&api).await;
    for (n, delivered) in [(1, true), (2, false), (3, false)] {
        // Whoever repeats a key is not asked whether the payload is the same.
        taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!({ "n": n })).await, delivered);
    }
    let listed = signals_of(&api, &run).await;
    assert_eq!((listed.len(), &listed[0]["name"], &listed[0]["payload"]), (1, &json!("go"), &json!({ "n": 1 })));
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!([{ "n": 1 }]));
}

/// F-D08: whoever did not hear the answer asks again, and it counts once.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_asked_for_again_without_a_second_signal() {
    let api = idle().await;
    let run = listener(&api).await;
    let server = api.origin.trim_start_matches("http://").to_owned();
    let severed = crate::harness::severed::Severed::start(server, "/signals/go", 1).await;
    let lossy = Client::new(&format!("http://{}", severed.address), Some(super::mint(&api.world, "acme").await));
    let send = || lossy.request(Method::POST, &path(&run, "go")).header("idempotency-key", KEY).json(&json!("x"));
    let lost = send().send().await;
    assert!(lost.is_err(), "the answer was to be lost: {lost:?}");
    assert_eq!(signals_of(&api, &run).await.len(), 1, "and yet it was taken");
    taken(&lossy.send(send()).await, false);
    assert_eq!(signals_of(&api, &run).await.len(), 1);
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!(["x"]));
}

/// Brings a run of `activity` to its end in this state, after a signal under `KEY`.
async fn ended_as(api: &Api, activity: &str, input: Value, state: &str) -> String {
    api.deploy(activity, json!({})).await;
    let run = api.start(activity, input).await;
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!(1)).await, true);
    if state == "cancelled" {
        api.acme.post(&format!("/v1/runs/{run}/cancel"), &json!({})).await.expect(200);
    }
    api.work().await;
    assert_eq!(api.run(&run).await["state"], state);
    run
}

/// R-B09, R-B10, R-B11, F-D01, F-D05.
#[tokio::test(flavor = "multi_thread")]
async fn an_ended_run_knows_its_keys_and_takes_nothing_new() {
    let api = idle().await;
    let permanent = json!({ "code": "no", "message": "m", "kind": "permanent" });
    for (activity, input, state) in
        [("noop", json!(1), "completed"), ("fail", permanent, "failed"), ("listen", waits_for(&["go"]), "cancelled")]
    {
        let run = ended_as(&api, activity, input, state).await;
        taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!(1)).await, false);
        taken(&deliver(&api.acme, &run, "other", Some(KEY), &json!(2)).await, false);
        for key in [Some(OTHER_KEY), None] {
            let refused = deliver(&api.acme, &run, "go", key, &json!(1)).await.refused(409, "run_terminal");
            assert_eq!(refused["details"], json!({ "runStatus": state }));
        }
        assert_eq!(signals_of(&api, &run).await.len(), 1, "{state}");
        assert_eq!(api.run(&run).await["state"], state);
    }
}

/// F-D05. Nobody can tell a run of another tenant from none, and nothing reaches it.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_run_and_a_foreign_one_are_answered_alike() {
    let api = idle().await;
    let run = listener(&api).await;
    let other = api.tenant("other").await;
    for key in [Some(KEY), None] {
        for query in ["", "?resolves=x"] {
            let send = |id: &str| {
                let request = other.request(Method::POST, &format!("{}{query}", path(id, "go"))).json(&json!(1));
                other.send(if let Some(key) = key { request.header("idempotency-key", key) } else { request })
            };
            let (foreign, unknown) = (send(&run).await, send(&no_run()).await);
            assert_eq!(foreign.refused(404, "not_found"), unknown.refused(404, "not_found"));
        }
    }
    for id in ["x", &run.to_uppercase(), &run.replace('-', "")] {
        deliver(&api.acme, id, "go", Some(KEY), &json!(1)).await.refused(404, "not_found");
    }
    for (client, id) in [(&other, &run), (&api.acme, &no_run())] {
        client.get(&format!("/v1/runs/{id}/signals")).await.refused(404, "not_found");
    }
    assert!(signals_of(&api, &run).await.is_empty());
    api.nobody().send(api.nobody().request(Method::POST, &path(&run, "go"))).await.refused(401, "unauthenticated");
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!(1)).await, true);
}

/// Two tenants use one key and one name, and each hears its own.
#[tokio::test(flavor = "multi_thread")]
async fn tenants_use_the_same_keys_without_meeting() {
    let api = idle().await;
    let mine = listener(&api).await;
    let other = api.tenant("other").await;
    let module = other.upload(crate::harness::component(super::GUESTS)).await.expect(201)["digest"].clone();
    other.put("/v1/activities/listen", &json!({ "module": module })).await.expect(201);
    let body = json!({ "input": waits_for(&["go"]) });
    let theirs = other.post("/v1/activities/listen/runs", &body).await.expect(201)["run_id"].clone();
    let theirs = theirs.as_str().unwrap();
    taken(&deliver(&api.acme, &mine, "go", Some(KEY), &json!("mine")).await, true);
    taken(&deliver(&other, theirs, "go", Some(KEY), &json!("theirs")).await, true);
    api.work().await;
    assert_eq!(api.ended(&mine).await["output"], json!(["mine"]));
    assert_eq!(other.get(&format!("/v1/runs/{theirs}")).await.expect(200)["output"], json!(["theirs"]));
}
