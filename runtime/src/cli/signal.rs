//! `deedbox signal`: sends a message to a run. Under a key it counts once in the life of the run.

use clap::{Args, ValueEnum};
use serde_json::Value;

use super::client::Client;
use super::output::Output;
use super::settings::Remote;
use super::values;

#[derive(Debug, Args)]
pub(super) struct Signal {
    run: String,
    /// The signal's name, by which the activity asks for it.
    name: String,
    /// The payload as JSON, or the file that holds it as @FILE; @- is standard input.
    #[arg(long, value_name = "JSON|@FILE", default_value = "null")]
    payload: String,
    /// Deliver it once under this key: 22 to 128 characters of A-Z a-z 0-9 . _ ~ -
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// It also says what became of this effect of the run: its id, or its wire key.
    #[arg(long, value_name = "EFFECT")]
    resolves: Option<String>,
    /// What became of it; without this: happened, with the payload as the answer that the run gets.
    #[arg(long, requires = "resolves")]
    outcome: Option<Outcome>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Outcome {
    Happened,
    DidNotHappen,
}

impl Outcome {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Happened => "happened",
            Self::DidNotHappen => "did-not-happen",
        }
    }
}

impl Signal {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let payload = values::json_text("--payload", &self.payload).await?;
        let client = Client::tenant(&self.remote)?;
        let path = ["v1", "runs", &self.run, "signals", &self.name];
        let answer = client.post_under(&path, &self.query(), self.idempotency_key.as_deref(), &payload).await?;
        output.show(&answer, |answer| told(&self.run, &self.name, answer))
    }

    fn query(&self) -> Vec<(&'static str, &str)> {
        let resolves = self.resolves.as_deref().map(|effect| ("resolves", effect));
        resolves.into_iter().chain(self.outcome.map(|outcome| ("outcome", outcome.as_str()))).collect()
    }
}

fn told(run: &str, name: &str, answer: &Value) -> String {
    if answer["signal_delivered"] == Value::Bool(false) {
        return format!("run {run} had a signal under this key already: nothing was added");
    }
    let effect = match answer["effect_resolved"].as_bool() {
        None => "",
        Some(true) => "; the effect is settled",
        Some(false) => "; the effect was no open question, and stays as it is",
    };
    format!("signal {name} is delivered to run {run}{effect}")
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        signal: Signal,
    }

    #[test]
    fn an_effect_is_named_in_the_query() {
        let parsed = |flags: &[&str]| Line::try_parse_from([&["signal", "r", "paid"], flags].concat());
        let signal = parsed(&["--resolves", "e", "--outcome", "did-not-happen"]).unwrap().signal;
        assert_eq!(signal.query(), [("resolves", "e"), ("outcome", "did-not-happen")]);
        assert!(parsed(&[]).unwrap().signal.query().is_empty());
        assert!(parsed(&["--outcome", "happened"]).is_err());
    }

    #[test]
    fn a_duplicate_is_told_from_a_delivery() {
        let told = |answer: Value| told("r", "paid", &answer);
        assert_eq!(told(json!({ "signal_delivered": true })), "signal paid is delivered to run r");
        let settled = told(json!({ "signal_delivered": true, "effect_resolved": true }));
        assert!(settled.ends_with("the effect is settled"), "{settled}");
        let duplicate = told(json!({ "signal_delivered": false, "effect_resolved": false }));
        assert!(duplicate.contains("nothing was added") && !duplicate.contains("effect"), "{duplicate}");
    }
}
