//! `deedbox migrate`: brings the schema of a fleet's database up to this version, before its nodes are.

use clap::Args;
use serde_json::json;

use super::output::Output;
use crate::store::Store;

/// Migrations run one after another on one connection; the second is for the lock's holder.
const CONNECTIONS: u32 = 2;

#[derive(Debug, Args)]
pub(super) struct Migrate {
    /// The fleet's database: postgres://USER:PASSWORD@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    database_url: String,
}

impl Migrate {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let store = Store::connect(&self.database_url, CONNECTIONS)?;
        let migrated = store.migrate().await;
        store.close().await;
        migrated?;
        output.show(&json!({ "migrated": true }), |_| "the schema is up to date".to_owned())
    }
}
