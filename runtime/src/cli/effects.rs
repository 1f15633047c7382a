//! `deedbox effects`: looks at the ledger.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::Client;
use super::output::{Output, items, text, time, took};
use super::runs::{Page, note_more};
use super::settings::Remote;
use super::table::{Table, pairs};

#[derive(Debug, Args)]
pub(super) struct Effects {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List effects, oldest first (the default).
    List(List),
    /// Show one effect with all its sends.
    Show { effect: String },
}

#[derive(Debug, Default, Args)]
struct List {
    /// Only effects in this state: claimed, completed, released, escaped.
    #[arg(long)]
    state: Option<String>,
    /// Only effects at this provider.
    #[arg(long)]
    provider: Option<String>,
    /// Only effects of this run.
    #[arg(long)]
    run: Option<String>,
    #[command(flatten)]
    page: Page,
}

impl Effects {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        match self.command.unwrap_or_else(|| Command::List(List::default())) {
            Command::List(list) => {
                let query =
                    list.page.query(&[("state", &list.state), ("provider", &list.provider), ("run", &list.run)]);
                let effects = client.get(&["v1", "effects"], &query).await?;
                output.show(&effects, table)?;
                note_more(output, &effects);
                Ok(())
            }
            Command::Show { effect } => output.show(&client.get(&["v1", "effects", &effect], &[]).await?, show),
        }
    }
}

fn table(effects: &Value) -> String {
    let mut table = Table::new(&["effect", "state", "provider", "sends", "call…", "last sent"]);
    for effect in items(effects) {
        table.row([
            text(effect, "/effect_id"),
            state(effect),
            text(effect, "/provider"),
            effect["sends"].as_array().map_or(0, Vec::len).to_string(),
            call(effect),
            time(effect, "/last_sent_at"),
        ]);
    }
    table.render("no effects")
}

pub(super) fn show(effect: &Value) -> String {
    let shown = pairs(&[
        ("effect", text(effect, "/effect_id")),
        ("state", state(effect)),
        ("identity", format!("{} {}", text(effect, "/keying"), text(effect, "/identity"))),
        ("call", call(effect)),
        ("provider", text(effect, "/provider")),
        ("account", text(effect, "/account")),
        ("wire key", text(effect, "/wire_key")),
        ("run", text(effect, "/run_id")),
        ("when unknown", text(effect, "/on_unknown")),
        ("answer", format!("{} {}", text(effect, "/status"), text(effect, "/source")).trim().to_owned()),
        ("settled", time(effect, "/settled_at")),
    ]);
    format!("{shown}\n{}", sends(effect))
}

/// A send's run is shown where it is not the effect's own: that is possible for business effects only.
fn sends(effect: &Value) -> String {
    let mut table = Table::new(&["send", "attempt", "started", "took", "result", "status", "of another run"]);
    for send in effect["sends"].as_array().into_iter().flatten() {
        let result = text(send, "/result");
        let run = text(send, "/run_id");
        table.row([
            text(send, "/send"),
            text(send, "/attempt"),
            time(send, "/started_at"),
            took(send),
            if result.is_empty() { "unknown".to_owned() } else { result },
            text(send, "/status"),
            if run == text(effect, "/run_id") { String::new() } else { run },
        ]);
    }
    table.render("never sent")
}

fn call(effect: &Value) -> String {
    format!("{} {}", text(effect, "/method"), text(effect, "/url"))
}

/// With the incident that must not be missed.
fn state(effect: &Value) -> String {
    let doubled = effect["doubled"] == Value::Bool(true);
    format!("{}{}", text(effect, "/state"), if doubled { " (DOUBLED)" } else { "" })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_effect_is_shown_with_its_sends() {
        let effect = json!({ "effect_id": "e", "state": "completed", "doubled": true, "keying": "named", "identity": "charge",
            "method": "POST", "url": "http://p/v1", "wire_key": "k", "sends": [
                { "send": 1, "attempt": 1, "result": null }, { "send": 2, "attempt": 2, "result": "answered", "status": 201 }] });
        let shown = show(&effect);
        assert!(shown.contains("completed (DOUBLED)") && shown.contains("named charge"), "{shown}");
        assert!(shown.contains("unknown") && shown.contains("answered"), "{shown}");
        assert!(table(&json!({ "items": [effect] })).contains("POST http://p/v1"));
    }
}
