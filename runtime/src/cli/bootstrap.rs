//! `deedbox token bootstrap`: the first administrator's token of a fleet that was set up by hand. It is the one command of the kind
//! that manages things and goes to the database itself: before there is a token, the API lets nobody in.

use clap::Args;
use serde_json::json;

use super::output::{Output, text};
use super::table::pairs;
use crate::store::{self, Store};
use crate::token;

/// For statements that follow one another.
const CONNECTIONS: u32 = 1;

#[derive(Debug, Args)]
pub(super) struct Bootstrap {
    /// The fleet's database: postgres://USER:PASSWORD@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    database_url: String,
    /// Make one although there is one already: it is lost.
    #[arg(long)]
    another: bool,
    /// What it is for.
    #[arg(long, default_value = "bootstrap")]
    label: String,
}

impl Bootstrap {
    pub(super) async fn run(&self, output: &Output) -> anyhow::Result<()> {
        let store = Store::connect(&self.database_url, CONNECTIONS)?;
        let made = self.make(&store).await;
        store.close().await;
        let Some((token_id, token)) = made? else {
            anyhow::bail!(
                "there is an administrator's token already: use that one with `deedbox token create --tenant {}`, \
                 or, if it is lost, make one more with --another and revoke it",
                store::tenant::ADMIN
            );
        };
        let made = json!({ "token_id": token_id, "token": token, "label": self.label });
        output.show(&made, |made| {
            let rows = [("admin token", text(made, "/token")), ("id", text(made, "/token_id"))];
            format!("{}Keep it now: it is not shown again.", pairs(&rows))
        })
    }

    /// The token's id and text; none when there is one already.
    async fn make(&self, store: &Store) -> anyhow::Result<Option<(String, String)>> {
        store.check_schema().await?;
        let (token_id, text, hash) = token::mint(store::tenant::ADMIN);
        let stored = store::token::create_first(store, token_id, &hash, &self.label, self.another).await?;
        Ok(stored.then(|| (token_id.simple().to_string(), text)))
    }
}
