//! `deedbox start`: starts a run, at once or later, and waits for its end if asked to. Stopping to wait never stops the run.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::client::Client;
use super::failure::Failure;
use super::output::{Output, block, text};
use super::settings::Remote;
use super::values::{self, Label};
use super::wait;

#[derive(Debug, Args)]
pub(super) struct Start {
    /// The activity.
    name: String,
    /// The input as JSON, or the file that holds it as @FILE; @- is standard input.
    #[arg(long, value_name = "JSON|@FILE", default_value = "null")]
    input: String,
    /// Start one run under this key, however often it is asked for: 22 to 128 characters of A-Z a-z 0-9 . _ ~ -
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Wait until the run has ended; exit code 1 if it did not complete.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    plan: Plan,
    #[command(flatten)]
    first: FirstSignal,
    #[command(flatten)]
    callback: Callback,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Args)]
struct Plan {
    /// A business id, unique among the activity's runs as --reuse says.
    #[arg(long, value_name = "ID")]
    run_name: Option<String>,
    /// What to do when there is a run of that name; without it: reject.
    #[arg(long, requires = "run_name")]
    reuse: Option<Reuse>,
    /// No attempt begins before this time, such as 2026-03-01T09:30:00Z.
    #[arg(long, value_name = "TIME", value_parser = values::instant, conflicts_with = "delay")]
    start_at: Option<DateTime<Utc>>,
    /// The same counted from now, such as 90s or 2h.
    #[arg(long, value_name = "DURATION")]
    delay: Option<String>,
    /// 1 is first, 9 is last; without it: 5.
    #[arg(long, value_name = "1-9", value_parser = clap::value_parser!(u8).range(1..=9))]
    priority: Option<u8>,
    /// A label to find the run by; may be given several times.
    #[arg(long = "label", value_name = "NAME=VALUE")]
    labels: Vec<Label>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
enum Reuse {
    /// Start another.
    Allow,
    /// Start none.
    Reject,
    /// Start none while that run has not ended.
    #[value(alias = "reject-alive")]
    RejectAlive,
    /// While that run has not ended, it is the answer.
    Attach,
}

#[derive(Debug, Args)]
struct FirstSignal {
    /// Deliver a signal of this name with the start; with `--reuse attach`, to the run that is there.
    #[arg(long, value_name = "NAME")]
    signal: Option<String>,
    /// The signal's payload.
    #[arg(long, value_name = "JSON|@FILE", requires = "signal")]
    signal_payload: Option<String>,
    /// Deliver it once under this key, in the life of the run.
    #[arg(long, value_name = "KEY", requires = "signal")]
    signal_key: Option<String>,
}

#[derive(Debug, Args)]
struct Callback {
    /// Tell this address when the run has ended. The activity's policy must allow its origin.
    #[arg(long, value_name = "URL")]
    callback_url: Option<String>,
    /// The secret that signs what it is told; without it: webhook.
    #[arg(long, value_name = "NAME", requires = "callback_url")]
    callback_secret: Option<String>,
}

/// What is asked of the server. Texts in it go as they were written: no number in them changes.
#[derive(Serialize)]
struct NewRun<'a> {
    input: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reuse: Option<Reuse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delay: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<&'a str, &'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<NewSignal<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback: Option<NewCallback<'a>>,
}

#[derive(Serialize)]
struct NewCallback<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<&'a str>,
}

#[derive(Serialize)]
struct NewSignal<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
}

impl Start {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let new = self.new_run().await?;
        let client = Client::tenant(&self.remote)?;
        let path = ["v1", "activities", &self.name, "runs"];
        let run = client.post_under(&path, &[], self.idempotency_key.as_deref(), &new).await?;
        let run_id = text(&run, "/run_id");
        let was_there = run["started_fresh"] == Value::Bool(false);
        if !self.wait {
            let is = if was_there { "was there already and is" } else { "is" };
            return output.show(&run, |run| format!("run {run_id} {is} {}", text(run, "/state")));
        }
        output.note(&format!("run {run_id} {}", if was_there { "was there already" } else { "started" }));
        let mut told = String::new();
        let seen = |run: &Value| {
            let question = question(run);
            if question != told && !question.is_empty() {
                output.note(&question);
            }
            told = question;
            Ok(())
        };
        let ended = wait::end(&client, &run_id, wait::SECONDS, seen).await?;
        output.show(&ended, summary)?;
        wait::check_completed(&ended)
    }

    async fn new_run(&self) -> anyhow::Result<NewRun<'_>> {
        let plan = &self.plan;
        Ok(NewRun {
            input: values::json_text("--input", &self.input).await?,
            run_name: plan.run_name.as_deref(),
            reuse: plan.reuse,
            start_at: plan.start_at,
            delay: plan.delay.as_deref(),
            priority: plan.priority,
            labels: plan.labels()?,
            signal: self.first.signal().await?,
            callback: self.callback.new_callback(),
        })
    }
}

