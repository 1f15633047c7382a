//! `cargo xtask demo`: from a fresh clone to the running demo in one command.
//!
//! It only prepares; the story itself is `deedbox demo`.

use std::process::Command;

use anyhow::Result;

use crate::settings::Settings;
use crate::workspace::Workspace;
use crate::{guests, setup, shell};

/// Ends as the demo itself: its exit code is this program's.
pub fn run(settings: &Settings, workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let tools = setup::all(settings)?;
    println!("demo: building the activity");
    let components = guests::build(settings, workspace, &tools.compiler, &[guests::DEMO])?;
    println!("demo: building deedbox and the books of the pretended bank");
    // The whole workspace is selected so that dependencies get the features they have in the tests,
    // and are not built a second time there.
    let build = ["build", "--workspace", "--bin", "deedbox", "--bin", "deedbox-books"];
    shell::run(settings.cargo().args(build).current_dir(&workspace.root))?;
    let mut demo = Command::new(workspace.program("deedbox"));
    demo.arg("demo").arg("--component").arg(components.join("charge_once.wasm"));
    demo.arg("--books").arg(workspace.program("deedbox-books"));
    Err(shell::become_program(demo.args(arguments)))
}
