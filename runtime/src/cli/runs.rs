//! `deedbox runs`: looks at runs, their attempts, signals and logs, and does to them what their owner may.

mod callback;
mod control;
mod watch;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::Client;
use super::output::{Output, block, items, plain, short_time, text, time, took};
use super::page::{Page, Unasked};
use super::settings::Remote;
use super::table::{Table, pairs};
use super::values::Label;

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
    /// Print a line at each change of a run until it has ended; exit code 1 if it did not complete.
    Watch { run: String },
    /// List a run's attempts.
    Attempts {
        run: String,
        #[command(flatten)]
        page: Page,
    },
    /// List the signals that a run was sent, in their order.
    Signals {
        run: String,
        #[command(flatten)]
        page: Page,
    },
    /// Print what a run wrote to its standard output and error.
    Log {
        run: String,
        #[command(flatten)]
        page: Page,
    },
    /// Show what became of the message that tells of a run's end.
    Callback {
        run: String,
        /// Send it once more, under the same id.
        #[arg(long)]
        redeliver: bool,
    },
    /// Cancel a run. Its effects whose outcome nobody knows stay open questions.
    Cancel {
        run: String,
        /// For whoever looks at the run later.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Cancel all runs that fit everything that is said, oldest first.
    CancelMany(control::CancelMany),
    /// Let no attempt of a run begin until it is resumed. One under way is stopped, and not spent.
    Pause { run: String },
    /// Let a paused run go on.
    Resume { run: String },
    /// Begin a failed run again: same id, same keys; what it has done is replayed.
    Retry { run: String },
}

#[derive(Debug, Default, Args)]
struct List {
    /// Only runs of this activity.
    #[arg(long)]
    activity: Option<String>,
    /// Only runs in this state: queued, running, waiting, completed, failed, cancelled.
    #[arg(long)]
    state: Option<String>,
    /// Only runs with this label.
    #[arg(long, value_name = "NAME=VALUE")]
    label: Option<Label>,
    /// Only runs with this business id.
    #[arg(long, value_name = "ID")]
    run_name: Option<String>,
    /// Only runs that are paused.
    #[arg(long)]
    paused: bool,
    #[command(flatten)]
    page: Page,
}

impl List {
    async fn show(&self, client: &Client, output: &Output) -> anyhow::Result<()> {
        let filters = self.filters();
        let filters: Vec<_> = filters.iter().map(|(name, value)| (*name, value)).collect();
        self.page.show(client, output, &["v1", "runs"], &filters, Unasked::OnePage, table).await
    }

    fn filters(&self) -> [(&'static str, Option<String>); 5] {
        [
            ("activity", self.activity.clone()),
            ("state", self.state.clone()),
            ("label", self.label.as_ref().map(Label::filter)),
            ("run_name", self.run_name.clone()),
            ("paused", self.paused.then(|| "true".to_owned())),
        ]
    }
}

impl Runs {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        match self.command.unwrap_or_else(|| Command::List(List::default())) {
            Command::List(list) => list.show(&client, output).await,
            Command::Show { run } => output.show(&client.get(&["v1", "runs", &run], &[]).await?, show),
            Command::Watch { run } => watch::watch(&client, output, &run).await,
            Command::Attempts { run, page } => {
                page.show(&client, output, &["v1", "runs", &run, "attempts"], &[], Unasked::All, attempts).await
            }
            Command::Signals { run, page } => {
                page.show(&client, output, &["v1", "runs", &run, "signals"], &[], Unasked::OnePage, signals).await
            }
            Command::Log { run, page } => {
                page.show(&client, output, &["v1", "runs", &run, "log"], &[], Unasked::All, log).await
            }
            Command::Callback { run, redeliver } => callback::callback(&client, output, &run, redeliver).await,
            Command::Cancel { run, reason } => control::cancel(&client, output, &run, reason.as_deref()).await,
            Command::CancelMany(many) => many.run(&client, output).await,
            Command::Pause { run } => control::change(&client, output, &run, "pause").await,
            Command::Resume { run } => control::change(&client, output, &run, "resume").await,
            Command::Retry { run } => control::change(&client, output, &run, "retry").await,
        }
    }
}

fn table(runs: &Value) -> String {
    let mut table = Table::new(&["run", "state", "activity…", "#", "created UTC"]);
    for run in items(runs) {
        table.row([
            text(run, "/run_id"),
            format!("{}{}", text(run, "/state"), if is(run, "paused") { " (paused)" } else { "" }),
            format!("{} v{}", text(run, "/activity"), text(run, "/version")),
            of(run),
            short_time(run, "/created_at"),
        ]);
    }
    table.render("no runs: start one with `deedbox start NAME --input JSON`")
}

