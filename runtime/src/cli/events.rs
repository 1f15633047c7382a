//! `deedbox events`: follows what happens to all runs of the tenant.

use clap::Args;
use serde_json::Value;

use super::client::Client;
use super::follow::{self, Follower};
use super::output::{Output, text};
use super::settings::Remote;

#[derive(Debug, Args)]
pub(super) struct Events {
    /// Only of runs of this activity.
    #[arg(long)]
    activity: Option<String>,
    /// Only of this kind, such as run.failed.
    #[arg(long)]
    kind: Option<String>,
    /// Begin with the oldest events that are kept, not with what happens from now on.
    #[arg(long)]
    from_oldest: bool,
    #[command(flatten)]
    remote: Remote,
}

impl Events {
    /// Prints a line for each event; with `--json`, the event.
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        let from = self.from_oldest.then(|| "oldest".to_owned());
        let given = [("activity", self.activity), ("kind", self.kind), ("from", from)];
        let query: Vec<_> = given.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let tell = |event: &Value| output.show(event, line);
        Follower::new().run(&client, output, &["v1", "events"], &query, tell).await
    }
}

fn line(event: &Value) -> String {
    format!("{}  {}  {}", text(event, "/run_id"), text(event, "/activity"), follow::line(event))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_names_the_run_and_its_activity() {
        let event = json!({ "run_id": "r", "activity": "charge", "kind": "run.started", "at": "2026-03-01T09:30:00Z",
            "data": { "attempt": 1 } });
        assert_eq!(line(&event), "r  charge  2026-03-01 09:30:00Z  run.started      attempt 1");
    }
}
