//! `deedbox tenant`: creates, lists, bounds and pauses tenants, and keeps their signers, with an admin token.

mod limits;
mod signer;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::output::{Output, items, text};
use super::page::{Page, Unasked};
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
    List(Page),
    /// Show what bounds a tenant, or set it.
    Limits(Box<limits::Limits>),
    /// Keep the public keys whose signatures of modules count for a tenant.
    Signer(signer::Signer),
    /// Let no attempt of a tenant's runs begin until it is resumed; those under way end by themselves.
    Pause { tenant: String },
    /// Let a tenant's runs go on.
    Resume { tenant: String },
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
            Command::List(page) => page.show(&client, output, &["v1", "tenants"], &[], Unasked::All, table).await,
            Command::Limits(limits) => limits.run(&client, output).await,
            Command::Signer(signer) => signer.run(&client, output).await,
            Command::Pause { tenant } => {
                client.post(&["v1", "tenants", &tenant, "pause"], &json!({})).await?;
                output.show(&json!({ "tenant": tenant, "paused": true }), |_| {
                    format!(
                        "tenant {tenant} is paused: its runs begin no attempt until `deedbox tenant resume {tenant}`"
                    )
                })
            }
            Command::Resume { tenant } => {
                client.post(&["v1", "tenants", &tenant, "resume"], &json!({})).await?;
                output.show(&json!({ "tenant": tenant, "paused": false }), |_| format!("tenant {tenant} goes on"))
            }
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
