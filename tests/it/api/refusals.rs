//! Requests that are wrong in every way: each is refused in the envelope, with a code, and never as a fault of the server.

use std::time::Duration;

use deedbox_books::Behaviour;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::{Answer, Client};
use super::{Api, GUESTS, mint, no_hash, no_run};
use crate::harness::{World, component, config, logs};

/// Routes that take a JSON body, of a tenant.
const BODIES: [(Method, &str); 3] = [
    (Method::PUT, "/v1/activities/noop"),
    (Method::POST, "/v1/activities/noop/runs"),
    (Method::PUT, "/v1/secrets/key"),
];

/// Every route, with the methods it has.
fn routes() -> Vec<(String, &'static [&'static str])> {
    let (run, hash) = (no_run(), no_hash());
    vec![
        ("/healthz".into(), &["GET"]),
        ("/readyz".into(), &["GET"]),
        ("/.well-known/openwop".into(), &["GET"]),
        ("/runs".into(), &["GET", "POST"]),
        ("/runs:bulk-cancel".into(), &["POST"]),
        (format!("/runs/acme~2F{run}"), &["GET", "POST"]),
        (format!("/runs/acme~2F{run}/cancel"), &["POST"]),
        (format!("/runs/acme~2F{run}/events"), &["GET"]),
        (format!("/runs/acme~2F{run}/events/poll"), &["GET"]),
        (format!("/runs/acme~2F{run}/effects"), &["GET"]),
        ("/v1/modules".into(), &["GET", "POST"]),
        (format!("/v1/modules/{hash}"), &["GET", "DELETE"]),
        ("/v1/activities".into(), &["GET"]),
        ("/v1/activities/noop".into(), &["GET", "PUT", "DELETE"]),
        ("/v1/activities/noop/runs".into(), &["POST"]),
        ("/v1/activities/noop/pause".into(), &["POST"]),
        ("/v1/activities/noop/resume".into(), &["POST"]),
        ("/v1/runs".into(), &["GET"]),
        ("/v1/runs/cancel".into(), &["POST"]),
        (format!("/v1/runs/{run}"), &["GET"]),
        (format!("/v1/runs/{run}/cancel"), &["POST"]),
        (format!("/v1/runs/{run}/pause"), &["POST"]),
        (format!("/v1/runs/{run}/resume"), &["POST"]),
        (format!("/v1/runs/{run}/retry"), &["POST"]),
        (format!("/v1/runs/{run}/signals"), &["GET"]),
        (format!("/v1/runs/{run}/signals/go"), &["POST"]),
        (format!("/v1/runs/{run}/attempts"), &["GET"]),
        (format!("/v1/runs/{run}/effects"), &["GET"]),
        (format!("/v1/runs/{run}/log"), &["GET"]),
        (format!("/v1/runs/{run}/events"), &["GET"]),
        ("/v1/events".into(), &["GET"]),
        (format!("/v1/runs/{run}/callback"), &["GET"]),
        (format!("/v1/runs/{run}/callback/redeliver"), &["POST"]),
        ("/v1/callbacks".into(), &["GET"]),
        ("/v1/effects".into(), &["GET"]),
        (format!("/v1/effects/{hash}"), &["GET"]),
        ("/v1/secrets".into(), &["GET"]),
        ("/v1/secrets/key".into(), &["PUT", "DELETE"]),
        ("/v1/providers".into(), &["GET"]),
        ("/v1/tenants".into(), &["GET", "POST"]),
        ("/v1/tenants/acme/tokens".into(), &["GET", "POST"]),
        ("/v1/tenants/acme/limits".into(), &["GET", "PUT"]),
        ("/v1/tenants/acme/signers".into(), &["GET"]),
        ("/v1/tenants/acme/signers/release".into(), &["PUT", "DELETE"]),
        ("/v1/tenants/acme/pause".into(), &["POST"]),
        ("/v1/tenants/acme/resume".into(), &["POST"]),
        (format!("/v1/tenants/acme/tokens/{run}"), &["DELETE"]),
    ]
}

