//! `deedbox runs`: looks at runs, their attempts and their logs.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::Client;
use super::output::{Output, block, items, plain, short_time, text, time, took};
use super::settings::Remote;
use super::table::{Table, pairs};

#[derive(Debug, Args)]
pub(super) struct Runs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List runs, newest first (the default).
    List(List),
    /// Show one run.
    Show { run: String },
    /// List a run's attempts.
    Attempts { run: String },
    /// Print what a run wrote to its standard output and error.
    Log { run: String },
}

#[derive(Debug, Default, Args)]
struct List {
    /// Only runs of this activity.
    #[arg(long)]
    activity: Option<String>,
    /// Only runs in this state: queued, running, waiting, completed, failed, cancelled.
    #[arg(long)]
    state: Option<String>,
    #[command(flatten)]
    page: Page,
}

/// Which part of a list.
#[derive(Debug, Default, Args)]
pub(super) struct Page {
    /// At most so many.
    #[arg(long)]
    limit: Option<u32>,
    /// Go on after the page that named this.
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

impl Page {
    /// The query's members for this page, after those that are given.
    pub(super) fn query<'a>(&self, filters: &[(&'a str, &Option<String>)]) -> Vec<(&'a str, String)> {
        let given = filters.iter().filter_map(|(name, value)| value.as_ref().map(|value| (*name, value.clone())));
        let limit = self.limit.map(|limit| ("limit", limit.to_string()));
        given.chain(limit).chain(self.after.clone().map(|after| ("after", after))).collect()
    }
}

/// Says how to see more of a list, when there is more.
pub(super) fn note_more(output: &Output, list: &Value) {
    let after = text(list, "/after");
    if !after.is_empty() {
        output.note(&format!("there are more: add --after {after}"));
    }
}

impl Runs {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        match self.command.unwrap_or_else(|| Command::List(List::default())) {
            Command::List(list) => {
                let query = list.page.query(&[("activity", &list.activity), ("state", &list.state)]);
                let runs = client.get(&["v1", "runs"], &query).await?;
                output.show(&runs, table)?;
                note_more(output, &runs);
                Ok(())
            }
            Command::Show { run } => output.show(&client.get(&["v1", "runs", &run], &[]).await?, show),
            Command::Attempts { run } => {
                output.show(&client.get(&["v1", "runs", &run, "attempts"], &[]).await?, attempts)
            }
            Command::Log { run } => output.show(&client.get(&["v1", "runs", &run, "log"], &[]).await?, log),
        }
    }
}

fn table(runs: &Value) -> String {
    let mut table = Table::new(&["run", "state", "activity…", "#", "created UTC"]);
    for run in items(runs) {
        table.row([
            text(run, "/run_id"),
            text(run, "/state"),
            format!("{} v{}", text(run, "/activity"), text(run, "/version")),
            of(run),
            short_time(run, "/created_at"),
        ]);
    }
    table.render("no runs: start one with `deedbox start NAME --input JSON`")
}

fn show(run: &Value) -> String {
    let mut shown = pairs(&[
        ("run", text(run, "/run_id")),
        ("activity", format!("{} version {}", text(run, "/activity"), text(run, "/version"))),
        ("state", text(run, "/state")),
        ("attempts", of(run)),
        ("waits for effect", text(run, "/waiting_for/effect_id")),
        ("due", time(run, "/due_at")),
        ("created", time(run, "/created_at")),
        ("started", time(run, "/started_at")),
        ("ended", time(run, "/ended_at")),
    ]);
    for name in ["input", "output", "failure"] {
        if let Some(value) = run.get(name).filter(|value| !value.is_null()) {
            shown.push_str(&format!("{name}\n{}", block(value)));
        }
    }
    shown
}

fn of(run: &Value) -> String {
    format!("{}/{}", text(run, "/attempts"), text(run, "/max_attempts"))
}

fn attempts(attempts: &Value) -> String {
    let mut table = Table::new(&["#", "outcome", "started", "took", "worker…", "failure…", "memory"]);
    for attempt in items(attempts) {
        let failure = [text(attempt, "/failure/code"), text(attempt, "/failure/message")];
        table.row([
            text(attempt, "/attempt"),
            text(attempt, "/outcome"),
            time(attempt, "/started_at"),
            took(attempt),
            text(attempt, "/worker"),
            failure.join(" ").trim().to_owned(),
            memory(attempt),
        ]);
    }
    table.render("no attempt yet: the run waits for a worker")
}

/// In MiB, rounded up.
fn memory(attempt: &Value) -> String {
    let bytes = attempt.get("peak_memory_bytes").and_then(Value::as_u64);
    bytes.map(|bytes| format!("{} MiB", bytes.div_ceil(1 << 20))).unwrap_or_default()
}

fn log(log: &Value) -> String {
    let entry = |entry: &Value| {
        let cut = if entry["truncated"] == Value::Bool(true) { " (cut off)" } else { "" };
        let words = entry.get("text").and_then(Value::as_str).map(plain).unwrap_or_default();
        let words = words.trim_end_matches('\n');
        format!("-- attempt {}, {}{cut}\n{words}\n", text(entry, "/attempt"), text(entry, "/stream"))
    };
    let shown: String = items(log).iter().map(entry).collect();
    if shown.is_empty() { "nothing was written".to_owned() } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_is_shown_with_what_it_has() {
        let run = json!({ "run_id": "r", "activity": "a", "version": 2, "state": "completed", "attempts": 1, "max_attempts": 3,
            "output": { "ok": true }, "failure": null, "ended_at": "2026-03-01T09:30:00Z" });
        let shown = show(&run);
        assert!(shown.contains("a version 2") && shown.contains("1/3") && shown.contains("\"ok\": true"), "{shown}");
        assert!(!shown.contains("failure") && !shown.contains("waits for"), "{shown}");
    }

    #[test]
    fn a_page_is_asked_for_by_name() {
        let page = Page { limit: Some(5), after: Some("c".to_owned()) };
        let query = page.query(&[("state", &Some("failed".to_owned())), ("activity", &None)]);
        let text = |value: &str| value.to_owned();
        assert_eq!(query, [("state", text("failed")), ("limit", text("5")), ("after", text("c"))]);
    }

    #[test]
    fn a_log_says_which_attempt_wrote_it_and_what_is_missing() {
        let entries = json!({ "items": [{ "attempt": 2, "stream": "stderr", "text": "a\nb\n", "truncated": true }] });
        assert_eq!(log(&entries), "-- attempt 2, stderr (cut off)\na\nb\n");
    }
}
