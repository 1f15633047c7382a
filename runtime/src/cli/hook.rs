//! `deedbox hook`: what is taken from senders of webhooks, and what became of their last deliveries.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::failure::Failure;
use super::output::{Output, items, text, time};
use super::settings::{self, Remote};
use super::table::Table;

#[derive(Debug, Args)]
pub(super) struct Hook {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the hooks (the default).
    List,
    /// Show one hook as it was put.
    Show { name: String },
    /// Put a hook, replacing an older one of that name. The address for the sender is printed.
    Put {
        name: String,
        /// A JSON file, or a TOML file whose name ends in `.toml`.
        file: PathBuf,
    },
    /// Remove a hook. Its sender is refused from then on.
    Rm { name: String },
    /// List what became of the last deliveries, newest first.
    Deliveries { name: String },
}

impl Hook {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        match self.command.unwrap_or(Command::List) {
            Command::List => output.show(&client.get(&["v1", "hooks"], &[]).await?, table),
            Command::Show { name } => {
                let pretty = |hook: &Value| serde_json::to_string_pretty(&hook["config"]).unwrap_or_default();
                output.show(&client.get(&["v1", "hooks", &name], &[]).await?, pretty)
            }
            Command::Put { name, file } => {
                let put = client.put(&["v1", "hooks", &name], &read(&file).await?).await?;
                let words = |put: &Value| format!("hook {name} is put; its sender posts to {}", text(put, "/path"));
                output.show(&put, words)
            }
            Command::Rm { name } => {
                client.delete(&["v1", "hooks", &name]).await?;
                output.show(&json!({ "name": name }), |_| format!("hook {name} is removed"))
            }
            Command::Deliveries { name } => {
                output.show(&client.get(&["v1", "hooks", &name, "deliveries"], &[]).await?, deliveries)
            }
        }
    }
}

async fn read(file: &Path) -> anyhow::Result<Value> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", file.display()));
    let text = String::from_utf8(settings::read(file).await?).map_err(|_| wrong("not UTF-8 text".to_owned()))?;
    let value = if file.extension().is_some_and(|extension| extension == "toml") {
        toml::from_str(&text).map_err(|e| wrong(e.to_string()))?
    } else {
        serde_json::from_str(&text).map_err(|e| wrong(format!("not JSON ({e}); a TOML file's name ends in .toml")))?
    };
    Ok(value)
}

fn table(hooks: &Value) -> String {
    let mut table = Table::new(&["name", "path", "scheme", "becomes…", "updated"]);
    for hook in items(hooks) {
        let becomes = match text(hook, "/config/start/activity") {
            activity if activity.is_empty() => "a signal".to_owned(),
            activity => format!("a run of {activity}"),
        };
        let scheme = text(hook, "/config/verify/scheme");
        table.row([text(hook, "/name"), text(hook, "/path"), scheme, becomes, time(hook, "/updated_at")]);
    }
    table.render("no hooks: put one with `deedbox hook put NAME FILE`")
}

fn deliveries(deliveries: &Value) -> String {
    let mut table = Table::new(&["at", "delivery", "outcome", "tries", "run", "reason…"]);
    for delivery in items(deliveries) {
        table.row([
            time(delivery, "/last_at"),
            text(delivery, "/delivery_id"),
            text(delivery, "/outcome"),
            text(delivery, "/tries"),
            text(delivery, "/run_id"),
            text(delivery, "/reason"),
        ]);
    }
    table.render("no deliveries yet")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hook_is_read_from_json_and_from_toml() {
        let dir = tempfile::tempdir().unwrap();
        let hook = json!({ "verify": { "scheme": "github", "secret": ["a", "b"] }, "start": { "activity": "build" } });
        let texts = [
            ("hook.json", hook.to_string()),
            (
                "hook.toml",
                "[verify]\nscheme = \"github\"\nsecret = [\"a\", \"b\"]\n[start]\nactivity = \"build\"\n".to_owned(),
            ),
        ];
        for (name, written) in texts {
            let file = dir.path().join(name);
            std::fs::write(&file, written).unwrap();
            assert_eq!(read(&file).await.unwrap(), hook, "{name}");
        }
        let wrong = dir.path().join("hook");
        std::fs::write(&wrong, "[verify]\n").unwrap();
        let words = read(&wrong).await.unwrap_err().to_string();
        assert!(words.contains("not JSON") && words.contains(".toml"), "{words}");
    }
}
