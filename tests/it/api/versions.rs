//! Versions when several deploy at once, over several nodes with clocks of their own: each has its number for good, the
//! newest is the one that was acknowledged last, and none is the newest before it can be run.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use data_encoding::HEXLOWER;
use deedbox::clock::{Clock, SystemClock};
use deedbox::probe;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio_util::sync::CancellationToken;

use super::Api;
use super::client::{Answer, Client, whole_list};
use crate::harness::{config, node_by};
use crate::wat_component::WatComponent;

const PATH: &str = "/v1/activities/by-hand";
const HOUR_MS: u64 = 3_600_000;

/// A clock that is ahead.
#[derive(Debug)]
struct Ahead(Duration);

impl Clock for Ahead {
    fn elapsed(&self) -> Duration {
        SystemClock.elapsed() + self.0
    }

    fn now(&self) -> SystemTime {
        SystemClock.now() + self.0
    }
}

/// Another node on the same database, with a clock that is ahead; a client of `acme` there.
async fn second(api: &Api, ahead_ms: u64, stop: CancellationToken) -> Client {
    let clock = Arc::new(Ahead(Duration::from_millis(ahead_ms)));
    let node = Arc::new(node_by(&api.world.database, "ahead", config(), clock, probe::none()).await);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { node.serve(listener, stop).await.unwrap() });
    Client::new(&origin, Some(super::mint(&api.world, "acme").await))
}

/// Uploads a component that does this when it runs; its digest.
async fn upload(api: &Api, run: &'static str, mark: u32) -> String {
    let core: &'static str = format!("(global i32 (i32.const {mark}))").leak();
    let component = WatComponent { run, core, ..WatComponent::default() };
    api.acme.upload(component.bytes()).await.expect(201)["digest"].as_str().unwrap().to_owned()
}

async fn put(client: &Client, body: Value) -> Answer {
    client.put(PATH, &body).await
}

fn body(module: &str, version: Option<u64>) -> Value {
    let mut body = json!({ "module": module, "policy": { "retry": { "max_attempts": 1 } } });
    if let Some(version) = version {
        body["version"] = json!(version);
    }
    body
}

/// The module of each version, by what the server says.
async fn modules(api: &Api) -> Vec<(u64, String)> {
    let shown = api.acme.get(&format!("{PATH}?limit=500")).await.expect(200);
    let version =
        |version: &Value| (version["version"].as_u64().unwrap(), version["module"].as_str().unwrap().to_owned());
    shown["versions"].as_array().unwrap().iter().map(version).collect()
}

/// F-G05.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_that_publish_one_version_at_once_one_wins_and_its_bytes_stay() {
    let api = Api::idle().await;
    let stop = CancellationToken::new();
    let nodes = [api.acme.clone(), second(&api, 0, stop.clone()).await];
    let _stop = stop.drop_guard();
    let first = upload(&api, "", 0).await;
    put(&api.acme, body(&first, Some(1))).await.expect(201);
    let queued = api.start("by-hand", json!(1)).await;
    let rivals = [upload(&api, "(unreachable)", 1).await, upload(&api, "(unreachable)", 2).await];
    for number in 2..22_u64 {
        let start = Arc::new(Barrier::new(2));
        let publish = |at: usize| {
            let (node, body, start) = (nodes[at].clone(), body(&rivals[at], Some(number)), start.clone());
            tokio::spawn(async move {
                start.wait().await;
                put(&node, body).await
            })
        };
        let answers = [publish(0), publish(1)];
        let mut won = Vec::new();
        for (at, answer) in answers.into_iter().enumerate() {
            let answer = answer.await.unwrap();
            match answer.status {
                201 => won.push((at, answer.json())),
                _ => drop(answer.refused(409, "version_conflict")),
            }
        }
        let [(winner, version)] = won.as_slice() else { panic!("version {number}: {won:?}") };
        assert_eq!((&version["version"], &version["module"]), (&json!(number), &json!(rivals[*winner])));
        assert_eq!(modules(&api).await[0], (number, rivals[*winner].clone()));
        // The same again is the same, wherever it is asked; the other stays refused.
        for node in &nodes {
            assert_eq!(put(node, body(&rivals[*winner], Some(number))).await.expect(200), *version);
            put(node, body(&rivals[1 - winner], Some(number))).await.refused(409, "version_conflict");
        }
    }
    for wrong in [0, 1, 20, 23] {
        put(&api.acme, body(&first, Some(wrong))).await.refused(409, "version_conflict");
    }
    assert_eq!(modules(&api).await.len(), 21, "what was refused has left nothing");
    // The run of the first version has its own bytes: those of the others trap.
    api.work().await;
    let run = api.run(&queued).await;
    assert_eq!((&run["state"], &run["version"], &run["output"]), (&json!("completed"), &json!(1), &json!("ran")));
    // Retired, it is not what was published; deployed again it is the next one.
    api.acme.delete(PATH).await.expect(204);
    let (newest, module) = modules(&api).await[0].clone();
    put(&api.acme, body(&module, Some(newest))).await.refused(409, "version_conflict");
    put(&api.acme, body(&module, Some(newest + 1))).await.expect(201);
}

