//! `deedbox demo`: its last line is only printed when the provider's books and the ledger agree on one charge.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use super::program::{Running, component_file, deedbox, finish, place, processes_of, program};

fn demo(place: &Path, books: &Path, arguments: &[&str]) -> Command {
    let mut command = deedbox(arguments);
    command.args(["demo", "--component", &component_file(place, "charge_once.wasm")]);
    command.arg("--books").arg(books).arg("--data-dir").arg(place.join("demo"));
    command
}

/// F-B01, as the first page tells it.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_ends_with_one_charge_and_two_sends() {
    let place = place();
    let out = finish(demo(place.path(), &program("deedbox-books"), &[])).await.well();
    let last = out.lines().last().unwrap();
    let key = last.strip_prefix("demo: one charge, 2 sends, wire key ").unwrap_or_else(|| panic!("{out}"));
    assert_eq!(uuid::Uuid::parse_str(key).unwrap().to_string(), key);
    assert!(out.contains("worker-1 is killed: signal: 9 (SIGKILL)"), "{out}");
    // Once for each request that the provider received, once for what it applied, and once in the ledger.
    assert!(out.matches(key).count() >= 4, "{out}");
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
}

/// A provider that ignores keys is charged twice, and the demo says so and fails: its good end is no foregone conclusion.
#[tokio::test(flavor = "multi_thread")]
async fn the_demo_fails_when_the_provider_takes_no_keys() {
    let place = place();
    let keyless = place.path().join("keyless-books");
    let script = format!("#!/bin/sh\nexec '{}' --keyless \"$@\"\n", program("deedbox-books").display());
    std::fs::write(&keyless, script).unwrap();
    std::fs::set_permissions(&keyless, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ended = finish(demo(place.path(), &keyless, &["--json"])).await;
    assert!(!ended.out.contains("one charge"), "{ended:?}");
    for line in ended.out.lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
    let words = ended.failed(1);
    assert!(words.contains("did not apply exactly one charge"), "{words}");
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_demo_leaves_nothing_running() {
    let place = place();
    let mut running = Running::start(demo(place.path(), &program("deedbox-books"), &[]), place.path().join("log"));
    while !running.line().await.contains("the API listens") {}
    assert!(processes_of(place.path()).len() > 1);
    running.signal("INT").await;
    let ended = running.end().await;
    assert!(!ended.out.contains("one charge"), "{ended:?}");
    assert!(ended.failed(1).contains("the demo was interrupted"));
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
}
