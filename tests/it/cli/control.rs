//! What owners do to their runs on the command line: names and labels, signals, pauses, cancelling, retries, limits.

use std::path::Path;

use serde_json::{Value, json};

use super::program::{Running, Up, component_file, deedbox, finish, place};

/// The input of `listen`: it waits for one signal, and returns what came.
const LISTEN: &str = r#"{"asks":[{"wait":{"name":"paid","timeout_ms":null}}]}"#;

async fn deploy(up: &Up, place: &Path, activity: &str, policy: &str) {
    let file = place.join("policy.toml");
    std::fs::write(&file, policy).unwrap();
    let component = component_file(place, "deedbox_test_guests.wasm");
    up.run(&["deploy", &component, "--name", activity, "--policy", file.to_str().unwrap()]).await.well();
}

fn run_id(run: &Value) -> String {
    run["run_id"].as_str().unwrap().to_owned()
}

fn count(list: &Value) -> usize {
    list["items"].as_array().unwrap().len()
}

/// R-B02, R-B04, R-B08, R-B09.
#[tokio::test(flavor = "multi_thread")]
async fn a_named_run_waits_for_a_signal_that_counts_once() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    deploy(&up, place.path(), "listen", "").await;
    let start = ["start", "listen", "--input", LISTEN, "--run-name", "order-1042", "--label", "shop=berlin"];
    let start = [&start[..], &["--priority", "2"]].concat();
    let started = up.ask(&start).await;
    assert_eq!((&started["state"], &started["started_fresh"]), (&json!("queued"), &json!(true)));
    let run = run_id(&started);
    assert!(up.run(&start).await.failed(1).contains("has this run_name"));
    let attached = up.ask(&[&start[..], &["--reuse", "attach"]].concat()).await;
    assert_eq!((&attached["run_id"], &attached["started_fresh"]), (&json!(run), &json!(false)));
    find_by_what_was_said(&up, &run).await;
    pause_and_resume(&up, &run).await;

    let mut watch = Running::start(up.command(&["runs", "watch", &run]), place.path().join("watch.log"));
    while !watch.line().await.contains("waits for signal paid") {}
    let key = "evt_0123456789abcdefghij";
    let signal = ["signal", &run, "paid", "--payload", r#"{"cents":4200}"#, "--idempotency-key", key];
    assert_eq!(up.ask(&signal).await, json!({ "signal_delivered": true }));
    assert_eq!(up.ask(&signal).await, json!({ "signal_delivered": false }));
    let watched = watch.end().await;
    assert!(watched.out.lines().last().is_some_and(|line| line.ends_with("run.completed")), "{watched:?}");
    watched.well();

    assert_eq!(up.ask(&["runs", "show", &run]).await["output"], json!([{ "cents": 4200 }]));
    let signals = up.ask(&["runs", "signals", &run]).await;
    let first = &signals["items"][0];
    assert_eq!((count(&signals), &first["payload"], &first["read"]), (1, &json!({ "cents": 4200 }), &json!(true)));
    assert!(up.run(&["runs", "signals", &run]).await.well().contains("paid"));
    assert!(up.run(&signal).await.well().contains("nothing was added"));
    assert!(up.run(&["signal", &run, "paid"]).await.failed(1).contains("the run is completed"));
    let short = up.run(&["signal", &run, "paid", "--idempotency-key", "canary"]).await.failed(1);
    assert!(short.contains("22 to 128") && !short.contains("canary"), "{short}");
    assert!(up.run(&["signal", &run, "paid", "--payload", "{"]).await.failed(2).contains("--payload is not JSON"));
    up.stop("TERM").await;
}

/// R-B06.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_brings_its_signal_to_the_run_of_its_name_once() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    deploy(&up, place.path(), "listen", "").await;
    let start = ["start", "listen", "--input", LISTEN, "--run-name", "order-7", "--reuse", "attach"];
    let signal = ["--signal", "paid", "--signal-payload", "7", "--signal-key", "evt_0123456789abcdefghij"];
    let waiting = run_id(&up.ask(&start).await);
    let with_signal = [&start[..], &signal].concat();
    let attached = up.ask(&with_signal).await;
    assert_eq!((&attached["run_id"], &attached["signal_delivered"]), (&json!(waiting), &json!(true)));
    up.until(&["runs", "show", &waiting], |run| run["output"] == json!([7])).await;
    let again = up.ask(&with_signal).await;
    assert_eq!((&again["run_id"], &again["signal_delivered"]), (&json!(waiting), &json!(false)), "it has come before");
    let another = ["--signal", "paid", "--signal-payload", "7", "--signal-key", "evt_another_0123456789abc", "--wait"];
    let fresh = up.ask(&[&start[..], &another].concat()).await;
    assert_eq!((&fresh["state"], &fresh["output"]), (&json!("completed"), &json!([7])));
    assert_ne!(fresh["run_id"], json!(waiting));
    up.stop("TERM").await;
}