fn show(run: &Value) -> String {
    let yes = |name: &str| if is(run, name) { "yes".to_owned() } else { String::new() };
    let mut shown = pairs(&[
        ("run", text(run, "/run_id")),
        ("name", text(run, "/run_name")),
        ("activity", format!("{} version {}", text(run, "/activity"), text(run, "/version"))),
        ("state", text(run, "/state")),
        ("paused", yes("paused")),
        ("cancel requested", yes("cancel_requested")),
        ("cancel reason", text(run, "/cancel_reason")),
        ("attempts", of(run)),
        ("waits for effect", text(run, "/waiting_for/effect_id")),
        ("waits for signal", text(run, "/waiting_for/signal")),
        ("labels", labels(run)),
        ("priority", text(run, "/priority")),
        ("due", time(run, "/due_at")),
        ("closes by", time(run, "/close_by")),
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

fn labels(run: &Value) -> String {
    let all = run.get("labels").and_then(Value::as_object).into_iter().flatten();
    let each = all.map(|(name, value)| format!("{}={}", plain(name), text(value, "")));
    each.collect::<Vec<_>>().join(" ")
}

fn is(run: &Value, name: &str) -> bool {
    run.get(name) == Some(&Value::Bool(true))
}

fn of(run: &Value) -> String {
    format!("{}/{}", text(run, "/attempts"), text(run, "/max_attempts"))
}

fn attempts(attempts: &Value) -> String {
    let mut table = Table::new(&["#", "outcome", "started", "took", "worker…", "failure…", "memory", "cpu"]);
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
            cpu(attempt),
        ]);
    }
    table.render("no attempt yet: the run waits for a worker")
}

fn cpu(attempt: &Value) -> String {
    let used = attempt.get("cpu_ms").and_then(Value::as_u64);
    used.map(|used| format!("{used} ms")).unwrap_or_default()
}

/// In MiB, rounded up.
fn memory(attempt: &Value) -> String {
    let bytes = attempt.get("peak_memory_bytes").and_then(Value::as_u64);
    bytes.map(|bytes| format!("{} MiB", bytes.div_ceil(1 << 20))).unwrap_or_default()
}

fn signals(signals: &Value) -> String {
    let mut table = Table::new(&["#", "name", "received", "read", "payload…"]);
    for signal in items(signals) {
        table.row([
            text(signal, "/sequence"),
            text(signal, "/name"),
            time(signal, "/received_at"),
            if is(signal, "read") { "yes" } else { "no" }.to_owned(),
            signal.get("payload").map(Value::to_string).unwrap_or_default(),
        ]);
    }
    table.render("no signals: send one with `deedbox signal RUN NAME`")
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
            "output": { "ok": true }, "failure": null, "labels": {}, "paused": false, "ended_at": "2026-03-01T09:30:00Z" });
        let shown = show(&run);
        assert!(shown.contains("a version 2") && shown.contains("1/3") && shown.contains("\"ok\": true"), "{shown}");
        for absent in ["failure", "waits for", "labels", "paused", "cancel", "closes by"] {
            assert!(!shown.contains(absent), "{absent}: {shown}");
        }
    }

    #[test]
    fn what_its_owner_said_of_a_run_is_shown() {
        let run = json!({ "run_id": "r", "activity": "a", "version": 2, "state": "waiting", "attempts": 1, "max_attempts": 3,
            "run_name": "order-1042", "labels": { "kind": "a", "shop": "berlin" }, "priority": 2, "paused": true,
            "cancel_requested": true, "cancel_reason": "sold out", "waiting_for": { "signal": "paid" },
            "close_by": "2026-03-01T09:30:00Z" });
        let shown = show(&run);
        let value = |name: &str| shown.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        for (name, expected) in [
            ("name", "order-1042"),
            ("labels", "kind=a shop=berlin"),
            ("priority", "2"),
            ("paused", "yes"),
            ("cancel requested", "yes"),
            ("cancel reason", "sold out"),
            ("waits for signal", "paid"),
            ("closes by", "2026-03-01 09:30:00Z"),
        ] {
            assert_eq!(value(name), Some(expected), "{shown}");
        }
        assert!(table(&json!({ "items": [run] })).contains("waiting (paused)"));
    }

    #[test]
    fn a_list_is_asked_for_by_its_filters() {
        let label = Some("shop=berlin".parse().unwrap());
        let list = List { label, paused: true, ..List::default() };
        let text = |value: &str| value.to_owned();
        let said = list.filters().into_iter().filter_map(|(name, value)| Some((name, value?)));
        assert_eq!(said.collect::<Vec<_>>(), [("label", text("shop:berlin")), ("paused", text("true"))]);
        assert!(List::default().filters().iter().all(|(_, value)| value.is_none()));
    }

    #[test]
    fn a_signal_is_shown_with_its_payload() {
        let entries = json!({ "items": [{ "sequence": 3, "name": "paid", "payload": "a\u{1b}", "read": true,
            "received_at": "2026-03-01T09:30:00Z" }] });
        let shown = signals(&entries);
        assert!(shown.contains("3  paid  2026-03-01 09:30:00Z  yes   \"a\\u001b\""), "{shown}");
    }

    #[test]
    fn a_log_says_which_attempt_wrote_it_and_what_is_missing() {
        let entries = json!({ "items": [{ "attempt": 2, "stream": "stderr", "text": "a\nb\n", "truncated": true }] });
        assert_eq!(log(&entries), "-- attempt 2, stderr (cut off)\na\nb\n");
    }
}
