//! Made-up requests to every operation that the server describes: those that fit the description, and those that do not. None
//! may be answered with a fault of the server, or with what the description does not have.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use super::{Api, mint, no_hash, no_run};
use crate::harness::{long, schemathesis_python, seed, skipped, tell};

const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// Requests to each operation.
const EXAMPLES: &str = "60";

/// How long one caller's requests may take, in seconds: beyond the first it makes up no more, at the second it is ended.
const ASKS_FOR: &str = "300";
const ENDED_WITHIN: Duration = Duration::from_secs(900);

/// Answers that have no end, or a late one. The native streams are asked for a page instead.
const ENDLESS: &str = "^/runs/.*/events";

/// F-K03. Its summary is printed.
#[tokio::test(flavor = "multi_thread")]
async fn no_made_up_request_is_answered_with_a_fault_or_with_what_is_not_described() {
    if !long() {
        skipped("made-up requests to every operation of the API");
        return;
    }
    let api = Api::working().await;
    let document = described(&api).await;
    for tenant in ["acme", deedbox::store::tenant::ADMIN] {
        let (passed, report) = fuzz(&document, &api.origin, &mint(&api.world, tenant).await).await;
        tell(&format!("{tenant}: {}", summary(&report)));
        assert!(passed, "as {tenant}:\n{report}");
        api.nobody().get("/readyz").await.expect(200);
    }
}

/// The server's description, with ids of what there is in place of their grammars, so that more than refusals is seen.
async fn described(api: &Api) -> Value {
    let module = api.deploy("noop", json!({})).await["module"].clone();
    for other in ["listen", "fail"] {
        api.deploy(other, json!({})).await;
    }
    api.acme.put("/v1/secrets/mine", &json!({ "value": "x" })).await.expect(204);
    let failure = json!({ "code": "no", "message": "m", "kind": "permanent" });
    let wait = json!({ "asks": [{ "wait": { "name": "go" } }] });
    let runs = [
        api.start("noop", json!(1)).await,
        api.start("fail", failure).await,
        api.start("listen", wait).await,
        no_run(),
    ];
    let ids = [
        ("Module", json!([module, no_hash()])),
        ("Activity", json!(["noop", "listen", "none"])),
        ("Run", json!(runs)),
        ("OpenwopRun", json!(runs.each_ref().map(|run| format!("acme~2F{run}")))),
        ("Signal", json!(["go", "other"])),
        ("Secret", json!(["mine", "none"])),
        ("Provider", json!(["stripe", "mine"])),
        ("Hook", json!(["hook"])),
        ("HookAddress", json!(["acme.hook"])),
        ("Tenant", json!(["acme", "none"])),
    ];
    let mut document = api.nobody().get("/openapi.json").await.expect(200);
    for (name, ids) in ids {
        let schema = &mut document["components"]["parameters"][name]["schema"];
        assert!(schema.is_object(), "there is no {name}");
        *schema = json!({ "type": "string", "enum": ids });
    }
    document["components"]["schemas"]["DeployActivity"]["properties"]["module"] = json!({ "enum": [module] });
    document
}

/// Whether nothing was found, and what was said.
async fn fuzz(document: &Value, origin: &str, token: &str) -> (bool, String) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("openapi.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let mut command = Command::new(schemathesis_python());
    command.args(["-m", "schemathesis.cli", "run"]).arg(file).args(["--url", origin, "--checks", CHECKS]);
    command.args(["--header", &format!("Authorization: Bearer {token}"), "--header", "Accept: application/json"]);
    command.args(["--exclude-path-regex", ENDLESS, "--phases", "examples,coverage,fuzzing", "--max-time", ASKS_FOR]);
    command.args(["--max-examples", EXAMPLES, "--seed", &(seed() % (1 << 32)).to_string(), "--continue-on-failure"]);
    command.args(["--workers", "1", "--request-timeout", "60", "--warnings", "off", "--suppress-health-check", "all"]);
    // What it needs to know of the media type of components.
    command.env("SCHEMATHESIS_HOOKS", "hooks").env("PYTHONPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/schemathesis"));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    // It keeps what it has tried where it is started.
    let output = quiet(&mut command, place.path());
    let output = tokio::time::timeout(ENDED_WITHIN, output).await.expect("it does not end");
    let text = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    (output.status.success(), text)
}

/// A proxy of the machine's own must not stand in between.
async fn quiet(command: &mut Command, place: &Path) -> std::process::Output {
    for name in ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"] {
        command.env_remove(name);
    }
    command.current_dir(place).kill_on_drop(true);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).output().await.unwrap()
}

/// From where it says how many requests there were.
fn summary(report: &str) -> &str {
    report.rfind("SUMMARY").map_or(report, |at| &report[at..])
}
