//! `deedbox tenant`: creates, lists, bounds and pauses tenants, with an admin token.

use std::str::FromStr;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::output::{Output, items, text};
use super::settings::Remote;
use super::table::{Table, pairs};

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
    /// Show what bounds a tenant, or set it.
    Limits {
        tenant: String,
        /// Runs at once, on all nodes together; more stay queued.
        #[arg(long, value_name = "N|none")]
        max_running: Option<Most>,
    },
    /// Let no attempt of a tenant's runs begin until it is resumed; those under way end by themselves.
    Pause { tenant: String },
    /// Let a tenant's runs go on.
    Resume { tenant: String },
}

/// A number, or no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Most(Option<u32>);

impl FromStr for Most {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            number => {
                number.parse().map(|most| Self(Some(most))).map_err(|_| "it must be a number, or none".to_owned())
            }
        }
    }
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
            Command::Limits { tenant, max_running } => {
                let path = ["v1", "tenants", &tenant, "limits"];
                let bounds = match max_running {
                    None => client.get(&path, &[]).await?,
                    Some(Most(most)) => client.put(&path, &json!({ "max_running": most })).await?,
                };
                output.show(&bounds, |bounds| limits(&tenant, bounds))
            }
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

fn limits(tenant: &str, bounds: &Value) -> String {
    let most = text(bounds, "/max_running");
    pairs(&[
        ("tenant", tenant.to_owned()),
        ("runs at once", if most.is_empty() { "no limit".to_owned() } else { most }),
        ("paused", if bounds["paused"] == json!(true) { "yes" } else { "no" }.to_owned()),
    ])
}

fn table(tenants: &Value) -> String {
    let mut table = Table::new(&["tenant"]);
    for tenant in items(tenants) {
        table.row([text(tenant, "/tenant")]);
    }
    table.render("no tenants: create one with `deedbox tenant create NAME`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_or_none() {
        let parsed = |text: &str| text.parse::<Most>().unwrap().0;
        assert_eq!((parsed("5"), parsed("0"), parsed("none")), (Some(5), Some(0), None));
        for wrong in ["", "-1", "many", "4294967296"] {
            assert!(wrong.parse::<Most>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_limit_is_said_so() {
        assert!(limits("shop", &json!({ "max_running": null, "paused": false })).contains("no limit"));
        assert!(limits("shop", &json!({ "max_running": 0, "paused": true })).contains("runs at once  0\n"));
    }
}
