//! `/v1/runs`: a run from its start to its end, as its owner sees it.

use std::time::{Duration, Instant};

use deedbox_books::Behaviour;
use serde_json::{Value, json};

use super::client::{assert_members, whole_list};
use super::{Api, no_run};

const SNAPSHOT: [&str; 22] = [
    "run_id",
    "activity",
    "version",
    "state",
    "input",
    "output",
    "failure",
    "attempts",
    "spent",
    "max_attempts",
    "due_at",
    "waiting_for",
    "priority",
    "run_name",
    "labels",
    "paused",
    "cancel_requested",
    "cancel_reason",
    "close_by",
    "created_at",
    "started_at",
    "ended_at",
];

/// Upload, deploy, start, wait, snapshot, attempts, effects, log, witness: over sockets, by a node that serves and works.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_from_its_start_to_its_witness() {
    let api = Api::working().await;
    let module = api.upload("charge_once.wasm").await;
    let body = json!({ "module": module, "policy": api.policy("stripe") });
    api.acme.put("/v1/activities/charge-once", &body).await.expect(201);
    let order =
        json!({ "order": "1042", "amount_cents": 4200, "customer": "cus_7", "provider_url": api.world.origin() });
    let answer = api.acme.post("/v1/activities/charge-once/runs", &json!({ "input": order })).await;
    let started = answer.expect(201);
    assert_members(&started, &["run_id", "state", "activity", "version", "created_at"]);
    assert_eq!((&started["state"], &started["version"]), (&json!("queued"), &json!(1)));
    let run = started["run_id"].as_str().unwrap();
    assert_eq!(answer.header("location"), format!("/v1/runs/{run}"));

    let ended = api.acme.get(&format!("{}?wait=30", answer.header("location"))).await.expect(200);
    assert_members(&ended, &SNAPSHOT);
    assert_eq!(ended["output"], json!({ "outcome": "charged", "charge_id": "ch_1" }));
    assert_eq!((&ended["state"], &ended["input"]), (&json!("completed"), &order));
    assert_eq!((&ended["attempts"], &ended["max_attempts"]), (&json!(1), &json!(3)));
    assert_eq!(
        (&ended["failure"], &ended["due_at"], &ended["waiting_for"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let times: Vec<&str> =
        ["created_at", "started_at", "ended_at"].iter().map(|name| ended[name].as_str().unwrap()).collect();
    assert!(times.is_sorted() && times.iter().all(|time| time.ends_with('Z')), "{times:?}");

    let attempts = whole_list(&api.acme.get(&format!("/v1/runs/{run}/attempts")).await);
    let fields = [
        "attempt",
        "worker",
        "started_at",
        "ended_at",
        "outcome",
        "failure",
        "peak_memory_bytes",
        "cpu_ms",
        "host_calls",
    ];
    assert_members(&attempts[0], &fields);
    assert_eq!((attempts.len(), &attempts[0]["outcome"]), (1, &json!("completed")));
    assert_eq!(attempts[0]["worker"], "worker");
    assert!(attempts[0]["peak_memory_bytes"].as_u64().unwrap() > 65_536, "{attempts:?}");
    assert!(["cpu_ms", "host_calls"].iter().all(|used| attempts[0][used].as_u64().unwrap() >= 1), "{attempts:?}");

    let effects = api.effects_of(run).await;
    let applied = api.world.books.applied().await.unwrap();
    assert_eq!((effects.len(), applied.len()), (1, 1));
    assert_eq!(effects[0]["wire_key"].as_str(), applied[0].key.as_deref());
    assert!(whole_list(&api.acme.get(&format!("/v1/runs/{run}/log")).await).is_empty());
    let witness = api.acme.get(&format!("/runs/acme~2F{run}/effects")).await.expect(200);
    assert_eq!(witness["effects"][0]["providerKey"], effects[0]["wire_key"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_and_logs_are_kept_for_each_attempt() {
    let api = Api::idle().await;
    api.deploy("fail-until", json!({ "retry": { "initial_interval": "1ms" } })).await;
    api.deploy("print", json!({})).await;
    let failed_once = api.start("fail-until", json!({ "attempt": 2 })).await;
    let printed = api.start("print", json!({ "lines": 2, "bytes": 3, "stderr": true })).await;
    let much = api.start("print", json!({ "lines": 10, "bytes": 100_000 })).await;
    api.work().await;

    let attempts = whole_list(&api.acme.get(&format!("/v1/runs/{failed_once}/attempts")).await);
    let outcomes: Vec<_> = attempts.iter().map(|a| (a["attempt"].as_i64(), a["outcome"].as_str())).collect();
    assert_eq!(outcomes, [(Some(1), Some("failed")), (Some(2), Some("completed"))]);
    let failure = json!({ "code": "not-yet", "message": "attempt 1" });
    assert_eq!(attempts[0]["failure"]["code"], failure["code"], "{attempts:?}");
    assert_eq!(attempts[0]["failure"]["message"], failure["message"]);
    assert_eq!(attempts[1]["failure"], Value::Null);

    let log = whole_list(&api.acme.get(&format!("/v1/runs/{printed}/log")).await);
    assert_eq!(log, [json!({ "attempt": 1, "stream": "stderr", "text": "xxx\nxxx\n", "truncated": false })]);
    let log = whole_list(&api.acme.get(&format!("/v1/runs/{much}/log")).await);
    assert_eq!((&log[0]["stream"], &log[0]["truncated"]), (&json!("stdout"), &json!(true)));
    assert!(log[0]["text"].as_str().unwrap().len() <= 256 << 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_and_an_output_are_kept_as_they_were_written() {
    let api = Api::idle().await;
    api.deploy("raw-output", json!({})).await;
    api.deploy("noop", json!({})).await;
    let number = "12345678901234567890.50";
    let text = format!(r#"{{"input": {{"text": "{number}", "n": {number}, "z": 1, "a": "ä\u0000"}}}}"#);
    let path = "/v1/activities/raw-output/runs";
    let answer = api.acme.raw(reqwest::Method::POST, path, Some("application/json"), text.into_bytes()).await;
    let run = answer.expect(201)["run_id"].as_str().unwrap().to_owned();
    let without = api.acme.post("/v1/activities/noop/runs", &json!({})).await.expect(201)["run_id"].clone();
    api.work().await;
    let shown = api.acme.get(&format!("/v1/runs/{run}")).await;
    assert!(shown.text.contains(&format!(r#""input":{{"text": "{number}", "n": {number}, "z": 1, "a": "ä\u0000"}}"#)));
    assert!(shown.text.contains(&format!(r#""output":{number}"#)), "{}", shown.text);
    let without = api.ended(without.as_str().unwrap()).await;
    assert_eq!((&without["state"], &without["input"]), (&json!("completed"), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_ends_with_the_run_or_with_its_time() {
    let api = Api::idle().await;
    api.deploy("send", api.policy("stripe")).await;
    api.world.script(&[Behaviour::HoldBeforeApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    let asked = Instant::now();
    let queued = api.acme.get(&format!("/v1/runs/{run}?wait=1")).await.expect(200);
    assert!(asked.elapsed() >= Duration::from_secs(1));
    assert_eq!((&queued["state"], &queued["started_at"]), (&json!("queued"), &Value::Null));
    assert_ne!(queued["due_at"], Value::Null);

    let working = tokio::spawn({
        let worker = api.world.node.worker().clone();
        async move { worker.run_once().await.unwrap() }
    });
    api.world.books.wait_for_arrivals(1, Duration::from_secs(10)).await.unwrap();
    let running = api.acme.get(&format!("/v1/runs/{run}?wait=0")).await.expect(200);
    assert_eq!((&running["state"], &running["due_at"]), (&json!("running"), &Value::Null));
    let waiting = tokio::spawn({
        let (acme, path) = (api.acme.clone(), format!("/v1/runs/{run}?wait=30"));
        async move { (acme.get(&path).await, Instant::now()) }
    });
    api.world.books.release().await.unwrap();
    working.await.unwrap();
    let ended = Instant::now();
    let (answer, told) = waiting.await.unwrap();
    assert_eq!(answer.expect(200)["state"], "completed");
    // Whoever only looked again by itself would be told after five seconds.
    assert!(told.saturating_duration_since(ended) < Duration::from_secs(2));
    let asked = Instant::now();
    api.acme.get(&format!("/v1/runs/{run}?wait=30")).await.expect(200);
    assert!(asked.elapsed() < Duration::from_secs(2), "an ended run is not waited for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_replaces_fields_of_the_retry_and_no_others() {
    let api = Api::idle().await;
    api.deploy("fail-until", json!({ "retry": { "max_attempts": 50, "initial_interval": "1ms" } })).await;
    let start = |retry: Value| {
        let body = json!({ "input": { "attempt": 100 }, "retry": retry });
        let acme = api.acme.clone();
        async move { acme.post("/v1/activities/fail-until/runs", &body).await }
    };
    let fewer = start(json!({ "max_attempts": 2 })).await.expect(201)["run_id"].clone();
    let none = start(json!({ "non_retryable": ["not-yet"] })).await.expect(201)["run_id"].clone();
    api.work().await;
    let fewer = api.ended(fewer.as_str().unwrap()).await;
    assert_eq!((&fewer["state"], &fewer["attempts"], &fewer["max_attempts"]), (&json!("failed"), &json!(2), &json!(2)));
    assert_eq!(fewer["failure"]["code"], "not-yet", "{fewer}");
    let none = api.ended(none.as_str().unwrap()).await;
    assert_eq!((&none["attempts"], &none["max_attempts"]), (&json!(1), &json!(50)));

    let wrong = [
        (json!({ "max_attempts": 0 }), "retry.max_attempts"),
        (json!({ "max_attempts": "2" }), "retry"),
        (json!({ "max_interval": "1 fortnight" }), "fortnight"),
        (json!({ "unheard-of": 1 }), "unheard-of"),
    ];
    for (retry, expected) in wrong {
        let message = start(retry).await.message(400, "validation_error");
        assert!(message.starts_with("retry") && message.contains(expected), "{expected}: {message}");
    }
    for retry in [json!([]), json!(3), json!("x")] {
        start(retry).await.refused(400, "validation_error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_an_answer_says_for_which_effect() {
    let api = Api::keyless().await;
    api.deploy("send", api.policy("keyless")).await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    api.work().await;
    let waiting = api.acme.get(&format!("/v1/runs/{run}")).await.expect(200);
    let effect = &api.effects_of(&run).await[0];
    assert_eq!((&waiting["state"], &waiting["due_at"]), (&json!("waiting"), &Value::Null));
    assert_eq!(waiting["waiting_for"], json!({ "effect_id": effect["effect_id"] }));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_newest_first_by_activity_and_state() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    api.deploy("trap", json!({ "retry": { "max_attempts": 1 } })).await;
    let (first, second) = (api.start("noop", json!(1)).await, api.start("trap", json!(1)).await);
    api.work().await;
    let third = api.start("noop", json!(2)).await;
    let list = |query: &str| {
        let (acme, path) = (api.acme.clone(), format!("/v1/runs{query}"));
        async move {
            let runs = whole_list(&acme.get(&path).await);
            let without: Vec<&str> = SNAPSHOT.into_iter().filter(|name| !["input", "output"].contains(name)).collect();
            runs.iter().for_each(|run| assert_members(run, &without));
            runs.iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        }
    };
    assert_eq!(list("").await, [third.clone(), second.clone(), first.clone()]);
    assert_eq!(list("?activity=noop").await, [third.clone(), first.clone()]);
    assert_eq!(list("?state=failed").await, [second]);
    assert_eq!(list("?activity=noop&state=queued").await, [third]);
    assert_eq!(list("?activity=unknown").await, Vec::<String>::new());
    let run = api.acme.get(&format!("/v1/runs/{}", no_run())).await;
    run.refused(404, "not_found");
}
