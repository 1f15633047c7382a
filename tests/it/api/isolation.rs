//! Nothing of one tenant can be seen, used or told from what does not exist by another.

use std::time::Instant;

use deedbox::token;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Answer, Client, whole_list};
use super::{Api, mint, no_hash, no_run};
use crate::harness::tell;

/// Where an id can stand. `{}` is its place.
struct Door {
    method: Method,
    path: &'static str,
    body: Option<Value>,
    status: u16,
}

fn door(method: Method, path: &'static str, status: u16) -> Door {
    Door { method, path, body: None, status }
}

fn with_body(method: Method, path: &'static str, body: Value, status: u16) -> Door {
    Door { method, path, body: Some(body), status }
}

/// Every endpoint that takes an id, by the kind of the id.
fn doors() -> Vec<(&'static str, Vec<Door>)> {
    let get = |path| door(Method::GET, path, 404);
    let delete = |path| door(Method::DELETE, path, 404);
    let post = |path| door(Method::POST, path, 404);
    vec![
        (
            "module",
            vec![
                get("/v1/modules/{}"),
                delete("/v1/modules/{}"),
                with_body(Method::PUT, "/v1/modules/{}/signature", json!({ "signature": "0".repeat(128) }), 404),
                with_body(Method::PUT, "/v1/activities/mine", json!({ "module": "{}", "export": "send" }), 400),
            ],
        ),
        (
            "activity",
            vec![
                get("/v1/activities/{}"),
                delete("/v1/activities/{}"),
                with_body(Method::POST, "/v1/activities/{}/runs", json!({ "input": 1 }), 404),
                post("/v1/activities/{}/pause"),
                post("/v1/activities/{}/resume"),
                door(Method::GET, "/v1/runs?activity={}", 200),
            ],
        ),
        (
            "run",
            vec![
                get("/v1/runs/{}"),
                get("/v1/runs/{}?wait=30"),
                get("/v1/runs/{}/attempts"),
                get("/v1/runs/{}/effects"),
                get("/v1/runs/{}/log"),
                get("/v1/runs/{}/events"),
                get("/v1/runs/{}/signals"),
                with_body(Method::POST, "/v1/runs/{}/signals/go", json!("{}"), 404),
                post("/v1/runs/{}/cancel"),
                post("/v1/runs/{}/pause"),
                post("/v1/runs/{}/resume"),
                post("/v1/runs/{}/retry"),
                get("/runs/other~2F{}"),
                get("/runs/other~2F{}/events"),
                get("/runs/other~2F{}/events/poll"),
                post("/runs/other~2F{}/cancel"),
                post("/runs/other~2F{}:pause"),
                post("/runs/other~2F{}:resume"),
                door(Method::GET, "/runs/acme~2F{}", 403),
                door(Method::POST, "/runs/acme~2F{}:pause", 403),
                get("/runs/other~2F{}/effects"),
                door(Method::GET, "/runs/acme~2F{}/effects", 403),
                door(Method::GET, "/v1/effects?run={}", 200),
            ],
        ),
        ("effect", vec![get("/v1/effects/{}")]),
        ("secret", vec![delete("/v1/secrets/{}")]),
        ("provider", vec![get("/v1/providers/{}"), delete("/v1/providers/{}")]),
    ]
}

async fn open(client: &Client, door: &Door, id: &str) -> Answer {
    let mut request = client.request(door.method.clone(), &door.path.replace("{}", id));
    if let Some(body) = &door.body {
        request = request.header("content-type", "application/json").body(body.to_string().replace("{}", id));
    }
    client.send(request).await
}

/// All of an answer that could tell one id from another, without the ids themselves.
pub fn told(answer: &Answer, ids: &[&str]) -> (u16, String, Vec<(String, String)>) {
    let mut headers: Vec<_> =
        answer.headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
    headers.retain(|(name, _)| !["x-request-id", "date"].contains(&name.as_str()));
    headers.sort();
    (answer.status, ids.iter().fold(answer.text.clone(), |text, id| text.replace(id, "{}")), headers)
}

const PROFILE: &str = r#"
name = "mine"
version = "1"
source = "our own docs"
confidence = "H"

[[operation]]
[operation.key]
carrier = { query = "dedupe" }
rendering = "hex"
retention = "1h"
"#;

/// A run with an effect, a module, an activity, a secret and a provider of `acme`; each with an id of its kind that is nobody's.
pub async fn belongings(api: &Api) -> Vec<(&'static str, String, String)> {
    let version = api.deploy("send", api.policy("stripe")).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    api.work().await;
    let effect = api.effects_of(&run).await[0]["effect_id"].as_str().unwrap().to_owned();
    api.acme.put("/v1/secrets/mine", &json!({ "value": "x" })).await.expect(204);
    api.acme.put("/v1/providers/mine", &json!({ "profile": PROFILE })).await.expect(201);
    vec![
        ("module", version["module"].as_str().unwrap().to_owned(), no_hash()),
        ("activity", "send".to_owned(), "none".to_owned()),
        ("run", run, no_run()),
        ("effect", effect, no_hash()),
        ("secret", "mine".to_owned(), "none".to_owned()),
        ("provider", "mine".to_owned(), "none".to_owned()),
    ]
}