impl Plan {
    fn labels(&self) -> Result<BTreeMap<&str, &str>, Failure> {
        let mut labels = BTreeMap::new();
        for Label { name, value } in &self.labels {
            if labels.insert(name.as_str(), value.as_str()).is_some() {
                return Err(Failure::Usage(format!("--label {name} is given twice: a label has one value")));
            }
        }
        Ok(labels)
    }
}

impl FirstSignal {
    async fn signal(&self) -> anyhow::Result<Option<NewSignal<'_>>> {
        let Some(name) = &self.signal else { return Ok(None) };
        let payload = match &self.signal_payload {
            Some(payload) => Some(values::json_text("--signal-payload", payload).await?),
            None => None,
        };
        Ok(Some(NewSignal { name, payload, idempotency_key: self.signal_key.as_deref() }))
    }
}

impl Callback {
    fn new_callback(&self) -> Option<NewCallback<'_>> {
        let url = self.callback_url.as_deref()?;
        Some(NewCallback { url, secret: self.callback_secret.as_deref() })
    }
}

/// What the run waits for from outside, and what to do about it; empty when it is nothing.
fn question(run: &Value) -> String {
    let (effect, signal) = (text(run, "/waiting_for/effect_id"), text(run, "/waiting_for/signal"));
    if text(run, "/state") != "waiting" {
        return String::new();
    }
    match (effect.is_empty(), signal.is_empty()) {
        (false, _) => format!(
            "the run waits until it is known what became of effect {effect}: see `deedbox effects show {effect}`"
        ),
        (true, false) => {
            let run_id = text(run, "/run_id");
            format!("the run waits for a signal: deliver it with `deedbox signal {run_id} {signal}`")
        }
        (true, true) => String::new(),
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

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        start: Start,
    }

    fn parsed(flags: &[&str]) -> Result<Start, clap::Error> {
        Line::try_parse_from([&["start", "charge"], flags].concat()).map(|line| line.start)
    }

    async fn body(flags: &[&str]) -> Value {
        serde_json::to_value(parsed(flags).unwrap().new_run().await.unwrap()).unwrap()
    }

    #[tokio::test]
    async fn only_what_is_said_is_asked_for() {
        assert_eq!(body(&[]).await, json!({ "input": null }));
        let named =
            ["--input", "7", "--run-name", "1042", "--reuse", "reject-alive", "--priority", "2", "--delay", "2h"];
        let more = ["--label", "shop=berlin", "--label", "kind=a=b", "--signal", "paid"];
        let key = ["--signal-payload", "[1]", "--signal-key", "evt_0123456789abcdefghij"];
        assert_eq!(
            body(&[&named[..], &more, &key].concat()).await,
            json!({ "input": 7, "run_name": "1042", "reuse": "reject_alive", "priority": 2, "delay": "2h",
                "labels": { "shop": "berlin", "kind": "a=b" },
                "signal": { "name": "paid", "payload": [1], "idempotency_key": "evt_0123456789abcdefghij" } })
        );
        let told = ["--callback-url", "https://hooks.example.com/", "--callback-secret", "hooks"];
        assert_eq!(
            (body(&told[..2]).await["callback"].clone(), body(&told).await["callback"].clone()),
            (json!({ "url": told[1] }), json!({ "url": told[1], "secret": "hooks" }))
        );
        let at = body(&["--start-at", "2026-03-01T10:30:00+01:00"]).await;
        assert_eq!(at["start_at"], "2026-03-01T09:30:00Z");
    }

    #[tokio::test]
    async fn what_does_not_go_together_is_refused() {
        for flags in [
            &["--reuse", "attach"][..],
            &["--run-name", "x", "--reuse", "sometimes"],
            &["--delay", "1s", "--start-at", "2026-03-01T09:30:00Z"],
            &["--priority", "10"],
            &["--label", "shop"],
            &["--signal-key", "k"],
            &["--callback-secret", "hooks"],
        ] {
            assert!(parsed(flags).is_err(), "{flags:?}");
        }
        let twice = parsed(&["--label", "a=1", "--label", "a=2"]).unwrap();
        assert!(twice.new_run().await.is_err());
    }

    #[test]
    fn the_end_is_told_with_its_attempts() {
        assert_eq!(
            summary(&json!({ "run_id": "r", "state": "failed", "attempts": 3, "max_attempts": 3 })),
            "run r is failed after 3 of 3 attempts"
        );
    }

    #[test]
    fn what_a_run_waits_for_is_told_with_the_way_out() {
        let run = |state: &str, waiting: Value| json!({ "run_id": "r", "state": state, "waiting_for": waiting });
        assert!(question(&run("waiting", json!({ "effect_id": "e" }))).contains("deedbox effects show e"));
        assert!(question(&run("waiting", json!({ "signal": "paid" }))).contains("deedbox signal r paid"));
        assert_eq!(question(&run("waiting", Value::Null)), "");
        assert_eq!(question(&run("queued", Value::Null)), "");
    }
}