async fn json_bytes(client: &Client, method: &Method, path: &str, body: impl Into<Vec<u8>>) -> Answer {
    client.raw(method.clone(), path, Some("application/json"), body.into()).await
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_a_route_has_not_is_refused_with_those_it_has() {
    let api = Api::idle().await;
    for (path, methods) in routes() {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"].into_iter().filter(|m| !methods.contains(m))
        {
            let request = api.acme.request(method.parse().unwrap(), &path);
            let answer = api.acme.send(request).await;
            answer.refused(405, "deedbox.method_not_allowed");
            assert!(methods.iter().all(|m| answer.header("allow").contains(m)), "{path}: {answer:?}");
        }
    }
    for path in ["/", "/v1", "/v1/", "/v2/runs", "/v1/runs/", "/v1/run", "/runs/", "/v1/../etc/passwd", "/v1/runs//log"]
    {
        api.acme.get(path).await.refused(404, "not_found");
    }
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_cannot_be_one_names_nothing() {
    let api = Api::idle().await;
    let run = no_run();
    let long = "a".repeat(3000);
    let ids = ["x", "0", "%00", "%FF", "%C3%28", "..", "%2E%2E%2Fx", "'%20or%201=1--", "null", "-1", long.as_str()];
    let spellings = [run.to_uppercase(), run.replace('-', ""), format!("%7B{run}%7D"), format!("urn:uuid:{run}")];
    for id in ids.into_iter().chain(spellings.iter().map(String::as_str)).filter(|id| *id != "..") {
        for path in [
            "/v1/runs/{}",
            "/v1/runs/{}/attempts",
            "/v1/runs/{}/effects",
            "/v1/runs/{}/log",
            "/v1/effects/{}",
            "/v1/modules/{}",
            "/v1/activities/{}",
        ] {
            api.acme.get(&path.replace("{}", id)).await.refused(404, "not_found");
        }
        for path in ["/v1/modules/{}", "/v1/activities/{}", "/v1/secrets/{}"] {
            api.acme.delete(&path.replace("{}", id)).await.refused(404, "not_found");
        }
    }
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn a_query_that_is_not_understood_is_refused() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    let lists = ["/v1/runs", "/v1/effects", &format!("/v1/runs/{run}/effects")];
    let shared = [
        "limit=0",
        "limit=-1",
        "limit=x",
        "limit=99999999999",
        "limit=1&limit=2",
        "state=x",
        "state=",
        "state=%00",
        "after=x",
        "unheard-of=1",
        "state=%FF",
    ];
    for query in shared {
        for list in lists {
            api.acme.get(&format!("{list}?{query}")).await.refused(400, "validation_error");
        }
    }
    for query in ["wait=x", "wait=-1", "wait=1.5", "wait=99999999999999999999", "wait=", "unheard-of=1"] {
        api.acme.get(&format!("/v1/runs/{run}?{query}")).await.refused(400, "validation_error");
    }
    for query in ["activity=%00", "activity=a%20b", "activity="] {
        api.acme.get(&format!("/v1/runs?{query}")).await.refused(400, "validation_error");
    }
    for query in ["run=%00", "run=x", "provider=%00"] {
        api.acme.get(&format!("/v1/effects?{query}")).await.refused(400, "validation_error");
    }
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_not_the_json_of_its_route_is_refused() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let bodies: [Vec<u8>; 12] = [
        b"".to_vec(),
        b" ".to_vec(),
        b"{".to_vec(),
        b"{}{}".to_vec(),
        b"[]".to_vec(),
        b"null".to_vec(),
        b"1".to_vec(),
        b"\"x\"".to_vec(),
        b"{\"unheard-of\": 1}".to_vec(),
        b"\xff\xfe".to_vec(),
        b"{\"input\": \"\0\"}".to_vec(),
        deep(100_000).into_bytes(),
    ];
    for (method, path) in &BODIES {
        for body in &bodies {
            json_bytes(&api.acme, method, path, body.clone()).await.refused(400, "validation_error");
        }
        for kind in
            [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some(""), Some("application/wasm")]
        {
            let answer = api.acme.raw(method.clone(), path, kind, b"{}".to_vec()).await;
            answer.refused(415, "unsupported_media_type");
        }
    }
    let admin = api.acme.with_token(&mint(&api.world, "_admin").await);
    for body in &bodies {
        json_bytes(&admin, &Method::POST, "/v1/tenants", body.clone()).await.refused(400, "validation_error");
        json_bytes(&admin, &Method::POST, "/v1/tenants/acme/tokens", body.clone())
            .await
            .refused(400, "validation_error");
    }
    let answer = api.acme.raw(Method::POST, "/v1/modules", Some("application/octet-stream"), b"x".to_vec()).await;
    answer.refused(415, "unsupported_media_type");
    let run = json_bytes(&api.acme, &BODIES[1].0, BODIES[1].1, format!("{{\"input\": {}}}", deep(400_000))).await;
    assert!((200..500).contains(&run.status), "{}", run.status);
}

/// F-K03: types that do not fit, where the name is right.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_another_type_is_refused_by_its_name() {
    let api = Api::idle().await;
    let version = api.deploy("noop", json!({})).await;
    let (deploy, start, secret) = (&BODIES[0], &BODIES[1], &BODIES[2]);
    let wrong = [
        (deploy, json!({})),
        (deploy, json!({ "module": 1 })),
        (deploy, json!({ "module": null })),
        (deploy, json!({ "module": version["module"], "export": 1 })),
        (deploy, json!({ "module": version["module"], "policy": 1 })),
        (deploy, json!({ "module": version["module"], "policy": { "retry": { "non_retryable": 1 } } })),
        (start, json!({ "input": 1, "retry": [] })),
        (secret, json!({})),
        (secret, json!({ "value": null })),
        (secret, json!({ "value": 5 })),
        (secret, json!({ "value": ["x"] })),
        (secret, json!({ "value": "x", "name": "y" })),
    ];
    for ((method, path), body) in wrong {
        json_bytes(&api.acme, method, path, body.to_string()).await.refused(400, "validation_error");
    }
    // A text that no column could hold as it is.
    let nul = json!({ "module": version["module"], "policy": { "retry": { "non_retryable": ["a\0b"] } } });
    let answer = api.acme.put("/v1/activities/noop", &nul).await;
    assert!(answer.status < 500, "{answer:?}");
}

/// F-K03.
#[tokio::test(flavor = "multi_thread")]
async fn a_body_above_the_limit_is_refused_before_it_has_arrived() {
    let mut settings = config();
    settings.api.max_body_bytes = 2000;
    let api = Api::with(World::keyed().await, settings).await;
    api.deploy("noop", json!({})).await;
    let input = |bytes: usize| format!("{{\"input\":\"{}\"}}", "x".repeat(bytes - 12));
    for (method, path) in &BODIES {
        let answer = json_bytes(&api.acme, method, path, input(2001)).await;
        assert!(answer.message(413, "payload_too_large").contains("2000"), "{answer:?}");
    }
    json_bytes(&api.acme, &BODIES[1].0, BODIES[1].1, input(2000)).await.expect(201);
    let token = mint(&api.world, "acme").await;
    for (kind, path) in [("application/json", "/v1/activities/noop/runs"), ("application/wasm", "/v1/modules")] {
        let framing = ["content-length: 100000000000", "transfer-encoding: chunked\r\n\r\nffffffff"];
        for framing in &framing[..if kind == "application/json" { 2 } else { 1 }] {
            let head =
                format!("POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-type: {kind}");
            let filler = "x".repeat(4000);
            let answer = talk(&api.origin, &format!("{head}\r\n{framing}\r\n\r\n{filler}")).await;
            assert!(answer.starts_with("HTTP/1.1 413 "), "{framing}: {answer}");
            assert!(answer.contains("payload_too_large"), "{answer}");
        }
    }
}

/// F-K03: whoever sent a body that nobody read still reads why, and can ask again.
#[tokio::test(flavor = "multi_thread")]
async fn an_unread_body_costs_its_sender_neither_the_answer_nor_the_next_one() {
    let api = Api::idle().await;
    let wrong = api.acme.with_token("nonsense");
    for _ in 0..15 {
        wrong.upload(component(GUESTS)).await.refused(401, "unauthenticated");
        let answer = api.acme.raw(Method::POST, "/v1/modules", Some("text/plain"), component(GUESTS)).await;
        answer.refused(415, "unsupported_media_type");
        api.acme
            .raw(Method::PUT, "/v1/secrets/a", Some("application/json"), vec![b' '; 1 << 21])
            .await
            .refused(413, "payload_too_large");
        api.acme.put("/v1/secrets/a", &json!({ "value": "x" })).await.expect(204);
    }
}

/// F-K03: what is no HTTP at all.
#[tokio::test(flavor = "multi_thread")]
async fn noise_on_the_socket_is_answered_or_hung_up_on_and_the_server_goes_on() {
    let api = Api::idle().await;
    let long = format!("GET /{} HTTP/1.1\r\nhost: x\r\n\r\n", "a".repeat(100_000));
    let header = format!("GET /v1/runs HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "a".repeat(600_000));
    for noise in ["hello\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\0 HTTP/1.1\r\n\r\n", &long, &header] {
        let answer = talk(&api.origin, noise).await;
        let shown = &answer[..answer.len().min(60)];
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{shown}");
    }
    api.acme.get("/v1/runs").await.expect(200);
}

/// What is answered within five seconds to what is sent, until the server hangs up or has said something.
async fn talk(origin: &str, text: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(origin.trim_start_matches("http://")).await.unwrap();
    // A server that refuses early may hang up while more is being sent.
    let _ = stream.write_all(text.as_bytes()).await;
    let mut received = Vec::new();
    let reading = async {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut part).await {
            received.extend_from_slice(&part[..count]);
            if received.ends_with(b"}") {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), reading).await.ok();
    String::from_utf8_lossy(&received).into_owned()
}

/// F-K03: each part of a run can be looked at in each state of the run.
#[tokio::test(flavor = "multi_thread")]
async fn every_part_of_a_run_is_answered_in_every_state() {
    let api = Api::keyless().await;
    api.deploy("send", api.policy("keyless")).await;
    api.deploy("trap", json!({ "retry": { "max_attempts": 1 } })).await;
    let mut runs = vec![("completed", api.start("send", json!({ "calls": [api.charge("a")] })).await)];
    runs.push(("failed", api.start("trap", json!(1)).await));
    api.work().await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    runs.push(("waiting", api.start("send", json!({ "calls": [api.charge("a")] })).await));
    api.work().await;
    api.world.script(&[Behaviour::HoldBeforeApply]).await;
    runs.push(("running", api.start("send", json!({ "calls": [api.charge("a")] })).await));
    let working = tokio::spawn({
        let worker = api.world.node.worker().clone();
        async move { worker.run_once().await.unwrap() }
    });
    api.world.books.wait_for_arrivals(3, Duration::from_secs(10)).await.unwrap();
    runs.push(("queued", api.start("send", json!({ "calls": [] })).await));
    for (state, run) in &runs {
        assert_eq!(api.acme.get(&format!("/v1/runs/{run}")).await.expect(200)["state"], **state);
        for part in ["attempts", "effects", "log"] {
            api.acme.get(&format!("/v1/runs/{run}/{part}")).await.expect(200);
        }
        api.acme.get(&format!("/runs/acme~2F{run}/effects")).await.expect(200);
    }
    api.world.books.release().await.unwrap();
    working.await.unwrap();
}

/// What only the log may know stays there; a number ties the two together.
#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_server_is_told_to_the_log_alone() {
    logs::keep();
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    api.world.database.execute("update activity_versions set policy = 'canary-nonsense'").await;
    for answer in [
        api.acme.get("/v1/activities").await,
        api.acme.get("/v1/activities/noop").await,
        api.acme.post("/v1/activities/noop/runs", &json!({})).await,
    ] {
        let body = answer.refused(500, "internal_error");
        let id = body["details"]["correlationId"].as_str().unwrap();
        assert_eq!(id, answer.header("x-request-id"));
        assert_eq!(body["details"].as_object().unwrap().len(), 1);
        assert!(["canary", "JSON", "policy", "sql", "column"].iter().all(|word| !answer.text.contains(word)), "{body}");
        let line = logs::all().lines().any(|line| line.contains(id) && line.contains("ERROR"));
        assert!(line, "the log has the request's id beside the cause");
    }
    let message: Value = api.acme.get("/v1/activities/noop").await.json()["message"].clone();
    assert!(message.as_str().is_some_and(|text| text.len() > 10));
}
