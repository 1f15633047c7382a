//! `deedbox effects`: looks at the ledger, and settles what only a person can know.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::failure::Failure;
use super::output::{Output, items, text, time, took};
use super::page::{Page, Unasked};
use super::settings::{self, Remote};
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
    /// Say what became of an effect whose outcome nobody knows. The run that waits for it goes on.
    Resolve(Resolve),
}

#[derive(Debug, Args)]
struct Resolve {
    effect: String,
    #[command(flatten)]
    said: Said,
    /// How you know, for whoever reads it later.
    #[arg(long)]
    note: String,
    /// Who says so; the token is recorded in any case.
    #[arg(long)]
    by: Option<String>,
    /// The status of the answer that the run gets. Without it: 200.
    #[arg(long, requires = "happened")]
    status: Option<u16>,
    /// The body of the answer that the run gets, or @FILE.
    #[arg(long, value_name = "TEXT|@FILE", requires = "happened")]
    body: Option<String>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Said {
    /// It happened: the run gets an answer and does not send it.
    #[arg(long)]
    happened: bool,
    /// It did not happen: the run sends it.
    #[arg(long)]
    did_not_happen: bool,
    /// Nobody knows: the run sends it once more, and it may happen twice.
    #[arg(long)]
    send_again: bool,
}

#[derive(Debug, Default, Args)]
struct List {
    /// Only effects in this state: claimed, completed, released, escaped.
    #[arg(long)]
    state: Option<String>,
    /// Only open questions: effects whose outcome nobody knows.
    #[arg(long, conflicts_with = "state")]
    escaped: bool,
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
                let state = if list.escaped { Some("escaped".to_owned()) } else { list.state };
                let filters = [("state", &state), ("provider", &list.provider), ("run", &list.run)];
                let table = if list.escaped { open_questions } else { table };
                list.page.show(&client, output, &["v1", "effects"], &filters, Unasked::OnePage, table).await
            }
            Command::Show { effect } => output.show(&client.get(&["v1", "effects", &effect], &[]).await?, show),
            Command::Resolve(resolve) => {
                let body = resolve.body().await?;
                output.show(&client.post(&["v1", "effects", &resolve.effect, "resolve"], &body).await?, show)
            }
        }
    }
}

impl Resolve {
    async fn body(&self) -> anyhow::Result<Value> {
        let outcome = match &self.said {
            Said { happened: true, .. } => "happened",
            Said { did_not_happen: true, .. } => "did-not-happen",
            Said { .. } => "send-again",
        };
        let mut body = json!({ "outcome": outcome, "note": self.note });
        if let Some(by) = &self.by {
            body["by"] = json!(by);
        }
        if self.status.is_some() || self.body.is_some() {
            body["response"] = json!({ "status": self.status.unwrap_or(200) });
            if let Some(text) = &self.body {
                body["response"]["body"] = json!(text_or_file(text).await?);
            }
        }
        Ok(body)
    }
}

async fn text_or_file(text: &str) -> anyhow::Result<String> {
    let Some(file) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let bytes = settings::read(std::path::Path::new(file)).await?;
    String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{file} is not UTF-8 text")).into())
}

/// What a person needs to find it at the provider.
fn open_questions(effects: &Value) -> String {
    let mut table =
        Table::new(&["effect", "first sent", "provider", "account", "wire key", "call…", "identity…", "asked"]);
    for effect in items(effects) {
        table.row([
            text(effect, "/effect_id"),
            time(effect, "/first_sent_at"),
            text(effect, "/provider"),
            text(effect, "/account"),
            text(effect, "/wire_key"),
            call(effect),
            text(effect, "/identity"),
            if effect["asks_provider"] == json!(true) { text(effect, "/looks") } else { "never".to_owned() },
        ]);
    }
    table.render("no open questions")
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
    format!("{shown}\n{}{}", sends(effect), resolutions(effect))
}

fn resolutions(effect: &Value) -> String {
    let all: Vec<&Value> = effect["resolutions"].as_array().into_iter().flatten().collect();
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&["resolved", "outcome", "by", "note…"]);
    for resolution in all {
        table.row([
            time(resolution, "/at"),
            text(resolution, "/outcome"),
            text(resolution, "/by"),
            text(resolution, "/note"),
        ]);
    }
    format!("\n{}", table.render(""))
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
