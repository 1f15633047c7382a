//! Signals that come before somebody reads them: none is lost, whatever the run or its workers are doing, and none
//! wakes a run that does not wait for it.

use std::time::Duration;

use deedbox_books::Behaviour;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::super::client::{Client, assert_members, whole_list};
use super::super::{mint, serve};
use super::{Api, KEY, OTHER_KEY, deliver, idle, listener, signals_of, taken, waits_for};
use crate::harness::config;

async fn post(api: &Api, run: &str, what: &str) -> Value {
    api.acme.post(&format!("/v1/runs/{run}/{what}"), &json!({})).await.expect(200)
}

/// F-D03.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_comes_before_the_guest_waits_is_given_to_the_later_wait() {
    let api = idle().await;
    let run = listener(&api).await;
    taken(&deliver(&api.acme, &run, "go", None, &json!("early")).await, true);
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!(["early"]));
    assert_eq!(api.outcomes(&run).await, ["completed"]);
}

/// F-D03: the attempt is under way and has not come to its wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_comes_while_the_guest_does_something_else_is_given_to_the_later_wait() {
    let api = idle().await;
    api.deploy("listen", api.policy("stripe")).await;
    api.world.script(&[Behaviour::HoldBeforeApply]).await;
    let asks = [json!({ "call": api.charge("first") }), json!({ "wait": { "name": "go" } })];
    let run = api.start("listen", json!({ "asks": asks })).await;
    api.begin_working();
    api.world.books.wait_for_arrivals(1, Duration::from_secs(20)).await.unwrap();
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!("meanwhile")).await, true);
    api.world.books.release().await.unwrap();
    let ended = api.ended(&run).await;
    assert_eq!((&ended["output"][0]["status"], &ended["output"][1]), (&json!(201), &json!("meanwhile")), "{ended}");
    assert_eq!(api.outcomes(&run).await, ["completed"]);
}

/// R-B15. What waits for something else is told later, and is not woken for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_run_keeps_signals_of_other_names() {
    let api = idle().await;
    api.deploy("listen", json!({})).await;
    let run = api.start("listen", waits_for(&["go", "later"])).await;
    api.work().await;
    assert_eq!(api.run(&run).await["waiting_for"], json!({ "signal": "go" }));
    taken(&deliver(&api.acme, &run, "later", Some(OTHER_KEY), &json!(2)).await, true);
    assert_eq!(api.run(&run).await["state"], "waiting");
    api.work().await;
    assert_eq!(api.outcomes(&run).await, ["suspended"]);
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!(1)).await, true);
    assert_eq!(api.run(&run).await["state"], "queued");
    api.work().await;
    let ended = api.ended(&run).await;
    assert_eq!((&ended["output"], &ended["waiting_for"]), (&json!([1, 2]), &Value::Null));
    assert_eq!(api.outcomes(&run).await, ["suspended", "completed"], "one was there already");
}

/// R-B15.
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_keeps_its_signals_and_is_not_woken_by_them() {
    let api = idle().await;
    let queued = listener(&api).await;
    post(&api, &queued, "pause").await;
    let waiting = listener(&api).await;
    api.world.work().await;
    assert_eq!(api.run(&waiting).await["state"], "waiting");
    post(&api, &waiting, "pause").await;
    for run in [&queued, &waiting] {
        taken(&deliver(&api.acme, run, "go", Some(KEY), &json!("kept")).await, true);
        taken(&deliver(&api.acme, run, "go", Some(KEY), &json!("kept")).await, false);
    }
    api.world.work().await;
    for (run, attempts) in [(&queued, 0), (&waiting, 1)] {
        assert_eq!(api.outcomes(run).await.len(), attempts);
        let shown = api.run(run).await;
        assert_eq!((&shown["paused"], &shown["ended_at"]), (&json!(true), &Value::Null), "{shown}");
        assert_eq!(signals_of(&api, run).await[0]["read"], false);
        post(&api, run, "resume").await;
    }
    api.work().await;
    for run in [&queued, &waiting] {
        assert_eq!(api.ended(run).await["output"], json!(["kept"]));
    }
}

/// R-B14.
#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_does_not_wake_the_run_again() {
    let api = idle().await;
    api.deploy("listen", json!({})).await;
    let run = api.start("listen", waits_for(&["go", "go"])).await;
    api.work().await;
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!(1)).await, true);
    api.work().await;
    assert_eq!(api.outcomes(&run).await, ["suspended"; 2], "it has one, and waits for another");
    let waiting = api.run(&run).await;
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!(1)).await, false);
    assert_eq!(api.run(&run).await, waiting);
    api.work().await;
    assert_eq!(api.outcomes(&run).await, ["suspended"; 2]);
    taken(&deliver(&api.acme, &run, "go", Some(OTHER_KEY), &json!(2)).await, true);
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!([1, 2]));
}

/// F-D09: nobody works, and the server that took the signal is gone before anybody does.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_was_taken_outlives_the_server_and_waits_for_workers() {
    let api = idle().await;
    let waiting = listener(&api).await;
    api.work().await;
    assert_eq!(api.run(&waiting).await["state"], "waiting");
    let queued = listener(&api).await;
    for run in [&queued, &waiting] {
        taken(&deliver(&api.acme, run, "go", Some(KEY), &json!("durable")).await, true);
    }
    api.stop.cancel();

    let stop = CancellationToken::new();
    let _ends_with_the_test = stop.clone().drop_guard();
    let origin = serve(&api.world.database, config(), stop.clone()).await;
    let again = Client::new(&origin, Some(mint(&api.world, "acme").await));
    for run in [&queued, &waiting] {
        taken(&deliver(&again, run, "go", Some(KEY), &json!("durable")).await, false);
    }
    tokio::spawn(api.world.node.worker().clone().run(stop));
    for run in [&queued, &waiting] {
        let ended = again.get(&format!("/v1/runs/{run}?wait=30")).await.expect(200);
        assert_eq!((&ended["state"], &ended["output"]), (&json!("completed"), &json!(["durable"])), "{ended}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn signals_are_listed_in_pages_in_their_order_and_show_what_was_read() {
    let api = idle().await;
    api.deploy("listen", json!({})).await;
    let run = api.start("listen", waits_for(&["go", "go", "last"])).await;
    for n in 1..=5 {
        taken(&deliver(&api.acme, &run, "go", None, &json!({ "n": n })).await, true);
    }
    api.work().await;
    let list = format!("/v1/runs/{run}/signals");
    let (mut seen, mut after) = (Vec::new(), String::new());
    for size in [2, 2, 1] {
        let page = api.acme.get(&format!("{list}?limit=2{after}")).await.expect(200);
        let items = page["items"].as_array().unwrap().clone();
        assert_eq!(items.len(), size, "{page}");
        after = page["after"].as_str().map(|after| format!("&after={after}")).unwrap_or_default();
        assert_eq!(after.is_empty(), size == 1, "{page}");
        seen.extend(items);
    }
    seen.iter().for_each(|signal| assert_members(signal, &["sequence", "name", "payload", "received_at", "read"]));
    let told: Vec<_> =
        seen.iter().map(|s| (s["sequence"].as_i64(), s["payload"]["n"].as_i64(), s["read"].as_bool())).collect();
    let expected: Vec<_> = (1..=5).map(|n| (Some(n), Some(n), Some(n <= 2))).collect();
    assert_eq!(told, expected);
    assert_eq!(whole_list(&api.acme.get(&list).await), seen);
    for query in ["limit=0", "limit=x", "after=x", "after=-1", "after=", "colour=1"] {
        api.acme.get(&format!("{list}?{query}")).await.refused(400, "validation_error");
    }
}
