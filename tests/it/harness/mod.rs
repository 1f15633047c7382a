//! What every test stands on: a database of its own, a node, a provider that keeps books, and short ways to deploy,
//! start and look.

pub mod cell;
mod database;
pub mod freeze;
pub mod logs;
pub mod process;
pub mod shared;
mod world;

use std::path::PathBuf;

pub use database::Database;
pub use world::{TENANT, World, config, node, work};

/// The states of all effects with the numbers of their sends, read in a session of its own.
pub async fn claimed(database: &Database) -> Vec<(String, i64)> {
    let sql = "select state, (select count(*) from sends s where s.tenant = e.tenant and s.effect_id = e.effect_id)
               from effects e order by first_sent_at";
    sqlx::query_as(sql).fetch_all(&mut database.connect().await).await.unwrap()
}

/// The bytes of a built guest component.
pub fn component(name: &str) -> Vec<u8> {
    let path = components_dir().join(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}; run `cargo xtask guests` first", path.display()))
}

#[allow(clippy::disallowed_methods, reason = "the one place of the tests that reads the environment")]
fn components_dir() -> PathBuf {
    let given = std::env::var_os("DEEDBOX_COMPONENTS").map(PathBuf::from);
    given.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/guests/components")))
}
