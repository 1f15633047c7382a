//! A run's log: polled, and streamed until the run has ended.

use serde_json::{Value, json};

use super::{create, host, idle_with, run_path, schemas, settings, types, until_status, whole_log};
use crate::api::client::{Answer, Client};

/// The frames of a stream that has ended: each its id, its name and its data.
fn frames(answer: &Answer) -> Vec<(i64, String, Value)> {
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"), "{answer:?}");
    let told = answer.text.split("\n\n").filter(|frame| frame.contains("data: "));
    let field = |frame: &str, name: &str| -> String {
        let mut lines = frame.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        lines.next().unwrap_or_else(|| panic!("{name}: {frame}")).to_owned()
    };
    let read = |frame: &str| {
        let data = serde_json::from_str(&field(frame, "data")).unwrap();
        (field(frame, "id").parse().unwrap(), field(frame, "event"), data)
    };
    told.map(read).collect()
}

async fn follow(client: &Client, id: &str, query: &str, last: Option<&str>) -> Answer {
    let request = client.request(reqwest::Method::GET, &format!("{}/events{query}", run_path(id)));
    client
        .send(match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_polled_from_its_first_event_to_its_last() {
    let api = host().await;
    let id = create(&api.acme, "conformance-delay", json!({ "delayMs": 200 })).await;
    let log = whole_log(&api.acme, &id).await;
    assert_eq!(types(&log), ["deedbox.run.queued", "run.started", "run.completed"]);
    let numbers: Vec<i64> = log.iter().map(|event| event["sequence"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert!(log.iter().all(|event| event["runId"] == id), "{log:?}");
    assert_eq!(log[2]["payload"], json!({ "outputs": {} }));
    let owner = until_status(&api.acme, &id, "completed").await["owner"].clone();
    let started = json!({ "workflowId": "conformance-delay", "transport": "rest", "owner": owner });
    assert_eq!(log[1]["payload"], started, "the run's beginning names its owner as the snapshot does");
    // Beyond the end there is nothing, and it is said where the end is.
    for after in [2, 7, i64::MAX] {
        let answer = api.acme.get(&format!("{}/events/poll?afterSequence={after}", run_path(&id))).await;
        let page = schemas::poll(&answer.expect(200));
        let expected =
            json!({ "runId": id, "events": [], "lastSequence": 2, "status": "completed", "isTerminal": true });
        assert_eq!(page, expected);
    }
    for wrong in ["timeout=0", "timeout=61", "timeout=x", "afterSequence=-2", "afterSequence=x"] {
        api.acme.get(&format!("{}/events/poll?{wrong}", run_path(&id))).await.refused(400, "validation_error");
    }
}

/// Whoever goes on behind the last event that a poll gave misses none.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_is_polled_in_parts() {
    let api = idle_with(settings()).await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    let run = id.strip_prefix("acme/").unwrap();
    let many = format!(
        "insert into events (tenant, run_id, kind)
         select 'acme', '{run}', 'signal.received' from generate_series(1, 1500)"
    );
    api.world.database.execute(&many).await;
    api.work().await;
    let page = schemas::poll(&api.acme.get(&format!("{}/events/poll", run_path(&id))).await.expect(200));
    assert_eq!(page["events"].as_array().unwrap().len(), 1000);
    assert_eq!((&page["lastSequence"], &page["status"]), (&json!(999), &json!("completed")));
    assert_eq!(page["isTerminal"], false, "there is more");
    let log = whole_log(&api.acme, &id).await;
    let numbers: Vec<i64> = log.iter().map(|event| event["sequence"].as_i64().unwrap()).collect();
    assert_eq!(numbers, (0..1503).collect::<Vec<_>>());
}

/// A failed run forgets its failure when it begins again.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_says_the_same_whenever_it_is_told() {
    let api = idle_with(settings()).await;
    let id = create(&api.acme, "conformance-failure", json!({})).await;
    api.work().await;
    let before = whole_log(&api.acme, &id).await;
    let error = json!({ "code": "deedbox.conformance_failure", "message": "the run failed" });
    assert_eq!(before.last().unwrap()["payload"]["error"], error);
    let run = id.strip_prefix("acme/").unwrap();
    api.acme.post(&format!("/v1/runs/{run}/retry"), &json!({})).await.expect(200);
    let page = api.acme.get(&format!("{}/events/poll", run_path(&id))).await.expect(200);
    assert_eq!(page["status"], "pending", "its failure is forgotten");
    assert_eq!(page["events"].as_array().unwrap()[..before.len()], before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poll_waits_for_news_and_no_longer_than_it_was_asked_to() {
    let api = idle_with(settings()).await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    let begun = std::time::Instant::now();
    let page = api.acme.get(&format!("{}/events/poll?afterSequence=0&timeout=1", run_path(&id))).await.expect(200);
    assert_eq!((&page["events"], &page["lastSequence"], &page["isTerminal"]), (&json!([]), &json!(0), &json!(false)));
    assert!(begun.elapsed().as_millis() >= 1000);
    let poll = tokio::spawn({
        let (client, path) = (api.acme.clone(), format!("{}/events/poll?afterSequence=0&timeout=60", run_path(&id)));
        async move { client.get(&path).await.expect(200) }
    });
    api.begin_working();
    assert_eq!(poll.await.unwrap()["events"][0]["type"], "run.started");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_tells_the_runs_own_steps_and_ends_with_it() {
    let api = host().await;
    let id = create(&api.acme, "conformance-delay", json!({ "delayMs": 300 })).await;
    let told = frames(&follow(&api.acme, &id, "?resumable=true", None).await);
    let names: Vec<&str> = told.iter().map(|(_, name, _)| name.as_str()).collect();
    assert_eq!(names, ["run.started", "run.completed"]);
    for (number, name, event) in &told {
        assert_eq!((&schemas::event(event)["sequence"], &event["type"]), (&json!(number), &json!(name)));
    }
    let debug = frames(&follow(&api.acme, &id, "?streamMode=debug", None).await);
    assert_eq!(debug.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [0, 1, 2], "also when it has ended");
    let both = frames(&follow(&api.acme, &id, "?streamMode=updates,debug", None).await);
    assert_eq!(both.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>(), ["debug", "updates", "updates"]);
    let batch = frames(&follow(&api.acme, &id, "?streamMode=debug&bufferMs=100", None).await);
    assert_eq!((batch.len(), batch[0].0, batch[0].1.as_str()), (1, 2, "batch"));
    assert_eq!(types(batch[0].2.as_array().unwrap()), ["deedbox.run.queued", "run.started", "run.completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_behind_the_last_event_that_was_seen() {
    let api = host().await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    whole_log(&api.acme, &id).await;
    for (last, numbers) in [("0", vec![1, 2]), ("1", vec![2]), ("2", vec![]), ("9", vec![])] {
        let told = frames(&follow(&api.acme, &id, "?streamMode=debug", Some(last)).await);
        assert_eq!(told.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), numbers, "behind {last}");
    }
    follow(&api.acme, &id, "", Some("x")).await.refused(400, "validation_error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mode_that_there_is_not_is_refused_with_those_that_there_are() {
    let api = idle_with(settings()).await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    for mode in ["values", "messages", "updates,values", "all", ""] {
        let body = follow(&api.acme, &id, &format!("?streamMode={mode}"), None).await;
        let body = body.refused(400, "unsupported_stream_mode");
        assert_eq!(body["details"]["supported"], json!(["updates", "debug"]), "{mode}");
    }
    follow(&api.acme, &id, "?bufferMs=5001", None).await.refused(400, "validation_error");
}

/// What a run waits for is told without the words of whoever will answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_says_for_what() {
    let api = host().await;
    api.deploy("read-all", json!({})).await;
    let run = api.start("read-all", json!({ "name": "go", "signals": 1 })).await;
    let id = format!("acme/{run}");
    let waiting = until_status(&api.acme, &id, "waiting-external").await;
    assert_eq!(waiting["currentNodeId"], "read-all");
    api.acme.post(&format!("/v1/runs/{run}/signals/go"), &json!({ "canary": "payload-77" })).await.expect(202);
    let log = whole_log(&api.acme, &id).await;
    let suspended = log.iter().find(|event| event["type"] == "node.suspended").unwrap();
    assert_eq!((&suspended["payload"]["kind"], &suspended["payload"]["key"]), (&json!("external-event"), &json!("go")));
    let before_the_end = json!(&log[..log.len() - 1]).to_string();
    assert!(!before_the_end.contains("payload-77"), "{before_the_end}");
    assert!(types(&log).contains(&"node.started"), "its next attempt");
}