/// F-K01.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_id_is_answered_like_an_unknown_one_at_every_endpoint() {
    let api = Api::idle().await;
    let all = belongings(&api).await;
    let other = api.tenant("other").await;
    let mut walked = 0;
    for (kind, doors) in doors() {
        let (_, theirs, nobodys) = all.iter().find(|(name, ..)| *name == kind).unwrap();
        for door in doors {
            let (foreign, unknown) = (open(&other, &door, theirs).await, open(&other, &door, nobodys).await);
            assert_eq!(foreign.status, door.status, "{} {}: {foreign:?}", door.method, door.path);
            assert_eq!(told(&foreign, &[theirs]), told(&unknown, &[nobodys]), "{} {}", door.method, door.path);
            if door.status == 200 {
                assert!(whole_list(&foreign).is_empty(), "{}: {foreign:?}", door.path);
            }
            walked += 1;
        }
    }
    assert_eq!(walked, 37);
    for list in ["/v1/modules", "/v1/activities", "/v1/runs", "/v1/effects", "/v1/secrets"] {
        assert!(whole_list(&other.get(list).await).is_empty(), "{list}");
        assert_eq!(whole_list(&api.acme.get(list).await).len(), 1, "{list}: nothing of the owner's is gone");
    }
    for (kind, doors) in doors() {
        let (_, mine, _) = all.iter().find(|(name, ..)| *name == kind).unwrap();
        for door in doors.iter().filter(|door| door.method == Method::GET && !door.path.contains("other")) {
            assert_eq!(open(&api.acme, door, mine).await.status, 200, "{}: its owner sees it", door.path);
        }
    }
}

/// F-K01. Neither an id nor a token can be told from an unknown one by how long the refusal takes: the medians of requests that
/// take turns differ by less than a factor of two.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_id_is_refused_as_quickly_as_an_unknown_one() {
    let api = Api::idle().await;
    let all = belongings(&api).await;
    let other = api.tenant("other").await;
    for (kind, doors) in doors() {
        let (_, theirs, nobodys) = all.iter().find(|(name, ..)| *name == kind).unwrap();
        for door in doors.iter().filter(|door| door.status == 404) {
            let name = format!("{} {}", door.method, door.path);
            alike_in_time(&name, async |first: bool| {
                drop(open(&other, door, if first { theirs } else { nobodys }).await)
            })
            .await;
        }
    }
    let known = mint(&api.world, "acme").await;
    let (_, unknown, _) = token::mint("acme");
    let id = known.rsplit_once('.').unwrap().0;
    let wrong = format!("{id}.{}", token::parse(&unknown).unwrap().secret);
    let door = door(Method::GET, "/v1/runs", 401);
    let [wrong, unknown] = [wrong, unknown].map(|text| api.acme.with_token(&text));
    let ask = async |first: bool| assert_eq!(open(if first { &wrong } else { &unknown }, &door, "").await.status, 401);
    alike_in_time("a wrong secret", ask).await;
}

/// A machine at work on other tests is measured again.
async fn alike_in_time(name: &str, ask: impl AsyncFn(bool)) {
    let mut seen = Vec::new();
    for _ in 0..4 {
        let mut times = [Vec::new(), Vec::new()];
        for turn in 0..100 {
            let first = turn % 2 == 0;
            let began = Instant::now();
            ask(first).await;
            times[usize::from(first)].push(began.elapsed());
        }
        let medians = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2]
        });
        seen.push(medians);
        if medians[0] < 2 * medians[1] && medians[1] < 2 * medians[0] {
            tell(&format!("{name}: {medians:?}"));
            return;
        }
    }
    panic!("{name}: {seen:?}");
}

/// The same bytes and the same names are each tenant's own.
#[tokio::test(flavor = "multi_thread")]
async fn tenants_use_the_same_names_and_components_without_meeting() {
    let api = Api::idle().await;
    let all = belongings(&api).await;
    let other = api.tenant("other").await;
    let module = other.upload(crate::harness::component(super::GUESTS)).await.expect(201)["digest"].clone();
    assert_eq!(module, json!(all[0].1));
    let body = json!({ "module": module, "policy": api.policy("stripe") });
    assert_eq!(other.put("/v1/activities/send", &body).await.expect(201)["version"], 1);
    other.put("/v1/secrets/mine", &json!({ "value": "y" })).await.expect(204);
    let mut call = api.charge("");
    call["identity"] = json!({ "business": ["pay", "7"] });
    let mut effects = Vec::new();
    for client in [&api.acme, &other] {
        let start = json!({ "input": { "calls": [call] } });
        let run = client.post("/v1/activities/send/runs", &start).await.expect(201)["run_id"].clone();
        api.work().await;
        let output = client.get(&format!("/v1/runs/{}", run.as_str().unwrap())).await.expect(200)["output"].clone();
        assert_eq!(output[0]["source"], "sent", "{output}");
        effects.push(output[0]["effect_id"].clone());
    }
    assert_ne!(effects[0], effects[1]);
    other.delete("/v1/secrets/mine").await.expect(204);
    other.delete("/v1/activities/send").await.expect(204);
    assert_eq!(whole_list(&api.acme.get("/v1/secrets").await).len(), 1);
    api.start("send", json!({ "calls": [] })).await;
}