/// F-G05. Whoever names no number gets one of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn deployments_at_once_get_numbers_of_their_own_and_keep_their_bytes() {
    let api = Api::idle().await;
    let stop = CancellationToken::new();
    let nodes = [api.acme.clone(), second(&api, 0, stop.clone()).await];
    let _stop = stop.drop_guard();
    let rivals = [upload(&api, "", 1).await, upload(&api, "", 2).await];
    let start = Arc::new(Barrier::new(16));
    let publish = |at: usize| {
        let (node, body, start) = (nodes[at % 2].clone(), body(&rivals[at % 2], None), start.clone());
        tokio::spawn(async move {
            start.wait().await;
            put(&node, body).await.expect(201)
        })
    };
    let mut told = Vec::new();
    for publishing in (0..16).map(publish).collect::<Vec<_>>() {
        let version = publishing.await.unwrap();
        told.push((version["version"].as_u64().unwrap(), version["module"].as_str().unwrap().to_owned()));
    }
    told.sort_unstable_by_key(|(number, _)| std::cmp::Reverse(*number));
    assert_eq!(told.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (1..=16).rev().collect::<Vec<_>>());
    assert_eq!(modules(&api).await, told);
}

/// F-G05. The first version of a name that nobody has deployed yet.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_that_publish_a_new_name_at_once_one_wins() {
    let api = Api::idle().await;
    let rivals = [upload(&api, "", 1).await, upload(&api, "", 2).await];
    for round in 0..10 {
        let start = Arc::new(Barrier::new(2));
        let publish = |at: usize| {
            let (node, body, start) = (api.acme.clone(), body(&rivals[at], Some(1)), start.clone());
            tokio::spawn(async move {
                start.wait().await;
                node.put(&format!("/v1/activities/new-{round}"), &body).await.status
            })
        };
        let (one, other) = (publish(0), publish(1));
        let mut statuses = [one.await.unwrap(), other.await.unwrap()];
        statuses.sort_unstable();
        assert_eq!(statuses, [201, 409]);
    }
    let refused = api.acme.put("/v1/activities/never", &body(&rivals[0], Some(2))).await;
    refused.refused(409, "version_conflict");
    api.acme.get("/v1/activities/never").await.refused(404, "not_found");
}

