//! `deedbox verify` as an author has it: the real program, on activities with one fault each, and on some without.

mod clean;
mod faults;
mod outcome;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::process::Command;

use crate::cli::program::{Ended, deedbox, finish_within};
use crate::harness::{Database, component_path};

/// The origin that every activity is given, at which nothing listens.
const ORIGIN: &str = "https://pay.test";
/// All cases together take a minute on a machine of its own.
const PATIENCE: Duration = Duration::from_secs(600);
const FAULTY: &str = "deedbox_test_guests_faulty.wasm";

/// What a verification told.
#[derive(Debug)]
struct Told {
    code: Option<i32>,
    report: Value,
}

impl Told {
    /// The codes of the findings that are no notes.
    fn codes(&self) -> Vec<&str> {
        let findings = self.report["findings"].as_array().unwrap();
        let grave = findings.iter().filter(|finding| finding["severity"] != "note");
        grave.map(|finding| finding["code"].as_str().unwrap()).collect()
    }

    fn finding(&self, code: &str) -> &Value {
        let findings = self.report["findings"].as_array().unwrap();
        findings
            .iter()
            .find(|finding| finding["code"] == code)
            .unwrap_or_else(|| panic!("no {code}: {:#}", self.report))
    }
}

/// Verifies an activity against a provider of this profile. `more`: further arguments.
async fn verify(component: &str, activity: &str, profile: &str, more: &[&str]) -> Told {
    let database = Database::fresh().await;
    let mut command = command(&component_path(component), activity, profile, &input());
    command.args(["--json", "--database-url", &database.url]).args(more);
    let Ended { code, out, err } = finish_within(command, PATIENCE).await;
    let report = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{activity}: {e}: {out}\n{err}"));
    Told { code, report }
}

fn command(component: &Path, activity: &str, profile: &str, input: &Value) -> Command {
    let mut command = deedbox(&["verify"]);
    let provider = format!("{ORIGIN}={profile}");
    command.arg(component).args(["--activity", activity, "--provider", &provider, "--input", &input.to_string()]);
    command
}

fn input() -> Value {
    json!({ "provider_url": ORIGIN, "order": "42" })
}
