//! `deedbox provider`: the providers whose conventions are known, and the tenant's own.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::failure::Failure;
use super::output::{Output, items, text};
use super::page::{Page, Unasked};
use super::settings::{self, Remote};
use super::table::Table;

#[derive(Debug, Args)]
pub(super) struct Provider {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the profiles (the default).
    List(Page),
    /// Show one profile: the TOML text that can be put again.
    Show { name: String },
    /// Put a profile of your own, or one in the place of a shipped one. It may say `extends = "NAME"`.
    Put {
        /// A TOML file; its `name` is the profile's.
        file: PathBuf,
    },
    /// Remove a profile of your own; a shipped one of that name is in its place again.
    Rm { name: String },
}

impl Provider {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        match self.command.unwrap_or_else(|| Command::List(Page::default())) {
            Command::List(page) => page.show(&client, output, &["v1", "providers"], &[], Unasked::All, table).await,
            Command::Show { name } => {
                let shown = |profile: &Value| text(profile, "/profile").trim_end().to_owned();
                output.show(&client.get(&["v1", "providers", &name], &[]).await?, shown)
            }
            Command::Put { file } => {
                let (name, profile) = read(&file).await?;
                let put = client.put(&["v1", "providers", &name], &json!({ "profile": profile })).await?;
                output.show(&put, |_| format!("provider {name} is put; it is in use within seconds"))
            }
            Command::Rm { name } => {
                client.delete(&["v1", "providers", &name]).await?;
                output.show(&json!({ "name": name }), |_| format!("provider {name} is removed"))
            }
        }
    }
}

/// A profile's text and the name that it gives itself.
async fn read(file: &Path) -> anyhow::Result<(String, String)> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let text = String::from_utf8(settings::read(file).await?).map_err(|_| wrong("not UTF-8 text".to_owned()))?;
    let table: toml::Table = text.parse().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
    let name =
        table.get("name").and_then(|name| name.as_str()).ok_or_else(|| wrong("there is no `name`".to_owned()))?;
    Ok((name.to_owned(), text))
}

fn table(providers: &Value) -> String {
    let mut table = Table::new(&["provider", "version", "own", "sure", "hosts…", "convention documented at…"]);
    for provider in items(providers) {
        let hosts = provider["hosts"].as_array().into_iter().flatten();
        let hosts: Vec<String> = hosts.map(|host| text(host, "")).collect();
        let own = if provider["own"] == json!(true) { "yes" } else { "" };
        table.row([
            text(provider, "/name"),
            text(provider, "/version"),
            own.to_owned(),
            text(provider, "/confidence"),
            hosts.join(" "),
            text(provider, "/source"),
        ]);
    }
    table.render("no providers")
}