async fn find_by_what_was_said(up: &Up, run: &str) {
    let found = up.ask(&["runs", "list", "--label", "shop=berlin", "--run-name", "order-1042"]).await;
    assert_eq!((count(&found), found["items"][0]["run_id"].as_str()), (1, Some(run)));
    for other in [["--label", "shop=paris"], ["--label", "berlin=shop"], ["--run-name", "order-1043"]] {
        assert_eq!(count(&up.ask(&[&["runs", "list"], &other[..]].concat()).await), 0, "{other:?}");
    }
    assert!(up.run(&["runs", "list", "--label", "shop"]).await.failed(2).contains("NAME=VALUE"));
    let shown = up.run(&["runs", "show", run]).await.well();
    for words in ["order-1042", "shop=berlin", "priority"] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

async fn pause_and_resume(up: &Up, run: &str) {
    assert!(up.run(&["runs", "pause", run]).await.well().contains("paused"));
    let is_paused = |run: &Value| run["paused"] == json!(true) && run["state"] != "running";
    let paused = up.until(&["runs", "show", run], is_paused).await;
    assert_eq!(count(&up.ask(&["runs", "list", "--paused"]).await), 1);
    assert!(up.run(&["runs"]).await.well().contains("(paused)"));
    assert_eq!(up.ask(&["runs", "show", run]).await["attempts"], paused["attempts"]);
    up.run(&["runs", "resume", run]).await.well();
    assert_eq!(count(&up.ask(&["runs", "list", "--paused"]).await), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_is_begun_again_and_one_that_waits_is_cancelled() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    deploy(&up, place.path(), "fail", "[retry]\nmax_attempts = 1\n").await;
    deploy(&up, place.path(), "listen", "").await;
    let input = r#"{"code":"no-stock","message":"none left","kind":"permanent","retry_after_ms":null,"details":null}"#;
    let failing = run_id(&up.ask(&["start", "fail", "--input", input]).await);
    let words = up.run(&["runs", "watch", &failing]).await.failed(1);
    assert!(words.contains("the run failed: no-stock: none left"), "{words}");
    up.run(&["runs", "retry", &failing]).await.well();
    up.until(&["runs", "show", &failing], |run| run["state"] == "failed" && run["attempts"] == 2).await;

    let waiting = run_id(&up.ask(&["start", "listen", "--input", LISTEN]).await);
    up.until(&["runs", "show", &waiting], |run| run["waiting_for"]["signal"] == "paid").await;
    let cancel = ["runs", "cancel", &waiting, "--reason", "sold out"];
    assert!(up.run(&cancel).await.well().contains("is cancelled"));
    assert_eq!(up.ask(&cancel).await["state"], "cancelled");
    assert!(up.run(&["runs", "show", &waiting]).await.well().contains("sold out"));
    assert!(up.run(&["runs", "watch", &waiting]).await.failed(1).contains("the run was cancelled: sold out"));
    assert!(up.run(&["runs", "retry", &waiting]).await.failed(1).contains("only a failed run"));
    assert!(up.run(&["runs", "pause", &waiting]).await.failed(1).contains("the run is cancelled"));
    assert!(up.run(&["signal", &waiting, "paid"]).await.failed(1).contains("the run is cancelled"));
    cancel_many(&up).await;
    up.stop("TERM").await;
}

async fn cancel_many(up: &Up) {
    for _ in 0..3 {
        let start = ["start", "listen", "--input", LISTEN, "--label", "batch=7", "--delay", "1h"];
        assert_eq!(up.ask(&start).await["state"], "queued");
    }
    up.run(&["runs", "cancel-many", "--reason", "all of them"]).await.failed(2);
    let some = ["runs", "cancel-many", "--activity", "listen", "--state", "queued", "--label", "batch=7"];
    let two = up.ask(&[&some[..], &["--limit", "2", "--reason", "sold out"]].concat()).await;
    assert_eq!(two, json!({ "cancelled": 2, "requested": 0, "more": true }));
    assert_eq!(up.run(&some).await.well(), "1 cancelled\n");
    let cancelled = up.ask(&["runs", "list", "--label", "batch=7", "--state", "cancelled"]).await;
    assert_eq!(count(&cancelled), 3, "{cancelled}");
    let none = ["runs", "cancel-many", "--created-before", "2020-01-01T00:00:00Z"];
    assert_eq!(up.ask(&none).await["cancelled"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runs_of_an_activity_or_a_tenant_are_held_back() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    for activity in ["noop", "run-info"] {
        deploy(&up, place.path(), activity, "[limits]\nmax_running = 7\n").await;
    }
    assert_eq!(count(&up.ask(&["activity"]).await), 2);
    assert!(up.run(&["activity", "show", "noop"]).await.well().contains("\"max_running\": 7"));
    assert!(up.run(&["activity", "pause", "noop"]).await.well().contains("activity noop is paused"));
    assert!(up.run(&["activity", "pause", "unknown"]).await.failed(1).contains("no such activity"));
    let held = run_id(&up.ask(&["start", "noop"]).await);
    // A worker is there, and takes what it may.
    up.run(&["start", "run-info", "--wait"]).await.well();
    let shown = up.ask(&["runs", "show", &held]).await;
    assert_eq!((&shown["state"], &shown["attempts"]), (&json!("queued"), &json!(0)));
    up.run(&["activity", "resume", "noop"]).await.well();
    up.until(&["runs", "show", &held], |run| run["state"] == "completed").await;

    let admin = |arguments: &[&str]| {
        let mut command = deedbox(&[&["--json", "tenant"], arguments].concat());
        command.env("DEEDBOX_URL", &up.address).env("DEEDBOX_TOKEN", &up.admin_token);
        finish(command)
    };
    let bounds = |most: Value, paused: bool| {
        let mut limits = crate::api::tenant_limits::none();
        (limits["max_running"], limits["paused"]) = (most, json!(paused));
        limits
    };
    let limits = ["limits", "default"];
    assert_eq!(admin(&[&limits[..], &["--max-running", "5"]].concat()).await.json(), bounds(json!(5), false));
    admin(&["pause", "default"]).await.well();
    assert_eq!(admin(&limits).await.json(), bounds(json!(5), true));
    admin(&["resume", "default"]).await.well();
    assert_eq!(admin(&[&limits[..], &["--max-running", "none"]].concat()).await.json(), bounds(Value::Null, false));
    assert!(admin(&["limits", "nobody"]).await.failed(1).contains("no such tenant"));
    assert!(up.run(&["tenant", "limits", "default"]).await.failed(1).contains("admin-token"));
    up.stop("TERM").await;
}
