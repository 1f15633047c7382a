//! A charge with nothing but `curl`, by the commands that the README shows.

use std::path::Path;

use serde_json::{Value, json};
use tokio::process::Command;

use super::program::{Up, component_file, finish, order, place, provider};

const UPLOAD: &str = r#"
curl -sS --fail-with-body "$DEEDBOX_URL/v1/modules" -H "Authorization: Bearer $DEEDBOX_TOKEN" \
  -H "Content-Type: application/wasm" --data-binary @charge_once.wasm"#;

const DEPLOY: &str = r#"
curl -sS --fail-with-body -X PUT "$DEEDBOX_URL/v1/activities/charge-once" -H "Authorization: Bearer $DEEDBOX_TOKEN" \
  --json '{"module": "'$MODULE'", "policy": {"egress": {"allow": ["'$PROVIDER'"]}, "providers": {"'$PROVIDER'": "stripe"}}}'"#;

const START: &str = r#"
curl -sS --fail-with-body "$DEEDBOX_URL/v1/activities/charge-once/runs" -H "Authorization: Bearer $DEEDBOX_TOKEN" \
  --json '{"input": '"$INPUT"'}'"#;

const WAIT: &str = r#"
curl -sS --fail-with-body "$DEEDBOX_URL/v1/runs/$RUN?wait=30" -H "Authorization: Bearer $DEEDBOX_TOKEN""#;

const EFFECTS: &str = r#"
curl -sS --fail-with-body "$DEEDBOX_URL/v1/runs/$RUN/effects" -H "Authorization: Bearer $DEEDBOX_TOKEN""#;

const WITNESS: &str = r#"
curl -sS --fail-with-body "$DEEDBOX_URL/runs/default~2F$RUN/effects" -H "Authorization: Bearer $DEEDBOX_TOKEN""#;

fn shell(dir: &Path, up: &Up, line: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).current_dir(dir).envs(variables.iter().copied()).kill_on_drop(true);
    command.env("DEEDBOX_URL", &up.address).env("DEEDBOX_TOKEN", &up.token).env("no_proxy", "*");
    command
}

/// True when a `curl` is there that knows `--json`.
async fn has_curl() -> bool {
    let mut version = Command::new("sh");
    version.args(["-c", "curl --json x --version"]);
    finish(version).await.code == Some(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn curl_alone_uploads_deploys_starts_waits_and_reads_the_ledger() {
    if !has_curl().await {
        return;
    }
    let place = place();
    let (origin, books) = provider(place.path()).await;
    component_file(place.path(), "charge_once.wasm");
    let up = Up::start(&place.path().join("d")).await;
    let ask = |line: &'static str, variables: &[(&str, &str)]| finish(shell(place.path(), &up, line, variables));
    let text = |value: &Value| value.as_str().unwrap().to_owned();

    let module = text(&ask(UPLOAD, &[]).await.json()["digest"]);
    let version = ask(DEPLOY, &[("MODULE", &module), ("PROVIDER", &origin)]).await.json();
    assert_eq!((&version["version"], &version["policy"]["providers"][&origin]), (&json!(1), &json!("stripe")));
    let run = text(&ask(START, &[("INPUT", &order(&origin))]).await.json()["run_id"]);
    let ended = ask(WAIT, &[("RUN", &run)]).await.json();
    assert_eq!(ended["output"], json!({ "outcome": "charged", "charge_id": "ch_1" }));
    let effects = ask(EFFECTS, &[("RUN", &run)]).await.json();
    let key = books.applied().await.unwrap()[0].key.clone().unwrap();
    assert_eq!(effects["items"][0]["wire_key"], json!(key));
    let witness = ask(WITNESS, &[("RUN", &run)]).await.json();
    assert_eq!(witness["effects"][0]["providerKey"], json!(key));

    let mut refused = shell(place.path(), &up, UPLOAD, &[]);
    refused.env("DEEDBOX_TOKEN", "wrong");
    let refused = finish(refused).await;
    assert_eq!(refused.code, Some(22), "{refused:?}");
    assert_eq!(serde_json::from_str::<Value>(&refused.out).unwrap()["error"], "unauthenticated");
    up.stop("TERM").await;
}
