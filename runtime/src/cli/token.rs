//! `deedbox token`: creates, lists and revokes the tokens of a tenant, with an admin token. A token's text is shown once.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::output::{Output, items, text, time};
use super::seed::TENANT;
use super::settings::Remote;
use super::table::{Table, pairs};

#[derive(Debug, Args)]
pub(super) struct Token {
    #[command(subcommand)]
    command: Command,
    /// Whose tokens.
    #[arg(long, default_value = TENANT, global = true)]
    tenant: String,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a token and show it, this once.
    Create {
        /// What it is for.
        #[arg(long)]
        label: Option<String>,
    },
    /// List the tokens' ids and labels.
    List,
    /// Revoke a token at once.
    Revoke { token_id: String },
}

impl Token {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::admin(&self.remote)?;
        let tokens = ["v1", "tenants", &self.tenant, "tokens"];
        match &self.command {
            Command::Create { label } => {
                let body = label.as_ref().map_or_else(|| json!({}), |label| json!({ "label": label }));
                output.show(&client.post(&tokens, &body).await?, created)
            }
            Command::List => output.show(&client.get(&tokens, &[]).await?, table),
            Command::Revoke { token_id } => {
                client.delete(&[&tokens[..], &[token_id.as_str()]].concat()).await?;
                output.show(&json!({ "token_id": token_id }), |_| format!("token {token_id} is revoked"))
            }
        }
    }
}

fn created(token: &Value) -> String {
    let rows = [("token", text(token, "/token")), ("id", text(token, "/token_id")), ("label", text(token, "/label"))];
    format!("{}Keep it now: it is not shown again.", pairs(&rows))
}

fn table(tokens: &Value) -> String {
    let mut table = Table::new(&["id", "label…", "created"]);
    for token in items(tokens) {
        table.row([text(token, "/token_id"), text(token, "/label"), time(token, "/created_at")]);
    }
    table.render("no tokens: create one with `deedbox token create`")
}
