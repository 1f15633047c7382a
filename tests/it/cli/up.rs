//! `deedbox up`: what it says, what it keeps, how it stops, and how it refuses to start.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::json;

use super::program::{Running, Up, component_file, deedbox, finish, place, processes_of};
use crate::harness::http;

/// The value beside a name in what `up` prints.
fn value<'a>(lines: &'a [String], name: &str) -> &'a str {
    let line =
        lines.iter().find_map(|line| line.trim().strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {lines:?}"));
    line.trim()
}

fn up(data: &Path, listen: &str) -> tokio::process::Command {
    deedbox(&["up", "--data-dir", data.to_str().unwrap(), "--listen", listen])
}

#[tokio::test(flavor = "multi_thread")]
async fn up_says_where_it_is_and_stops_well_when_asked_to() {
    let place = place();
    let data = place.path().join("d");
    let mut running = Running::start(up(&data, "127.0.0.1:0"), place.path().join("log"));
    let mut lines = vec![running.line().await];
    while !lines.last().unwrap().starts_with("Ctrl-C") {
        lines.push(running.line().await);
    }
    assert_eq!(lines[0], "Deedbox is up.");
    let (address, token) = (value(&lines, "address"), value(&lines, "token"));
    assert!(lines.iter().any(|line| line.contains(&format!("export DEEDBOX_URL={address} DEEDBOX_TOKEN={token}"))));
    let http = http::client();
    let runs = http.get(format!("{address}/v1/runs")).bearer_auth(token).send().await.unwrap();
    assert_eq!(runs.status(), 200);
    assert_eq!(http.get(format!("{address}/readyz")).send().await.unwrap().status(), 200);
    for name in ["token", "admin-token", "master.key"] {
        let mode = std::fs::metadata(data.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(!processes_of(&data).is_empty(), "the server and PostgreSQL name their directory");

    running.signal("TERM").await;
    let ended = running.end().await;
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""), "{ended:?}");
    assert!(ended.err.contains("stopped; the data is kept"), "{ended:?}");
    assert!(!ended.err.contains(token.rsplit('.').next().unwrap()), "a token is not logged");
    assert_eq!(processes_of(&data), Vec::<String>::new());
    assert!(http.get(format!("{address}/healthz")).send().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_up_goes_on_with_the_data_and_the_tokens_of_the_first() {
    let place = place();
    let data = place.path().join("d");
    let first = Up::start(&data).await;
    first.run(&["deploy", &component_file(place.path(), "charge_once.wasm")]).await.well();
    let run = first.ask(&["start", "charge-once", "--input", "{}"]).await["run_id"].clone();

    let in_use = finish(up(&data, "127.0.0.1:0")).await.failed(1);
    assert!(in_use.contains("is in use by another deedbox") && in_use.contains("--data-dir"), "{in_use}");
    let (port, elsewhere) = (first.address.trim_start_matches("http://"), place.path().join("e"));
    let taken = finish(up(&elsewhere, port)).await.failed(1);
    assert!(taken.contains("is taken by another program") && taken.contains("--listen"), "{taken}");
    assert_eq!(processes_of(&elsewhere), Vec::<String>::new());

    let tokens = (first.token.clone(), first.admin_token.clone());
    first.stop("INT").await;
    let second = Up::start(&data).await;
    assert_eq!((second.token.clone(), second.admin_token.clone()), tokens);
    assert_eq!(second.ask(&["runs"]).await["items"][0]["run_id"], run);
    assert_eq!(second.ask(&["runs", "show", run.as_str().unwrap()]).await["input"], json!({}));
    second.stop("TERM").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn up_refuses_what_it_cannot_use_before_it_starts_anything() {
    let place = place();
    let data = place.path().join("d");
    let file = place.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let settings = place.path().join("settings.toml");
    std::fs::write(&settings, "[worker]\nlease_ms = 5\n").unwrap();
    finish(up(&data, "nonsense")).await.failed(2);
    let words = finish(up(&file, "127.0.0.1:0")).await.failed(1);
    assert!(words.contains("--data-dir"), "{words}");
    let mut command = up(&data, "127.0.0.1:0");
    command.arg("--config").arg(&settings);
    let words = finish(command).await.failed(1);
    assert!(words.contains("worker.lease_ms"), "{words}");
    let mut command = up(&data, "127.0.0.1:0");
    command.args(["--database-url", "postgres://someone@127.0.0.1:9/nothing?sslmode=disable"]);
    let words = finish(command).await.failed(1);
    assert!(words.contains("database"), "{words}");
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
}
