//! What bounds a tenant: each limit below it, at it and above it, and a neighbour that has none.

use deedbox_books::Options;
use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Answer, Client, assert_members, whole_list};
use super::{Api, GUESTS, config, serve};
use crate::harness::{World, component, work};

const KEY: &str = "0123456789abcdefghijklmnop";
const CHARGE: &str = "charge_once.wasm";

/// What a tenant has that nobody limits.
pub fn none() -> Value {
    json!({
        "max_running": null, "max_queued": null, "max_modules": null, "max_module_bytes": null,
        "max_memory_bytes": null, "max_attempt_ms": null, "max_sends_per_s": null, "max_cpu_ms": null,
        "max_host_calls": null, "max_host_calls_per_s": null, "max_log_bytes": null, "max_output_bytes": null,
        "max_open_sends": null, "egress": null, "require_signature": false, "paused": false,
    })
}

/// Sets the limits of `acme`, and the others to none.
async fn limit(api: &Api, limits: Value) {
    api.admin().await.put("/v1/tenants/acme/limits", &limits).await.expect(200);
}

async fn start(client: &Client) -> Answer {
    client.post("/v1/activities/noop/runs", &json!({ "input": 1 })).await
}

async fn start_keyed(client: &Client) -> Answer {
    let request = client.request(Method::POST, "/v1/activities/noop/runs").header("idempotency-key", KEY);
    client.send(request.json(&json!({ "input": 1 }))).await
}

/// Another tenant with the same guests.
async fn neighbour(api: &Api, activity: &str) -> Client {
    let other = api.tenant("other").await;
    let module = other.upload(component(GUESTS)).await.expect(201)["digest"].clone();
    other.put(&format!("/v1/activities/{activity}"), &json!({ "module": module })).await.expect(201);
    other
}

