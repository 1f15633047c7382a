//! `/v1/runs/{run}/events` and `/v1/events`: what happened to runs is told once each, in its order, and to nobody else;
//! who comes back gets exactly the rest.

use std::time::Duration;

use deedbox::config::Config;
use deedbox_books::Options;
use serde_json::{Value, json};

use super::client::Client;
use super::{Api, no_run};
use crate::harness::{World, config};
use crate::worker::until;

mod kinds;
mod order;
mod reader;
mod streams;

use reader::{Reader, Seen};

/// Whatever must come, comes within this time.
const SOON: Duration = Duration::from_secs(30);

/// The kinds of the events of a plain run.
const PLAIN: [&str; 3] = ["run.queued", "run.started", "run.completed"];

fn path(run: &str) -> String {
    format!("/v1/runs/{run}/events")
}

/// All events of a run that has ended, as its stream tells them.
async fn all_of(api: &Api, run: &str) -> Vec<Seen> {
    Reader::open(&api.acme, &path(run), None).await.rest().await
}

fn kinds(events: &[Seen]) -> Vec<&str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

fn ids(events: &[Seen]) -> Vec<&str> {
    events.iter().map(|event| event.id.as_str()).collect()
}

/// The same as a page of JSON.
async fn page(client: &Client, path: &str) -> Value {
    let request = client.request(reqwest::Method::GET, path).header("accept", "application/json");
    client.send(request).await.expect(200)
}

/// Waits until all that has happened may be told: no transaction of the server that began before is open.
async fn settled(api: &Api) {
    let told = "select not exists (
                  select from events where turn >= pg_snapshot_xmin(pg_current_snapshot())::text::bigint)";
    until("all is told", async || {
        sqlx::query_scalar(told).fetch_one(&mut api.world.database.connect().await).await.unwrap()
    })
    .await;
}

/// A run that waits for a signal, `go`.
async fn waiting(api: &Api) -> String {
    api.deploy("listen", json!({})).await;
    let run = api.start("listen", json!({ "asks": [{ "wait": { "name": "go" } }] })).await;
    api.work().await;
    run
}

/// Does something to a run.
async fn command(client: &Client, run: &str, what: &str) {
    let answer = client.post(&format!("/v1/runs/{run}/{what}"), &json!({})).await;
    assert!(matches!(answer.status, 200 | 202), "{answer:?}");
}

/// A node that serves with settings of the test's own, and hardly waits for signals.
async fn with(change: impl FnOnce(&mut Config)) -> Api {
    let mut settings = config();
    settings.signals.wait_ms = 50;
    change(&mut settings);
    Api::with(World::with(Options { keyless: false, convention: None }, settings.clone()).await, settings).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_run_has_three_events() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!({ "secret": "canary" })).await;
    api.work().await;
    let events = all_of(&api, &run).await;
    assert_eq!(kinds(&events), PLAIN);
    for (event, number) in events.iter().zip(1..) {
        let body = &event.body;
        super::client::assert_members(body, &["run_id", "activity", "kind", "at", "sequence", "data"]);
        assert_eq!((&body["run_id"], &body["activity"]), (&json!(run), &json!("noop")));
        assert_eq!((&body["kind"], &body["sequence"]), (&json!(event.kind), &json!(number)));
        assert!(!body.to_string().contains("canary"), "{body}");
    }
    assert_eq!(events[1].body["data"], json!({ "attempt": 1 }));
    let listed = page(&api.acme, &path(&run)).await;
    let bodies: Vec<&Value> = events.iter().map(|event| &event.body).collect();
    assert_eq!(listed["items"].as_array().unwrap().iter().collect::<Vec<_>>(), bodies);
    assert_eq!(listed["after"], events[2].id.as_str(), "who asks again gets what comes after it");
}

/// No gap and no repeat, wherever it broke off.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_taken_up_behind_any_of_its_events() {
    let api = with(|_| {}).await;
    let run = waiting(&api).await;
    api.acme.post(&format!("/v1/runs/{run}/signals/go"), &json!(1)).await.expect(202);
    api.work().await;
    let all = all_of(&api, &run).await;
    assert!(all.len() > 5, "{all:?}");
    for (at, event) in all.iter().enumerate() {
        let by_query = format!("{}?after={}", path(&run), event.id);
        if at + 1 == all.len() {
            let request = api.acme.request(reqwest::Method::GET, &path(&run)).header("last-event-id", &event.id);
            api.acme.send(request).await.expect(204);
            api.acme.get(&by_query).await.expect(204);
        } else {
            let rest = Reader::open(&api.acme, &path(&run), Some(&event.id)).await.rest().await;
            assert_eq!(ids(&rest), ids(&all[at + 1..]));
            assert_eq!(rest[0].body["sequence"], json!(at + 2));
            let rest = Reader::open(&api.acme, &by_query, Some("")).await.rest().await;
            assert_eq!(ids(&rest), ids(&all[at + 1..]));
        }
        let listed = page(&api.acme, &format!("{by_query}&limit=1")).await;
        let next = all.get(at + 1).map_or(event.id.as_str(), |next| next.id.as_str());
        assert_eq!(listed["after"], next, "{listed}");
    }
}

/// F-K01, F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ones_own_or_not_understood_is_refused() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    api.work().await;
    let events = all_of(&api, &run).await;
    let other = api.tenant("other").await;
    let (foreign, unknown) = (other.get(&path(&run)).await, other.get(&path(&no_run())).await);
    assert_eq!(foreign.refused(404, "not_found"), unknown.refused(404, "not_found"));
    let oldest = page(&other, "/v1/events?from=oldest").await;
    assert_eq!(oldest["items"], json!([]));
    api.nobody().get("/v1/events").await.refused(401, "unauthenticated");

    let of_tenant = page(&api.acme, "/v1/events?from=oldest").await["after"].as_str().unwrap().to_owned();
    let of_run = &events[0].id;
    for wrong in [
        format!("{}?after=x", path(&run)),
        format!("{}?after={of_tenant}", path(&run)),
        format!("{}?limit=5", path(&run)),
        format!("{}?from=oldest", path(&run)),
        format!("/v1/events?after={of_run}"),
        "/v1/events?kind=run.unheard-of".to_owned(),
        "/v1/events?activity=a%20b".to_owned(),
        "/v1/events?from=yesterday".to_owned(),
        "/v1/events?limit=5".to_owned(),
    ] {
        api.acme.get(&wrong).await.refused(400, "validation_error");
    }
    let request = api.acme.request(reqwest::Method::GET, &path(&run)).header("last-event-id", "no cursor");
    api.acme.send(request).await.refused(400, "validation_error");
}
