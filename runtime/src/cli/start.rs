//! `deedbox start`: starts a run, and waits for its end if asked to. Stopping to wait never stops the run.

use std::io::Read;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::Client;
use super::failure::Failure;
use super::output::{Output, block, text};
use super::settings::{self, Remote};

/// Seconds of one `?wait`: short enough that a question of the run is soon seen.
const WAIT_SECONDS: &str = "5";
/// A server that answers at once although the run goes on is not asked more often than this.
const PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(super) struct Start {
    /// The activity.
    name: String,
    /// The input as JSON, or the file that holds it as @FILE; @- is standard input.
    #[arg(long, value_name = "JSON|@FILE", default_value = "null")]
    input: String,
    /// Wait until the run has ended; exit code 1 if it did not complete.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    remote: Remote,
}

/// The input goes as it was written: no number in it changes.
#[derive(Serialize)]
struct NewRun {
    input: Box<RawValue>,
}

impl Start {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let input = read_input(&self.input).await?;
        let client = Client::tenant(&self.remote)?;
        let run = client.post(&["v1", "activities", &self.name, "runs"], &NewRun { input }).await?;
        let run_id = text(&run, "/run_id");
        if !self.wait {
            return output.show(&run, |run| format!("run {run_id} is {}", text(run, "/state")));
        }
        output.note(&format!("run {run_id} started"));
        let ended = wait(&client, &run_id, |run| tell_question(output, run)).await?;
        output.show(&ended, summary)?;
        if text(&ended, "/state") == "completed" { Ok(()) } else { Err(not_completed(&ended)) }
    }
}

/// Polls until the run has ended; gives its last snapshot. `seen` is told each snapshot before.
pub(super) async fn wait(client: &Client, run_id: &str, mut seen: impl FnMut(&Value)) -> anyhow::Result<Value> {
    loop {
        let asked = Instant::now();
        let run = client.get(&["v1", "runs", run_id], &[("wait", WAIT_SECONDS.to_owned())]).await?;
        if matches!(text(&run, "/state").as_str(), "completed" | "failed" | "cancelled") {
            return Ok(run);
        }
        seen(&run);
        tokio::time::sleep(PAUSE.saturating_sub(asked.elapsed())).await;
    }
}

fn tell_question(output: &Output, run: &Value) {
    let effect = text(run, "/waiting_for/effect_id");
    if text(run, "/state") == "waiting" && !effect.is_empty() {
        output.note(&format!(
            "the run waits until it is known what became of effect {effect}: see `deedbox effects show {effect}`"
        ));
    }
}

/// The output of a completed run, or how the run ended.
fn summary(run: &Value) -> String {
    let head = format!(
        "run {} is {} after {} of {} attempts",
        text(run, "/run_id"),
        text(run, "/state"),
        text(run, "/attempts"),
        text(run, "/max_attempts")
    );
    match run.get("output").filter(|output| !output.is_null()) {
        Some(output) => format!("{head}\n{}", block(output)),
        None => head,
    }
}

fn not_completed(run: &Value) -> anyhow::Error {
    let run_id = text(run, "/run_id");
    let failure = [text(run, "/failure/code"), text(run, "/failure/message")];
    let why = failure.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(": ");
    let why = if why.is_empty() { "no reason is recorded".to_owned() } else { why };
    anyhow::anyhow!(
        "the run {}: {why}\nSee `deedbox runs attempts {run_id}` and `deedbox runs log {run_id}`.",
        text(run, "/state")
    )
}

async fn read_input(given: &str) -> anyhow::Result<Box<RawValue>> {
    let text = match given.strip_prefix('@') {
        None => given.to_owned(),
        Some("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text)?;
            text
        }
        Some(file) => String::from_utf8_lossy(&settings::read(file.as_ref()).await?).into_owned(),
    };
    let wrong = |error| Failure::Usage(format!("--input is not JSON ({error}); a file is given as @FILE"));
    Ok(serde_json::from_str(&text).map_err(wrong)?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn an_input_goes_as_it_was_written() {
        let number = r#"{"n": 9007199254740993.10}"#;
        assert_eq!(read_input(number).await.unwrap().get(), number);
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("input.json");
        std::fs::write(&file, "[1]\n").unwrap();
        assert_eq!(read_input(&format!("@{}", file.display())).await.unwrap().get(), "[1]");
        assert!(read_input("{").await.is_err());
        assert!(read_input("@/no/such/file").await.is_err());
    }

    #[test]
    fn a_failure_is_told_with_its_code() {
        let run = json!({ "run_id": "r", "state": "failed", "failure": { "code": "declined", "message": "no money" } });
        assert!(not_completed(&run).to_string().starts_with("the run failed: declined: no money\n"));
        assert_eq!(
            summary(&json!({ "run_id": "r", "state": "failed", "attempts": 3, "max_attempts": 3 })),
            "run r is failed after 3 of 3 attempts"
        );
    }
}
