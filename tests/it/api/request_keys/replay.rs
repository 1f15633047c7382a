//! What was answered is told once more, byte for byte, and not done once more: runs, and what their owners do to them.

use deedbox_books::Behaviour;

use super::*;

fn order(api: &Api, run: &str, what: &str) -> Ask {
    Ask::new(&api.acme, Method::POST, &format!("/v1/runs/{run}/{what}"))
}

/// R-K15, R-K18, R-K27, R-C02, F-A14.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_is_told_again_with_its_place_and_only_the_second_time_as_such() {
    let api = noops().await;
    let ask = Ask::start(&api.acme, &json!({ "input": { "n": 1 } })).key(&fresh_key());
    let first = twice(&ask, 201).await;
    let run = run_of(&first);
    assert_eq!(first.header("location"), format!("/v1/runs/{run}"));
    assert_eq!(first.header("content-type"), JSON);
    // The answer of then, also when the run is elsewhere by now.
    api.work().await;
    assert_eq!(api.run(&run).await["state"], "completed");
    for _ in 0..3 {
        replays(&ask.send().await, &first);
    }
    assert_eq!((runs(&api).await, api.outcomes(&run).await), (vec![run], vec!["completed".to_owned()]));
}

/// R-K15, F-A14: each is done once, also when the run has gone on since, and one key serves for all of them.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_owner_does_to_a_run_is_done_once() {
    let api = noops().await;
    let key = fresh_key();
    let run = run_of(&twice(&Ask::start(&api.acme, &json!({})).key(&key), 201).await);
    let pausing = order(&api, &run, "pause").key(&key);
    let paused = twice(&pausing, 200).await;
    assert_eq!(paused.json()["paused"], true);
    let resumed = twice(&order(&api, &run, "resume").key(&key), 200).await;
    replays(&pausing.send().await, &paused);
    assert_eq!(api.run(&run).await["paused"], false, "it was paused again");
    done(&order(&api, &run, "pause").key(&fresh_key()).send().await, 200);
    replays(&order(&api, &run, "resume").key(&key).send().await, &resumed);
    assert_eq!(api.run(&run).await["paused"], true, "it was resumed again");
    let path = format!("/v1/runs/{run}/cancel");
    let cancelling = Ask::post(&api.acme, &path, &json!({ "reason": "closed" })).key(&key);
    twice(&cancelling, 200).await;
    // It is as it was wanted, whoever asks again.
    done(&cancelling.key(&fresh_key()).send().await, 200);
    twice(&order(&api, &run, "pause").key(&fresh_key()), 409).await;
}

/// R-K15: the run is not begun a third time.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_begun_again_once() {
    let api = Api::idle().await;
    api.deploy("fail", json!({})).await;
    let run = api.start("fail", json!({ "code": "no", "message": "m", "kind": "permanent" })).await;
    api.work().await;
    let retrying = order(&api, &run, "retry").key(&fresh_key());
    let first = twice(&retrying, 200).await;
    assert_eq!(first.json()["state"], "queued");
    api.work().await;
    replays(&retrying.send().await, &first);
    assert_eq!((api.run(&run).await["state"].clone(), api.outcomes(&run).await.len()), (json!("failed"), 2));
    done(&retrying.key(&fresh_key()).send().await, 200);
}

/// R-K15: what was started after it is not caught by it.
#[tokio::test(flavor = "multi_thread")]
async fn many_runs_are_cancelled_once() {
    let api = noops().await;
    for n in 0..3 {
        api.start("noop", json!(n)).await;
    }
    let cancelling = Ask::post(&api.acme, "/v1/runs/cancel", &json!({ "activity": "noop" })).key(&fresh_key());
    let first = twice(&cancelling, 200).await;
    assert_eq!(first.json(), json!({ "cancelled": 3, "requested": 0, "more": false }));
    let later = api.start("noop", json!("later")).await;
    replays(&cancelling.send().await, &first);
    assert_eq!(api.run(&later).await["state"], "queued");
}