async fn deploy(api: &Api, activity: &str, policy: Value) -> Answer {
    let module = api.upload(GUESTS).await;
    api.acme.put(&format!("/v1/activities/{activity}"), &json!({ "module": module, "policy": policy })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_set_all_at_once_and_shown() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let path = "/v1/tenants/acme/limits";
    let names = [
        "max_running",
        "max_queued",
        "max_modules",
        "max_module_bytes",
        "max_memory_bytes",
        "max_attempt_ms",
        "max_sends_per_s",
        "max_cpu_ms",
        "max_host_calls",
        "max_host_calls_per_s",
        "max_log_bytes",
        "max_output_bytes",
        "max_open_sends",
        "egress",
    ];
    let none = admin.get(path).await.expect(200);
    assert_members(&none, &[&names[..], &["require_signature", "paused"]].concat());
    assert!(names.iter().all(|name| none[name] == Value::Null) && none["require_signature"] == false, "{none}");
    let all = json!({ "max_running": 1, "max_queued": 2, "max_modules": 3, "max_module_bytes": 4, "max_memory_bytes": 5,
        "max_attempt_ms": 6, "max_sends_per_s": 0.5, "max_cpu_ms": 7, "max_host_calls": 8, "max_host_calls_per_s": 9,
        "max_log_bytes": 10, "max_output_bytes": 11, "max_open_sends": 12, "egress": ["api.example.com", "*.example.org"],
        "require_signature": true });
    let set = admin.put(path, &all).await.expect(200);
    assert!(names.iter().chain(&["require_signature"]).all(|name| set[name] == all[name]), "{set}");
    assert_eq!(admin.get(path).await.expect(200), set);
    assert_eq!(admin.put(path, &json!({})).await.expect(200), none, "what is not said is no limit");
    for wrong in [
        json!({ "max_running": -1 }),
        json!({ "max_queued": 4_294_967_295_u32 }),
        json!({ "max_modules": "3" }),
        json!({ "max_memory_bytes": 0 }),
        json!({ "max_attempt_ms": 0 }),
        json!({ "max_cpu_ms": 0 }),
        json!({ "max_host_calls": 1.5 }),
        json!({ "max_sends_per_s": 0 }),
        json!({ "egress": "api.example.com" }),
        json!({ "egress": ["*"] }),
        json!({ "egress": ["https://api.example.com/path"] }),
        json!({ "require_signature": null }),
        json!({ "require_signature": "yes" }),
        json!({ "paused": true }),
    ] {
        admin.put(path, &wrong).await.refused(400, "validation_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_runs_wait_than_the_queue_may_hold() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let other = neighbour(&api, "noop").await;
    limit(&api, json!({ "max_queued": 2 })).await;
    let first = start(&api.acme).await.expect(201)["run_id"].as_str().unwrap().to_owned();
    start(&api.acme).await.expect(201);
    let full = start(&api.acme).await;
    assert!(full.message(429, "rate_limited").contains("max_queued"), "{full:?}");
    assert!(!full.header("retry-after").is_empty(), "{full:?}");
    for _ in 0..3 {
        start(&other).await.expect(201);
    }
    // What is named and there already needs no place.
    api.acme.post(&format!("/v1/runs/{first}/cancel"), &json!({})).await.expect(200);
    let named = json!({ "input": 1, "run_name": "order-1", "reuse": "attach" });
    let named = async || api.acme.post("/v1/activities/noop/runs", &named).await;
    let run = named().await.expect(201)["run_id"].clone();
    assert_eq!(named().await.expect(200)["run_id"], run);
    start(&api.acme).await.refused(429, "rate_limited");
    // A name that was refused with its run stands for nothing.
    let fresh = json!({ "input": 1, "run_name": "order-2" });
    let fresh = async || api.acme.post("/v1/activities/noop/runs", &fresh).await;
    fresh().await.refused(429, "rate_limited");
    api.work().await;
    fresh().await.expect(201);
    limit(&api, json!({ "max_queued": 0 })).await;
    start(&api.acme).await.refused(429, "rate_limited");
    limit(&api, json!({})).await;
    start(&api.acme).await.expect(201);
}

/// Near the limit the count is exact, however many starts come at once and over how many nodes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn starts_that_come_at_once_do_not_get_above_the_queues_limit() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    limit(&api, json!({ "max_queued": 20 })).await;
    let stop = tokio_util::sync::CancellationToken::new();
    let second = serve(&api.world.database, config(), stop.clone()).await;
    let _stop = stop.drop_guard();
    let second = Client::new(&second, Some(super::mint(&api.world, "acme").await));
    let starts = (0..60).map(|number| {
        let client = if number % 2 == 0 { api.acme.clone() } else { second.clone() };
        tokio::spawn(async move { start(&client).await.status })
    });
    let mut started = 0;
    for start in starts.collect::<Vec<_>>() {
        match start.await.unwrap() {
            201 => started += 1,
            status => assert_eq!(status, 429),
        }
    }
    assert_eq!(started, 20);
}

/// F-A20. A refusal for the queue's limit is not kept under the key: once there is room, the key starts a run, one run.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_was_refused_for_the_queue_starts_under_its_key_when_there_is_room() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    limit(&api, json!({ "max_queued": 1 })).await;
    let first = start(&api.acme).await.expect(201)["run_id"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let refused = start_keyed(&api.acme).await;
        refused.refused(429, "rate_limited");
        assert_eq!(refused.header("openwop-idempotent-replay"), "");
    }
    api.acme.post(&format!("/v1/runs/{first}/cancel"), &json!({})).await.expect(200);
    let started = start_keyed(&api.acme).await;
    assert_eq!(started.expect(201)["started_fresh"], true);
    let again = start_keyed(&api.acme).await;
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(again.expect(201)["run_id"], started.json()["run_id"]);
    assert_eq!(whole_list(&api.acme.get("/v1/runs").await).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_keeps_no_more_modules_than_it_may() {
    let api = Api::idle().await;
    limit(&api, json!({ "max_modules": 1 })).await;
    let digest = api.upload(GUESTS).await;
    let refused = api.acme.upload(component(CHARGE)).await;
    assert!(refused.message(403, "deedbox.limit_reached").contains("max_modules"), "{refused:?}");
    assert_eq!(api.upload(GUESTS).await, digest, "the same bytes need no more room");
    let other = api.tenant("other").await;
    for file in [GUESTS, CHARGE] {
        other.upload(component(file)).await.expect(201);
    }
    api.acme.delete(&format!("/v1/modules/{digest}")).await.expect(204);
    api.acme.upload(component(CHARGE)).await.expect(201);
    limit(&api, json!({ "max_modules": 2 })).await;
    api.acme.upload(component(GUESTS)).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_modules_have_no_more_bytes_than_they_may() {
    let api = Api::idle().await;
    let size = component(CHARGE).len();
    limit(&api, json!({ "max_module_bytes": size - 1 })).await;
    let refused = api.acme.upload(component(CHARGE)).await;
    assert!(refused.message(403, "deedbox.limit_reached").contains("max_module_bytes"), "{refused:?}");
    assert!(whole_list(&api.acme.get("/v1/modules").await).is_empty());
    limit(&api, json!({ "max_module_bytes": size })).await;
    api.acme.upload(component(CHARGE)).await.expect(201);
    api.acme.upload(component(GUESTS)).await.refused(403, "deedbox.limit_reached");
    limit(&api, json!({ "max_module_bytes": size + component(GUESTS).len() })).await;
    api.acme.upload(component(GUESTS)).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_asks_for_no_more_than_its_tenant_may_have() {
    let api = Api::idle().await;
    limit(&api, json!({ "max_memory_bytes": 16 << 20, "max_attempt_ms": 5000, "egress": ["*.example.com"] })).await;
    for within in [
        json!({}),
        json!({ "limits": { "memory_bytes": 16 << 20 }, "timeouts": { "start_to_close": "5s" } }),
        json!({ "egress": { "allow": ["https://api.example.com"] } }),
        json!({ "egress": { "allow": ["https://*.eu.example.com", { "host": "a.example.com", "methods": ["GET"] }] } }),
    ] {
        deploy(&api, "noop", within).await.expect(201);
    }
    for (above, limit) in [
        (json!({ "limits": { "memory_bytes": (16 << 20) + 1 } }), "max_memory_bytes"),
        (json!({ "timeouts": { "start_to_close": "5001ms" } }), "max_attempt_ms"),
        (json!({ "egress": { "allow": ["https://api.example.com", "https://example.net"] } }), "egress"),
        (json!({ "egress": { "allow": ["https://*.com"] } }), "egress"),
        (json!({ "egress": { "allow": [{ "host": "example.com", "path_prefix": "/v1" }] } }), "egress"),
    ] {
        let refused = deploy(&api, "noop", above).await;
        let words = refused.message(400, "validation_error");
        assert!(words.contains(&format!("`{limit}`")) && words.contains("administrator"), "{words}");
    }
}

/// Versions that were deployed before a limit was set are held to it as well; a neighbour's are not.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_gets_the_smaller_of_what_its_policy_and_its_tenant_allow() {
    let api = Api::idle().await;
    let once = json!({ "retry": { "max_attempts": 1 }, "limits": { "memory_bytes": 64 << 20 } });
    for activity in ["grow-to", "sleep"] {
        api.deploy(activity, once.clone()).await;
    }
    let other = neighbour(&api, "grow-to").await;
    limit(&api, json!({ "max_memory_bytes": 16 << 20, "max_attempt_ms": 300 })).await;
    let small = api.start("grow-to", json!({ "bytes": 4 << 20 })).await;
    let large = api.start("grow-to", json!({ "bytes": 32 << 20 })).await;
    let endless = api.start("sleep", json!({ "ms": 60_000 })).await;
    let start = json!({ "input": { "bytes": 32 << 20 } });
    let theirs = other.post("/v1/activities/grow-to/runs", &start).await.expect(201)["run_id"].clone();
    api.work().await;
    for (run, outcome) in [(&small, "completed"), (&large, "out-of-memory"), (&endless, "timed-out")] {
        assert_eq!(api.outcomes(run).await, [outcome], "{run}");
    }
    let failure = api.run(&endless).await["failure"].clone();
    assert!(failure["message"].as_str().unwrap().contains("max_attempt_ms"), "{failure}");
    let theirs = other.get(&format!("/v1/runs/{}", theirs.as_str().unwrap())).await.expect(200);
    assert_eq!(theirs["state"], "completed", "{theirs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_goes_nowhere_that_the_tenant_may_not_reach() {
    let api = Api::idle().await;
    api.deploy("send", api.policy("stripe")).await;
    limit(&api, json!({ "egress": ["api.example.com"] })).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    api.work().await;
    let output = api.run(&run).await["output"].clone();
    assert_eq!(output[0]["error"], "denied", "{output}");
    assert!(output[0]["message"].as_str().unwrap().contains("`egress`"), "{output}");
    assert!(api.world.books.arrivals().await.unwrap().is_empty());
    assert!(api.effects_of(&run).await.is_empty(), "nothing was claimed");
    // Another node, which has not read the limits before.
    limit(&api, json!({ "egress": ["127.0.0.1"] })).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    work(&api.world.second("fresh", deedbox::probe::none()).await).await;
    assert_eq!(api.run(&run).await["output"][0]["status"], 201);
}

/// A second's worth of sends goes out at once; what is above it gives its run back, which spends no attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_sends_no_faster_than_it_may() {
    let mut config = config();
    config.gateway.pace_wait_ms = 0;
    let world = World::with(Options { keyless: false, convention: None }, config.clone()).await;
    let api = Api::with(world, config).await;
    // A place comes back after an hour: the test is never that slow.
    limit(&api, json!({ "max_sends_per_s": 1.0 / 3600.0 })).await;
    api.deploy("send", api.policy("stripe")).await;
    let mut runs = Vec::new();
    for name in ["a", "b"] {
        runs.push(api.start("send", json!({ "calls": [api.charge(name)] })).await);
        api.world.node.worker().run_once().await.unwrap();
    }
    assert_eq!(api.outcomes(&runs[0]).await, ["completed"]);
    assert_eq!(api.outcomes(&runs[1]).await, ["deferred"]);
    assert_eq!(api.run(&runs[1]).await["spent"], 0);
    assert_eq!(api.world.books.applied().await.unwrap().len(), 1);
    api.world.database.advance_seconds(7300).await;
    api.work().await;
    assert_eq!(api.run(&runs[1]).await["state"], "completed");
}
