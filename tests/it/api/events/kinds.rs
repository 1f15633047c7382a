//! Each kind of event, in the lives of real runs.

use deedbox_books::Behaviour;
use serde_json::{Value, json};

use super::{Api, all_of, command, kinds, page, path, settled, waiting, with};
use crate::worker::until;

/// The kinds and data of a run's events so far.
async fn so_far(api: &Api, run: &str) -> Vec<(String, Value)> {
    settled(api).await;
    let listed = page(&api.acme, &path(run)).await;
    let items = listed["items"].as_array().unwrap().iter();
    items.map(|event| (event["kind"].as_str().unwrap().to_owned(), event["data"].clone())).collect()
}

fn told(kind: &str, data: Value) -> (String, Value) {
    (kind.to_owned(), data)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_for_a_signal() {
    let api = with(|_| {}).await;
    let run = waiting(&api).await;
    api.acme.post(&format!("/v1/runs/{run}/signals/other"), &json!("canary")).await.expect(202);
    api.acme.post(&format!("/v1/runs/{run}/signals/go"), &json!("canary")).await.expect(202);
    api.work().await;
    let expected = [
        told("run.queued", json!({})),
        told("run.started", json!({ "attempt": 1 })),
        told("run.waiting", json!({ "signal": "go" })),
        told("signal.received", json!({ "name": "other", "sequence": 1 })),
        told("run.queued", json!({})),
        told("signal.received", json!({ "name": "go", "sequence": 2 })),
        told("run.started", json!({ "attempt": 2 })),
        told("run.completed", json!({})),
    ];
    assert_eq!(so_far(&api, &run).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_fails_is_tried_again_and_begun_again() {
    let api = Api::idle().await;
    let retry = json!({ "retry": { "max_attempts": 2, "initial_interval": "1ms", "jitter": "none" } });
    api.deploy("fail", retry).await;
    // What PostgreSQL could not read as a text must not keep the run from ending.
    let details = json!({ "canary": "\u{0}" });
    let input = json!({ "code": "no-stock", "message": "canary\u{0}", "kind": "retryable", "details": details });
    let run = api.start("fail", input).await;
    api.work().await;
    let failed = so_far(&api, &run).await;
    let names: Vec<&str> = failed.iter().map(|(kind, _)| kind.as_str()).collect();
    let expected = ["run.queued", "run.started", "run.waiting", "run.queued", "run.started", "run.failed"];
    assert_eq!(names, expected);
    assert!(failed[2].1["due_at"].as_str().unwrap().ends_with('Z'), "{failed:?}");
    assert_eq!(failed[5].1, json!({ "code": "no-stock" }));
    command(&api.acme, &run, "retry").await;
    assert_eq!(so_far(&api, &run).await[6], told("run.queued", json!({})));
    api.work().await;
    let whole = all_of(&api, &run).await;
    assert_eq!(whole.last().unwrap().kind, "run.failed", "the stream goes on behind the first end: {whole:?}");
    assert!(whole.len() > 7 && !format!("{whole:?}").contains("canary"), "{whole:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_owner_pauses_resumes_and_cancels_it() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    for what in ["pause", "pause", "resume", "resume", "cancel", "cancel"] {
        command(&api.acme, &run, what).await;
    }
    let events = all_of(&api, &run).await;
    assert_eq!(kinds(&events), ["run.queued", "run.paused", "run.resumed", "run.cancelled"], "again tells nothing");

    let delayed = json!({ "input": 1, "delay": "1h" });
    let later = api.acme.post("/v1/activities/noop/runs", &delayed).await.expect(201);
    let shown = so_far(&api, later["run_id"].as_str().unwrap()).await;
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].1["due_at"], api.run(later["run_id"].as_str().unwrap()).await["due_at"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_run_is_told_to_be_cancelling_before_it_is_cancelled() {
    let api = Api::idle().await;
    api.deploy("spin", json!({})).await;
    let run = api.start("spin", json!(1)).await;
    api.begin_working();
    api.until_state(&run, "running").await;
    command(&api.acme, &run, "cancel").await;
    let events = all_of(&api, &run).await;
    assert_eq!(kinds(&events), ["run.queued", "run.started", "run.cancelling", "run.cancelled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_an_open_question_and_is_settled() {
    let api = Api::keyless().await;
    api.deploy("send", api.policy("keyless")).await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    api.work().await;
    let effect = api.effects_of(&run).await.remove(0)["effect_id"].clone();
    let said =
        json!({ "outcome": "happened", "response": { "status": 201, "body": { "id": "canary" } }, "note": "canary" });
    api.acme.post(&format!("/v1/effects/{}/resolve", effect.as_str().unwrap()), &said).await.expect(200);
    api.work().await;
    let expected = [
        told("run.queued", json!({})),
        told("run.started", json!({ "attempt": 1 })),
        told("effect.escaped", json!({ "effect_id": effect, "provider": "keyless" })),
        told("run.waiting", json!({ "effect_id": effect })),
        told("effect.resolved", json!({ "effect_id": effect, "provider": "keyless", "state": "completed" })),
        told("run.queued", json!({})),
        told("run.started", json!({ "attempt": 2 })),
        told("run.completed", json!({})),
    ];
    assert_eq!(so_far(&api, &run).await, expected);
    api.world.database.execute("update effects set doubled = true").await;
    let doubled = so_far(&api, &run).await.pop().unwrap();
    assert_eq!(doubled, told("effect.doubled", json!({ "effect_id": effect, "provider": "keyless" })));
}

/// A lease that is kept alive, a look that finds nothing, and a signal that is read are nothing to tell.
#[tokio::test(flavor = "multi_thread")]
async fn renewals_and_looks_tell_nothing() {
    let api = with(|config| config.worker.lease_ms = 1_000).await;
    api.deploy("spin", json!({})).await;
    let run = api.start("spin", json!(1)).await;
    api.begin_working();
    api.until_state(&run, "running").await;
    let lease = async || {
        let sql = "select due_at::text from runs";
        sqlx::query_scalar::<_, String>(sql).fetch_one(&mut api.world.database.connect().await).await.unwrap()
    };
    for _ in 0..3 {
        let before = lease().await;
        until("the lease was renewed", async || lease().await != before).await;
    }
    assert_eq!(so_far(&api, &run).await.len(), 2, "queued and started");
    command(&api.acme, &run, "cancel").await;
    assert_eq!(api.ended(&run).await["state"], "cancelled");
}

/// The events of a run go with it.
#[tokio::test(flavor = "multi_thread")]
async fn retention_sweeps_events_with_their_runs() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let old = api.start("noop", json!(1)).await;
    api.work().await;
    api.world.database.execute("update runs set ended_at = ended_at - interval '40 days'").await;
    let kept = api.start("noop", json!(1)).await;
    api.work().await;
    assert_eq!(deedbox::store::retention::sweep(api.world.node.store(), 30, 100).await.unwrap(), 1);
    api.acme.get(&path(&old)).await.refused(404, "not_found");
    settled(&api).await;
    let left = page(&api.acme, "/v1/events?from=oldest").await;
    let left = left["items"].as_array().unwrap();
    assert!(left.len() == 3 && left.iter().all(|event| event["run_id"] == json!(kept)), "{left:?}");
}