/// R-K15: whoever says twice what became of an effect is not told that it is settled.
#[tokio::test(flavor = "multi_thread")]
async fn an_effect_is_resolved_once() {
    let api = Api::keyless().await;
    api.deploy("send", api.policy("keyless")).await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    api.work().await;
    let effect = api.effects_of(&run).await[0]["effect_id"].as_str().unwrap().to_owned();
    let said = json!({ "outcome": "happened", "note": "it is in their books" });
    let resolving = Ask::post(&api.acme, &format!("/v1/effects/{effect}/resolve"), &said).key(&fresh_key());
    let first = twice(&resolving, 200).await;
    assert_eq!(first.json()["state"], "completed");
    resolving.clone().without_key().send().await.refused(409, "version_conflict");
    api.work().await;
    replays(&resolving.send().await, &first);
    assert_eq!(api.run(&run).await["state"], "completed");
    assert_eq!(api.world.books.applied().await.unwrap().len(), 1);
}

/// R-K03, R-K15, R-K18: the routes of the OpenWOP profile.
#[tokio::test(flavor = "multi_thread")]
async fn the_host_profile_tells_again_too() {
    let api = noops().await;
    let key = fresh_key();
    let body = json!({ "workflowId": "noop", "inputs": { "n": 1 } });
    let creating = Ask::post(&api.acme, "/runs", &body).key(&key);
    let bound = twice(&creating, 201).await.json()["runId"].as_str().unwrap().to_owned();
    let projected = bound.replace('/', "~2F");
    assert_eq!(runs(&api).await, [bound.trim_start_matches("acme/")]);
    for (what, status) in [(":pause", 202), (":resume", 202), ("/cancel", 200)] {
        twice(&Ask::post(&api.acme, &format!("/runs/{projected}{what}"), &json!({})).key(&key), status).await;
    }
    let other = json!({ "workflowId": "noop", "inputs": { "n": 2 } });
    let mismatch = Ask::post(&api.acme, "/runs", &other).key(&key).send().await;
    let refused = mismatch.refused(409, "idempotency_key_mismatch");
    assert!(!refused.to_string().contains(bound.trim_start_matches("acme/")), "{refused}");
    Ask::post(&api.acme, "/runs", &body).key("short").send().await.refused(400, "idempotency_key_invalid");
    assert_eq!(runs(&api).await.len(), 1);
}

/// Each table with a digest of all its rows.
async fn written(api: &Api) -> Vec<(String, String)> {
    let mut connection = api.world.database.connect().await;
    let all = "select tablename::text from pg_tables where schemaname = 'public' order by 1";
    let tables: Vec<String> = sqlx::query_scalar(all).fetch_all(&mut connection).await.unwrap();
    let mut written = Vec::new();
    for table in tables {
        let rows = format!("select coalesce(md5(string_agg(t::text, ';' order by t::text)), '') from {table} t");
        let digest = sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(&mut connection).await.unwrap();
        written.push((table, digest));
    }
    written
}

/// R-C20: no event, no row, no change: what hangs on the run is as if nobody had asked again.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_writes_nothing() {
    let api = noops().await;
    let body = json!({ "run_name": "order-1", "labels": { "shop": "7" }, "signal": { "name": "go" } });
    let key = fresh_key();
    let starting = Ask::start(&api.acme, &body).key(&key);
    let first = twice(&starting, 201).await;
    let run = run_of(&first);
    let cancelling = order(&api, &run, "cancel").key(&fresh_key());
    let cancelled = twice(&cancelling, 200).await;
    let before = written(&api).await;
    assert!(before.iter().any(|(table, _)| table == "request_keys") && before.len() > 15, "{before:?}");
    replays(&starting.send().await, &first);
    replays(&cancelling.send().await, &cancelled);
    starting.clone().lenient().send().await.expect(200);
    Ask::start(&api.acme, &json!({ "input": 2 })).key("short").send().await.refused(400, "idempotency_key_invalid");
    let other = Ask::start(&api.acme, &json!({ "input": 2 })).key(&key);
    other.send().await.refused(409, "idempotency_key_mismatch");
    assert_eq!(written(&api).await, before);
}
