//! `cargo xtask dev-db`: a private, migrated PostgreSQL for people who change SQL.
//!
//! Its data is gone when it ends.

use anyhow::Result;
use signal_hook::consts::TERM_SIGNALS;
use signal_hook::iterator::Signals;

use crate::database::Database;
use crate::settings::Settings;
use crate::setup;
use crate::workspace::Workspace;

pub fn run(settings: &Settings, workspace: &Workspace) -> Result<()> {
    let postgres = setup::postgres_only(settings)?;
    let mut signals = Signals::new(TERM_SIGNALS)?;
    let database = Database::start(&postgres)?;
    let applied = database.migrate(&workspace.root.join("migrations"))?;
    println!("{applied} migrations applied; Ctrl-C ends the database and removes it\n");
    println!("DATABASE_URL='{}'", database.url());
    signals.forever().next();
    Ok(())
}
