//! What an owner does to runs: `cancel`, `cancel-many`, `pause`, `resume`, `retry`. The server decides what each may do; this only
//! asks, and tells how the runs are then.

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::{Value, json};

use super::is;
use crate::cli::client::Client;
use crate::cli::output::{Output, text};
use crate::cli::values::{self, Label};

/// The most runs that the server cancels in one request.
const BATCH: u64 = 1_000;

#[derive(Debug, Args)]
pub(super) struct CancelMany {
    #[command(flatten)]
    which: Which,
    /// For whoever looks at the runs later.
    #[arg(long)]
    reason: Option<String>,
    /// At most so many; without it: all.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Which {
    /// Only runs of this activity.
    #[arg(long)]
    activity: Option<String>,
    /// Only runs in this state: queued, running, waiting.
    #[arg(long)]
    state: Option<String>,
    /// Only runs with this label.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Option<Label>,
    /// Only runs that were created by this time, such as 2026-03-01T09:30:00Z.
    #[arg(long, value_name = "TIME", value_parser = values::instant)]
    created_before: Option<DateTime<Utc>>,
}

impl CancelMany {
    /// Goes on until no such run is left or the limit is reached.
    pub(super) async fn run(&self, client: &Client, output: &Output) -> anyhow::Result<()> {
        let mut body = self.body();
        let (mut cancelled, mut requested) = (0, 0);
        loop {
            let left = self.limit.map_or(BATCH, |limit| limit.saturating_sub(cancelled + requested));
            body["limit"] = json!(left.min(BATCH));
            let answer = client.post(&["v1", "runs", "cancel"], &body).await?;
            cancelled += count(&answer, "cancelled");
            requested += count(&answer, "requested");
            let more = is(&answer, "more");
            if !more || self.limit.is_some_and(|limit| cancelled + requested >= limit) {
                let done = json!({ "cancelled": cancelled, "requested": requested, "more": more });
                return output.show(&done, counts);
            }
            output.note(&format!("{} so far", cancelled + requested));
        }
    }

    fn body(&self) -> Value {
        let Which { activity, state, label, created_before } = &self.which;
        let members = [
            ("activity", activity.clone()),
            ("state", state.clone()),
            ("label", label.as_ref().map(Label::filter)),
            ("created_before", created_before.map(|time| time.to_rfc3339())),
            ("reason", self.reason.clone()),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?)))).collect()
    }
}

fn count(answer: &Value, name: &str) -> u64 {
    answer.get(name).and_then(Value::as_u64).unwrap_or(0)
}

fn counts(done: &Value) -> String {
    let cancelled = format!("{} cancelled", count(done, "cancelled"));
    let requested = match count(done, "requested") {
        0 => String::new(),
        runs => format!("; workers stop the attempts of {runs} more"),
    };
    format!("{cancelled}{requested}{}", if is(done, "more") { "; there may be more" } else { "" })
}

pub(super) async fn cancel(client: &Client, output: &Output, run: &str, reason: Option<&str>) -> anyhow::Result<()> {
    let body = reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }));
    output.show(&client.post(&["v1", "runs", run, "cancel"], &body).await?, now)
}

/// `change`: the route's last word, `pause`, `resume` or `retry`.
pub(super) async fn change(client: &Client, output: &Output, run: &str, change: &str) -> anyhow::Result<()> {
    output.show(&client.post(&["v1", "runs", run, change], &json!({})).await?, now)
}

/// How the run is after the change.
fn now(run: &Value) -> String {
    let state = text(run, "/state");
    let is_now = match (state.as_str(), is(run, "cancel_requested"), is(run, "paused")) {
        ("running", true, _) => "is being cancelled: its worker stops the attempt".to_owned(),
        ("running", false, true) => "is being paused: its worker stops the attempt".to_owned(),
        ("queued" | "waiting", _, true) => format!("is {state}, and paused"),
        _ => format!("is {state}"),
    };
    format!("run {} {is_now}", text(run, "/run_id"))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        many: CancelMany,
    }

    #[test]
    fn many_are_cancelled_only_by_what_is_said_of_them() {
        let parsed = |flags: &[&str]| Line::try_parse_from([&["cancel-many"], flags].concat()).map(|line| line.many);
        let all = ["--activity", "charge", "--state", "queued", "--label", "shop=berlin", "--reason", "sold out"];
        let time = ["--created-before", "2026-03-01T10:30:00+01:00"];
        assert_eq!(
            parsed(&[&all[..], &time].concat()).unwrap().body(),
            json!({ "activity": "charge", "state": "queued", "label": "shop:berlin", "reason": "sold out",
                "created_before": "2026-03-01T09:30:00+00:00" })
        );
        assert!(parsed(&[]).is_err() && parsed(&["--reason", "x", "--limit", "5"]).is_err());
        assert!(parsed(&["--state", "queued", "--limit", "0"]).is_err());
    }

    #[test]
    fn the_counts_are_told() {
        let told =
            |requested: u64, more: bool| counts(&json!({ "cancelled": 2, "requested": requested, "more": more }));
        assert_eq!(told(0, false), "2 cancelled");
        assert_eq!(told(3, true), "2 cancelled; workers stop the attempts of 3 more; there may be more");
    }

    #[test]
    fn a_change_that_a_worker_must_make_is_told_as_such() {
        let run = |state: &str, cancel: bool, paused: bool| {
            now(&json!({ "run_id": "r", "state": state, "cancel_requested": cancel, "paused": paused }))
        };
        assert_eq!(run("cancelled", true, true), "run r is cancelled");
        assert!(run("running", true, false).contains("being cancelled"));
        assert!(run("running", false, true).contains("being paused"));
        assert_eq!(run("waiting", false, true), "run r is waiting, and paused");
        assert_eq!(run("queued", false, false), "run r is queued");
    }
}
