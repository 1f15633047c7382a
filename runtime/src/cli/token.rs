//! `deedbox token`: creates, lists and revokes the tokens of a tenant, with an admin token. A token's text is shown once.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::bootstrap::Bootstrap;
use super::client::Client;
use super::output::{Output, items, text, time};
use super::page::{Page, Unasked};
use super::seed::TENANT;
use super::settings::Remote;
use super::table::{Table, pairs};

#[derive(Debug, Args)]
pub(super) struct Token {
    #[command(subcommand)]
    command: Command,
    /// Whose tokens. `_admin` has those of the administrators.
    #[arg(long, default_value = TENANT, global = true)]
    tenant: String,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a token and show it, this once.
    Create(Create),
    /// List the tokens' ids, labels, scopes and ends.
    List {
        /// The same as --tenant.
        #[arg(value_name = "TENANT")]
        owner: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Revoke a token at once.
    Revoke { token_id: String },
    /// Make the first admin token of a fleet, in its database.
    Bootstrap(Bootstrap),
}

#[derive(Debug, Default, Args)]
struct Create {
    /// The same as --tenant.
    #[arg(value_name = "TENANT")]
    owner: Option<String>,
    /// What it is for.
    #[arg(long)]
    label: Option<String>,
    /// What it opens: deploy (modules, activities, secrets, providers), run (starting runs, and what is done to them), read (looking
    /// at things), or, for `_admin`, admin; may be given several times. Without it: all that the tenant's tokens may open.
    #[arg(long = "scope", value_name = "SCOPE", value_delimiter = ',', value_parser = ["deploy", "run", "read", "admin"])]
    scopes: Vec<String>,
    /// How long it is good, for example 30d or 12h. Without it: until it is revoked.
    #[arg(long = "expires", value_name = "SPAN")]
    expires_in: Option<String>,
}

impl Token {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = match &self.command {
            Command::Bootstrap(bootstrap) => return bootstrap.run(output).await,
            _ => Client::admin(&self.remote)?,
        };
        let owner = match &self.command {
            Command::Create(Create { owner: Some(owner), .. }) | Command::List { owner: Some(owner), .. } => owner,
            _ => &self.tenant,
        };
        let tokens = ["v1", "tenants", owner, "tokens"];
        match &self.command {
            Command::Create(create) => output.show(&client.post(&tokens, &create.body()).await?, created),
            Command::List { page, .. } => page.show(&client, output, &tokens, &[], Unasked::All, table).await,
            Command::Revoke { token_id } => {
                client.delete(&[&tokens[..], &[token_id.as_str()]].concat()).await?;
                output.show(&json!({ "token_id": token_id }), |_| format!("token {token_id} is revoked"))
            }
            Command::Bootstrap(_) => Ok(()),
        }
    }
}

impl Create {
    /// What was said, and nothing else: the server fills in the rest.
    fn body(&self) -> Value {
        let mut body = Map::new();
        if let Some(label) = &self.label {
            body.insert("label".to_owned(), json!(label));
        }
        if !self.scopes.is_empty() {
            body.insert("scopes".to_owned(), json!(self.scopes));
        }
        if let Some(span) = &self.expires_in {
            body.insert("expires_in".to_owned(), json!(span));
        }
        Value::Object(body)
    }
}

fn created(token: &Value) -> String {
    let rows = [
        ("token", text(token, "/token")),
        ("id", text(token, "/token_id")),
        ("label", text(token, "/label")),
        ("scopes", scopes(token)),
        ("expires", time(token, "/expires_at")),
    ];
    format!("{}Keep it now: it is not shown again.", pairs(&rows))
}

fn table(tokens: &Value) -> String {
    let mut table = Table::new(&["id", "label…", "scopes", "created", "expires"]);
    for token in items(tokens) {
        table.row([
            text(token, "/token_id"),
            text(token, "/label"),
            scopes(token),
            time(token, "/created_at"),
            time(token, "/expires_at"),
        ]);
    }
    table.render("no tokens: create one with `deedbox token create`")
}

fn scopes(token: &Value) -> String {
    let scopes = token["scopes"].as_array().into_iter().flatten();
    scopes.map(|scope| text(scope, "")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_asked_for() {
        assert_eq!(Create::default().body(), json!({}));
        let create = Create {
            label: Some("ci".to_owned()),
            scopes: vec!["run".to_owned(), "read".to_owned()],
            expires_in: Some("30d".to_owned()),
            ..Create::default()
        };
        assert_eq!(create.body(), json!({ "label": "ci", "scopes": ["run", "read"], "expires_in": "30d" }));
    }

    #[test]
    fn a_token_is_listed_with_its_scopes_and_its_end() {
        let token = json!({ "token_id": "ab", "label": "ci", "scopes": ["run", "read"], "created_at": "2026-03-01T09:30:00Z",
            "expires_at": "2026-03-31T09:30:00Z" });
        let shown = table(&json!({ "items": [token] }));
        assert!(shown.contains("run read") && shown.contains("2026-03-31 09:30:00Z"), "{shown}");
    }
}
