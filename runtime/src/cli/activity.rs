//! `deedbox activity`: looks at the deployed activities, and holds the runs of one back for a while.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Client;
use super::module::actor;
use super::output::{Output, block, items, text, time};
use super::page::{Page, Unasked, note_more};
use super::settings::Remote;
use super::table::Table;

#[derive(Debug, Args)]
pub(super) struct Activity {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the activities with their newest versions (the default).
    List(Page),
    /// Show the versions of one activity, newest first, and the first one's policy.
    Show {
        name: String,
        #[command(flatten)]
        page: Page,
    },
    /// Let no attempt of its runs begin until it is resumed; those under way end by themselves.
    Pause { name: String },
    /// Let its runs go on.
    Resume { name: String },
}

impl Activity {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        match self.command.unwrap_or_else(|| Command::List(Page::default())) {
            Command::List(page) => page.show(&client, output, &["v1", "activities"], &[], Unasked::All, table).await,
            Command::Show { name, page } => {
                let activity = client.get(&["v1", "activities", &name], &page.query(&[])).await?;
                output.show(&activity, show)?;
                note_more(output, &activity);
                Ok(())
            }
            Command::Pause { name } => {
                client.post(&["v1", "activities", &name, "pause"], &json!({})).await?;
                output.show(&json!({ "activity": name, "paused": true }), |_| {
                    format!(
                        "activity {name} is paused: its runs begin no attempt until `deedbox activity resume {name}`"
                    )
                })
            }
            Command::Resume { name } => {
                client.post(&["v1", "activities", &name, "resume"], &json!({})).await?;
                output.show(&json!({ "activity": name, "paused": false }), |_| format!("activity {name} goes on"))
            }
        }
    }
}

fn table(activities: &Value) -> String {
    let mut table = Table::new(&["activity", "version", "export…", "deployed"]);
    for activity in items(activities) {
        table.row([
            text(activity, "/activity"),
            text(activity, "/version"),
            text(activity, "/export"),
            time(activity, "/created_at"),
        ]);
    }
    table.render("no activities: deploy one with `deedbox deploy FILE.wasm`")
}

/// The newest version comes first. The policy is that of the first one that is shown.
fn show(activity: &Value) -> String {
    let versions = activity["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut table = Table::new(&["version", "deployed", "by…", "export…", "signed by…", "module"]);
    for version in versions {
        table.row([
            text(version, "/version"),
            time(version, "/created_at"),
            actor(version, "/deployed_by"),
            text(version, "/export"),
            text(version, "/signed_by/signer"),
            text(version, "/module"),
        ]);
    }
    let policy = versions.first().map(|newest| block(&newest["policy"])).unwrap_or_default();
    format!("{}\npolicy\n{policy}", table.render("no versions"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_activity_is_shown_with_its_versions_and_its_policy() {
        let version = |number: u32| {
            json!({ "version": number, "export": "charge", "module": "ab12", "policy": { "n": number },
                "deployed_by": { "kind": "operator" }, "signed_by": { "signer": "release" } })
        };
        let shown = show(&json!({ "activity": "charge", "versions": [version(2), version(1)] }));
        assert!(shown.contains("operator") && shown.contains("release"), "{shown}");
        assert!(shown.contains("ab12") && shown.contains("\"n\": 2") && !shown.contains("\"n\": 1"), "{shown}");
    }
}
