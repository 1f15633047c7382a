//! Cancel, pause and resume, as the scenarios of the run surface have them.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{create, host, idle_with, run_path, settings, snapshot, types, until_status, whole_log};
use crate::api::client::Client;

async fn act(client: &Client, id: &str, word: &str, body: Value) -> crate::api::client::Answer {
    client.post(&format!("{}{word}", run_path(id)), &body).await
}

/// The status that stands in the way.
#[track_caller]
fn in_the_way(answer: &crate::api::client::Answer, code: &str) -> String {
    answer.refused(409, code)["details"]["runStatus"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_paused_once_and_goes_on_when_it_is_resumed() {
    let api = host().await;
    let id = create(&api.acme, "conformance-delay", json!({ "delayMs": 1000 })).await;
    let paused =
        act(&api.acme, &id, ":pause", json!({ "reason": "lunch", "drainPolicy": "immediate" })).await.expect(202);
    assert_eq!((&paused["runId"], &paused["status"]), (&json!(id), &json!("paused")));
    assert!(paused["pausedAt"].is_string(), "{paused}");
    assert_eq!(in_the_way(&act(&api.acme, &id, ":pause", json!({})).await, "run_state_conflict"), "paused");
    assert_eq!(snapshot(&api.acme, &id).await["status"], "paused");
    let resumed = act(&api.acme, &id, ":resume", json!({})).await.expect(202);
    assert_eq!(resumed, json!({ "runId": id, "status": "running" }));
    until_status(&api.acme, &id, "completed").await;
    let log = whole_log(&api.acme, &id).await;
    let told = types(&log);
    let at = |kind: &str| told.iter().position(|one| *one == kind).unwrap_or_else(|| panic!("{kind}: {told:?}"));
    assert_eq!(log[at("run.paused")]["payload"], json!({ "drainPolicy": "immediate" }));
    assert!(at("run.paused") < at("run.resumed") && at("run.resumed") < at("run.completed"), "{told:?}");
    for word in [":pause", ":resume", "/cancel"] {
        assert_eq!(in_the_way(&act(&api.acme, &id, word, json!({})).await, "run_terminal"), "completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_paused_is_not_resumed_and_what_waits_for_the_attempt_is_not_offered() {
    let api = idle_with(settings()).await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    assert_eq!(in_the_way(&act(&api.acme, &id, ":resume", json!({})).await, "run_state_conflict"), "pending");
    let drain = json!({ "drainPolicy": "drain-current-node" });
    act(&api.acme, &id, ":pause", drain).await.refused(422, "capability_not_provided");
    for wrong in [json!({ "drainPolicy": "soon" }), json!({ "else": 1 })] {
        act(&api.acme, &id, ":pause", wrong).await.refused(400, "validation_error");
    }
    for nothing in [":fork", ":", ":pausing"] {
        act(&api.acme, &id, nothing, json!({})).await.refused(404, "not_found");
    }
    assert_eq!(snapshot(&api.acme, &id).await["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_is_cancelled_once() {
    let api = host().await;
    let id = create(&api.acme, "conformance-delay", json!({ "delayMs": 30_000 })).await;
    until_status(&api.acme, &id, "running").await;
    let answer = act(&api.acme, &id, "/cancel", json!({ "reason": "too long" })).await.expect(200);
    assert!(["cancelling", "cancelled"].contains(&answer["status"].as_str().unwrap()), "{answer}");
    let log = whole_log(&api.acme, &id).await;
    let last = log.last().unwrap();
    assert_eq!((&last["type"], &last["payload"]), (&json!("run.cancelled"), &json!({ "reason": "too long" })));
    assert_eq!(in_the_way(&act(&api.acme, &id, "/cancel", json!({})).await, "run_terminal"), "cancelled");
}

/// A key counts for each of the things that can be done to a run.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_counts_once_for_each_thing_that_is_done_to_a_run() {
    let api = idle_with(settings()).await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    let key = "openwop-control-0123456789";
    let keyed = |word: &str| {
        let request = api.acme.request(reqwest::Method::POST, &format!("{}{word}", run_path(&id)));
        api.acme.send(request.header("idempotency-key", key).json(&json!({})))
    };
    for (word, status) in [(":pause", 202), (":resume", 202), ("/cancel", 200)] {
        let (first, again) = (keyed(word).await, keyed(word).await);
        assert_eq!((first.status, again.status, &again.text), (status, status, &first.text), "{word}");
        assert_eq!(
            (first.header("openwop-idempotent-replay"), again.header("openwop-idempotent-replay")),
            ("", "true")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runs_are_cancelled_each_by_itself() {
    let api = idle_with(settings()).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(create(&api.acme, "conformance-noop", json!({})).await);
    }
    let all = json!([ids[0], "other/0123456789abcdef", ids[1], ids[0], format!("acme/{}", crate::api::no_run()), "x"]);
    let answer = api.acme.post("/runs:bulk-cancel", &json!({ "runIds": all, "reason": "closing" })).await.expect(200);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(
        json!(results.iter().map(|entry| &entry["runId"]).collect::<Vec<_>>()),
        all,
        "in the order of the request"
    );
    let said: Vec<&str> = results
        .iter()
        .map(|entry| entry["status"].as_str().or(entry["error"]["error"].as_str()).unwrap_or_else(|| panic!("{entry}")))
        .collect();
    let expected = ["cancelled", "id_tenant_mismatch", "cancelled", "run_terminal", "not_found", "validation_error"];
    assert_eq!(said, expected);
    assert!(results.iter().all(|entry| entry["ok"] == entry.get("error").is_none()), "{answer}");
    assert_eq!(snapshot(&api.acme, &ids[1]).await["status"], "cancelled");
    let many: Vec<String> = vec![ids[0].clone(); 101];
    let refused = api.acme.post("/runs:bulk-cancel", &json!({ "runIds": many })).await.refused(400, "validation_error");
    assert_eq!(refused["details"]["maxRunIds"], 100);
}

/// Either spelling of an id is the same request under a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_known_again_however_its_id_is_spelled() {
    let api = host().await;
    for (word, status) in [(":pause", 202), (":resume", 202), ("/cancel", 200)] {
        let id = create(&api.acme, "conformance-delay", json!({ "delayMs": 60_000 })).await;
        if word == ":resume" {
            act(&api.acme, &id, ":pause", json!({})).await.expect(202);
        }
        let key = Uuid::new_v4().to_string();
        let mut answers = Vec::new();
        for spelled in [id.replace('/', "~2F"), id.replace('/', "%2F")] {
            let path = format!("/runs/{spelled}{word}");
            let request = api.acme.request(Method::POST, &path).header("idempotency-key", &key).json(&json!({}));
            answers.push(api.acme.send(request).await);
        }
        assert!([status, 202].contains(&answers[0].status), "{word}: {answers:?}");
        assert_eq!(answers[0].header("openwop-idempotent-replay"), "", "{word}");
        assert_eq!(answers[1].header("openwop-idempotent-replay"), "true", "{word}: {answers:?}");
        assert_eq!((answers[0].status, &answers[0].text), (answers[1].status, &answers[1].text));
    }
}
