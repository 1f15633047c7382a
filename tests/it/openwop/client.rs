//! The specification's own client, unmodified, against a node that serves. What it does is in
//! `tests/openwop_client/drive.py`.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use super::host;
use crate::api::mint;
use crate::harness::openwop_python;

const DRIVEN_WITHIN: Duration = Duration::from_secs(180);

async fn drive(address: &str, token: &str) -> Value {
    let script = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/openwop_client/drive.py"));
    let mut command = Command::new(openwop_python());
    command.arg(script).args([address, token]).kill_on_drop(true);
    // A proxy of the machine's own must not stand in between.
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = tokio::time::timeout(DRIVEN_WITHIN, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_specifications_own_client_drives_this_host() {
    let api = host().await;
    let saw = drive(&api.origin, &mint(&api.world, "acme").await).await;
    let expected = json!({
        "versions": [["2.0"], "2.0"],
        "families": ["idempotency", "runList"],
        "fixtures": ["conformance-noop", "conformance-delay", "conformance-failure"],
        "replayed": true,
        "another": true,
        "mismatch": [409, "idempotency_key_mismatch"],
        "short key": [400, "idempotency_key_invalid"],
        "followed": ["run.started", "run.completed"],
        "polled": ["deedbox.run.queued", "run.started", "run.completed"],
        "ended as": "completed",
        "run": [true, "conformance-noop", "completed", ["a", "b"], { "team": "red" }, 3],
        "owner": ["acme", "acme"],
        "effects": [true, 0],
        "failed": ["failed", "deedbox.conformance_failure"],
        "scope": [409, "run_already_active"],
        "paused": "paused",
        "paused again": [409, "run_state_conflict"],
        "resumed": "running",
        "cancelling": true,
        "cancelled as": "cancelled",
        "cancelled again": [409, "run_terminal"],
        "listed": true,
        "foreign": [403, "id_tenant_mismatch"],
        "unknown": [404, "not_found"],
        "link": true,
        "other major": [406, "protocol_version_unsupported"],
    });
    assert_eq!(saw, expected);
}
