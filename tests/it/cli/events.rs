//! Following events on the command line, over a server that goes and comes back.

use serde_json::{Value, json};

use super::program::{Running, Up, component_file, deedbox, finish, place};

/// The input of `listen`: it waits for one signal.
const LISTEN: &str = r#"{"asks":[{"wait":{"name":"paid","timeout_ms":null}}]}"#;

async fn kind(running: &mut Running) -> String {
    let event: Value = serde_json::from_str(&running.line().await).unwrap();
    event["kind"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on_when_the_server_comes_back() {
    let place = place();
    let data = place.path().join("d");
    let up = Up::start(&data).await;
    let listen = up.address.trim_start_matches("http://").to_owned();
    let component = component_file(place.path(), "deedbox_test_guests.wasm");
    up.run(&["deploy", &component, "--name", "listen"]).await.well();
    let run = up.ask(&["start", "listen", "--input", LISTEN]).await["run_id"].as_str().unwrap().to_owned();
    let mut watch = Running::start(up.command(&["--json", "runs", "watch", &run]), place.path().join("watch.log"));
    for expected in ["run.queued", "run.started", "run.waiting"] {
        assert_eq!(kind(&mut watch).await, expected);
    }
    up.stop("TERM").await;
    let up = Up::start_at(&data, &listen).await;
    up.run(&["signal", &run, "paid"]).await.well();
    for expected in ["run.queued", "signal.received", "run.started", "run.completed"] {
        assert_eq!(kind(&mut watch).await, expected, "nothing is missed and nothing is told twice");
    }
    let watched = watch.end().await;
    assert_eq!(watched.out, "", "{watched:?}");
    watched.well();

    // From the beginning again, for people.
    let told = up.run(&["runs", "watch", &run]).await.well();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 7, "{told}");
    assert!(lines[2].ends_with("run.waiting      waits for signal paid"), "{told}");
    assert!(lines[5].ends_with("run.started      attempt 2"), "{told}");
    up.stop("TERM").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happens_to_all_runs_is_followed() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    let component = component_file(place.path(), "deedbox_test_guests.wasm");
    for activity in ["noop", "run-info"] {
        up.run(&["deploy", &component, "--name", activity]).await.well();
    }
    let first = up.ask(&["start", "noop", "--wait"]).await;
    up.run(&["start", "run-info", "--wait"]).await.well();
    let follow = ["--json", "events", "--from-oldest", "--activity", "noop"];
    let mut events = Running::start(up.command(&follow), place.path().join("events.log"));
    for expected in ["run.queued", "run.started", "run.completed"] {
        let event: Value = serde_json::from_str(&events.line().await).unwrap();
        assert_eq!((&event["kind"], &event["run_id"]), (&json!(expected), &first["run_id"]));
    }
    let mut ends = Running::start(
        up.command(&["events", "--from-oldest", "--kind", "run.completed"]),
        place.path().join("ends.log"),
    );
    let line = ends.line().await;
    assert!(line.starts_with(first["run_id"].as_str().unwrap()) && line.contains("  noop  "), "{line}");
    assert!(ends.line().await.contains("  run-info  "));
    up.run(&["start", "run-info", "--wait"]).await.well();
    let second = up.ask(&["start", "noop", "--wait"]).await;
    let event: Value = serde_json::from_str(&events.line().await).unwrap();
    assert_eq!((&event["kind"], &event["run_id"]), (&json!("run.queued"), &second["run_id"]));
    assert!(ends.line().await.contains("  run-info  ") && ends.line().await.contains("  noop  "));
    for running in [&events, &ends] {
        running.signal("TERM").await;
    }
    up.stop("TERM").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_that_cannot_begin_says_why() {
    let place = place();
    let up = Up::start(&place.path().join("d")).await;
    let unknown = "0190b1c2-0000-7000-8000-000000000001";
    assert!(up.run(&["runs", "watch", unknown]).await.failed(1).contains("no such run"));
    assert!(up.run(&["events", "--kind", "nothing"]).await.failed(1).contains("kind: must be one of"));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut nowhere = deedbox(&["runs", "watch", unknown, "--url", &format!("http://{free}")]);
    nowhere.env("DEEDBOX_TOKEN", &up.token);
    assert!(finish(nowhere).await.failed(3).contains("no server answers"));
    up.stop("TERM").await;
}
