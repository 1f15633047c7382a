//! `cargo xtask bench`: the benchmarks of the runtime, on real components and a real PostgreSQL.

use anyhow::Result;

use crate::settings::Settings;
use crate::test::COMPONENTS;
use crate::workspace::Workspace;
use crate::{guests, setup, shell};

pub fn run(settings: &Settings, workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let tools = setup::all(settings)?;
    let components = guests::build(settings, workspace, &tools.compiler, &guests::ALL)?;
    let mut cargo = settings.cargo();
    cargo.args(["bench", "--package", "deedbox"]).args(arguments);
    shell::run(cargo.env(COMPONENTS, components).current_dir(&workspace.root))
}