/// F-G07. The clocks of the nodes are two hours apart, and the database's jumps back and forth by an hour between deployments.
#[tokio::test(flavor = "multi_thread")]
async fn new_runs_have_the_version_that_was_acknowledged_last_whatever_the_clocks_say() {
    let api = Api::idle().await;
    let stop = CancellationToken::new();
    let nodes = [second(&api, 0, stop.clone()).await, second(&api, 2 * HOUR_MS, stop.clone()).await];
    let _stop = stop.drop_guard();
    let builds = [upload(&api, "", 1).await, upload(&api, "", 2).await];
    for turn in 0..100 {
        let ahead = if turn % 2 == 0 { 3600 } else { 0 };
        api.world.database.advance_seconds(ahead).await;
        // The one that is ahead goes first, so that the later one has the earlier time.
        let (deploying, build) = (&nodes[(turn + 1) % 2], &builds[turn / 2 % 2]);
        let acknowledged = put(deploying, body(build, None)).await.expect(201);
        assert_eq!(acknowledged["version"], turn + 1);
        for node in &nodes {
            let run = node.post(&format!("{PATH}/runs"), &json!({ "input": 1 })).await.expect(201);
            assert_eq!(run["version"], acknowledged["version"]);
            let listed = whole_list(&node.get("/v1/activities").await);
            assert_eq!((&listed[0]["version"], &listed[0]["module"]), (&acknowledged["version"], &json!(build)));
        }
    }
    let times: Vec<String> = api.acme.get(&format!("{PATH}?limit=500")).await.expect(200)["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["created_at"].as_str().unwrap().to_owned())
        .collect();
    assert!(!times.iter().rev().is_sorted(), "the clock must have gone back");
}

/// F-G08. A start names the activity alone: it cannot ask for a version and a module that disagree.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_names_a_version_or_a_module_is_refused() {
    let api = Api::idle().await;
    let modules = [upload(&api, "", 1).await, upload(&api, "", 2).await];
    for module in &modules {
        put(&api.acme, body(module, None)).await.expect(201);
    }
    for (member, value) in [("version", json!(1)), ("module", json!(modules[0])), ("digest", json!(modules[0]))] {
        let mut start = json!({ "input": 1 });
        start[member] = value;
        let refused = api.acme.post(&format!("{PATH}/runs"), &start).await;
        assert!(refused.message(400, "validation_error").contains(member), "{member}");
    }
    assert!(whole_list(&api.acme.get("/v1/runs").await).is_empty());
    let run = api.start("by-hand", json!(1)).await;
    assert_eq!(api.run(&run).await["version"], 2);
}

/// F-G08. What cannot link is refused when it is uploaded, and there is nothing to deploy.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_refused_at_upload_cannot_be_deployed_and_the_old_version_is_served() {
    let api = Api::idle().await;
    let good = upload(&api, "", 1).await;
    let serving = put(&api.acme, body(&good, None)).await.expect(201);
    let bytes = unlinkable();
    let digest = blake3::hash(&bytes).to_hex().to_string();
    let refused = api.acme.upload(bytes).await.message(400, "validation_error");
    assert!(refused.contains("acme:storage/blobs@1.0.0"), "{refused}");
    put(&api.acme, body(&digest, None)).await.refused(400, "validation_error");
    assert_eq!(whole_list(&api.acme.get("/v1/activities").await), [serving]);
}

/// F-G08. Kept by a host that could link it, asked of one that cannot: it never becomes the newest.
#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_this_host_cannot_link_never_becomes_the_newest_version() {
    let api = Api::idle().await;
    let good = upload(&api, "", 1).await;
    let serving = put(&api.acme, body(&good, None)).await.expect(201);
    let bytes = unlinkable();
    let digest = blake3::hash(&bytes).to_hex().to_string();
    let insert = format!(
        r#"insert into modules (tenant, digest, bytes, imports, activities) values ('acme', decode('{digest}', 'hex'),
             decode('{}', 'hex'), '[]', '[{{"name":"by-hand","summary":"","input_schema":null,"output_schema":null}}]')"#,
        HEXLOWER.encode(&bytes)
    );
    api.world.database.execute(&insert).await;
    api.acme.get(&format!("/v1/modules/{digest}")).await.expect(200);
    for version in [None, Some(2)] {
        let refused = put(&api.acme, body(&digest, version)).await.message(400, "validation_error");
        assert!(
            refused.contains("acme:storage/blobs@1.0.0") && refused.contains("deedbox:activity/*@0.1.x"),
            "{refused}"
        );
    }
    assert_eq!(whole_list(&api.acme.get("/v1/activities").await), [serving]);
    let run = api.start("by-hand", json!(1)).await;
    api.work().await;
    let run = api.run(&run).await;
    assert_eq!((&run["state"], &run["version"]), (&json!("completed"), &json!(1)));
}

fn unlinkable() -> Vec<u8> {
    let outer = r#"(import "acme:storage/blobs@1.0.0" (instance))"#.to_owned();
    WatComponent { outer, ..WatComponent::default() }.bytes()
}
