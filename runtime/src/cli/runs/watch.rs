//! `deedbox runs watch`: follows one run from snapshot to snapshot. A change that lasts less than a second may not be seen.

use serde_json::Value;

use super::{is, of};
use crate::cli::client::Client;
use crate::cli::output::{Output, text, time};
use crate::cli::wait;

/// Seconds of one long poll; the end of the run is seen at once.
const SECONDS: u32 = 1;

/// Tells each change until the run has ended; an error if it did not complete.
pub(super) async fn watch(client: &Client, output: &Output, run_id: &str) -> anyhow::Result<()> {
    let mut last = String::new();
    let mut tell = |run: &Value| {
        let line = line(run);
        if line == last {
            return Ok(());
        }
        last.clone_from(&line);
        output.show(run, |_| line)
    };
    let first = client.get(&["v1", "runs", run_id], &[]).await?;
    tell(&first)?;
    if wait::has_ended(&first) {
        return wait::check_completed(&first);
    }
    let ended = wait::end(client, run_id, SECONDS, &mut tell).await?;
    tell(&ended)?;
    wait::check_completed(&ended)
}

/// The state, the attempts, and what else counts now.
fn line(run: &Value) -> String {
    let said = |words: &str, value: String| if value.is_empty() { value } else { format!("{words}{value}") };
    let flag = |name: &str, words: &str| if is(run, name) { words.to_owned() } else { String::new() };
    let parts = [
        text(run, "/state"),
        format!("attempts {}", of(run)),
        flag("paused", "paused"),
        flag("cancel_requested", "cancel requested"),
        said("waits for effect ", text(run, "/waiting_for/effect_id")),
        said("waits for signal ", text(run, "/waiting_for/signal")),
        said("due ", time(run, "/due_at")),
        wait::why(run),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_says_what_counts_now() {
        let mut run = json!({ "state": "waiting", "attempts": 1, "max_attempts": 3, "due_at": "2026-03-01T09:30:00Z" });
        assert_eq!(line(&run), "waiting, attempts 1/3, due 2026-03-01 09:30:00Z");
        run = json!({ "state": "waiting", "attempts": 1, "max_attempts": 3, "paused": true, "waiting_for": { "signal": "paid" } });
        assert_eq!(line(&run), "waiting, attempts 1/3, paused, waits for signal paid");
        run = json!({ "state": "cancelled", "attempts": 1, "max_attempts": 3, "cancel_requested": true, "cancel_reason": "late" });
        assert_eq!(line(&run), "cancelled, attempts 1/3, cancel requested, late");
    }
}
