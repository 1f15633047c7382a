//! `deedbox provider`: looks at the providers whose conventions are known.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::Client;
use super::output::{Output, items, text};
use super::settings::Remote;
use super::table::Table;

#[derive(Debug, Args)]
pub(super) struct Provider {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the profiles.
    List,
}

impl Provider {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        match self.command {
            Command::List => output.show(&client.get(&["v1", "providers"], &[]).await?, table),
        }
    }
}

fn table(providers: &Value) -> String {
    let mut table = Table::new(&["provider", "version", "hosts…", "convention documented at…"]);
    for provider in items(providers) {
        let hosts = provider["hosts"].as_array().into_iter().flatten();
        let hosts: Vec<String> = hosts.map(|host| text(host, "")).collect();
        table.row([text(provider, "/name"), text(provider, "/version"), hosts.join(" "), text(provider, "/source")]);
    }
    table.render("no providers")
}
