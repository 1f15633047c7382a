//! `deedbox tenant`: creates and lists tenants, with an admin token.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::output::{Output, items, text};
use super::settings::Remote;
use super::table::Table;

#[derive(Debug, Args)]
pub(super) struct Tenant {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a tenant: lower-case letters, digits and hyphens, at most 63.
    Create { tenant: String },
    /// List all tenants.
    List,
}

impl Tenant {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::admin(&self.remote)?;
        match self.command {
            Command::Create { tenant } => {
                let created = client.post(&["v1", "tenants"], &json!({ "tenant": tenant })).await?;
                output.show(&created, |_| {
                    format!("tenant {tenant} is created: `deedbox token create --tenant {tenant}` gives it a token")
                })
            }
            Command::List => output.show(&client.get(&["v1", "tenants"], &[]).await?, table),
        }
    }
}

fn table(tenants: &Value) -> String {
    let mut table = Table::new(&["tenant"]);
    for tenant in items(tenants) {
        table.row([text(tenant, "/tenant")]);
    }
    table.render("no tenants: create one with `deedbox tenant create NAME`")
}
