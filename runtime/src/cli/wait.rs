//! Waiting for the end of a run, by long polls. Stopping to wait never stops the run.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::Client;
use super::output::text;

/// Seconds of one long poll: short enough that a question of the run is soon seen.
pub(super) const SECONDS: u32 = 5;

/// A server that answers at once although the run goes on is not asked more often than this.
const PAUSE: Duration = Duration::from_millis(250);

/// Polls until the run has ended; gives its last snapshot. `seen` is told each snapshot before.
pub(super) async fn end(
    client: &Client,
    run_id: &str,
    seconds: u32,
    mut seen: impl FnMut(&Value) -> anyhow::Result<()>,
) -> anyhow::Result<Value> {
    loop {
        let asked = Instant::now();
        let run = client.get(&["v1", "runs", run_id], &[("wait", seconds.to_string())]).await?;
        if has_ended(&run) {
            return Ok(run);
        }
        seen(&run)?;
        tokio::time::sleep(PAUSE.saturating_sub(asked.elapsed())).await;
    }
}

pub(super) fn has_ended(run: &Value) -> bool {
    matches!(text(run, "/state").as_str(), "completed" | "failed" | "cancelled")
}

/// An error that says why, unless the ended run is completed.
pub(super) fn check_completed(run: &Value) -> anyhow::Result<()> {
    let state = text(run, "/state");
    if state == "completed" {
        return Ok(());
    }
    let run_id = text(run, "/run_id");
    let ended = if state == "cancelled" { "was cancelled".to_owned() } else { state };
    let why = why(run);
    let why = if why.is_empty() { "no reason is recorded".to_owned() } else { why };
    let see = format!("See `deedbox runs attempts {run_id}` and `deedbox runs log {run_id}`.");
    Err(anyhow::anyhow!("the run {ended}: {why}\n{see}"))
}

/// The failure of a run, or the reason of its cancelling; empty when there is none.
pub(super) fn why(run: &Value) -> String {
    let failure = [text(run, "/failure/code"), text(run, "/failure/message")];
    let failure: Vec<String> = failure.into_iter().filter(|part| !part.is_empty()).collect();
    if failure.is_empty() { text(run, "/cancel_reason") } else { failure.join(": ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(run: &Value) -> String {
        check_completed(run).unwrap_err().to_string()
    }

    #[test]
    fn an_end_that_is_no_success_is_told_with_its_reason() {
        let failed =
            json!({ "run_id": "r", "state": "failed", "failure": { "code": "declined", "message": "no money" } });
        assert!(told(&failed).starts_with("the run failed: declined: no money\n"));
        let cancelled = json!({ "run_id": "r", "state": "cancelled", "failure": null, "cancel_reason": "sold out" });
        assert!(told(&cancelled).starts_with("the run was cancelled: sold out\n"));
        assert!(told(&json!({ "run_id": "r", "state": "failed" })).contains("no reason is recorded"));
        assert!(check_completed(&json!({ "state": "completed" })).is_ok());
    }

    #[test]
    fn a_run_that_waits_has_not_ended() {
        let states = ["queued", "running", "waiting", "completed", "failed", "cancelled"];
        let ended = states.map(|state| has_ended(&json!({ "state": state })));
        assert_eq!(ended, [false, false, false, true, true, true]);
    }
}
