//! The check of licences, advisories and sources by `cargo-deny`.
//!
//! Compiling that program takes minutes, so it is only installed when asked for.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::settings::Settings;
use crate::shell;
use crate::workspace::Workspace;

const PROGRAM: &str = "cargo-deny";

/// The program, on PATH or in the cache.
pub fn find(settings: &Settings) -> Option<PathBuf> {
    let cached = settings.cache.join("tools/bin");
    shell::find(PROGRAM, &settings.search_path).or_else(|| shell::find(PROGRAM, &[cached]))
}

/// Compiles the program into the cache, unless it is there.
pub fn install(settings: &Settings) -> Result<PathBuf> {
    if let Some(found) = find(settings) {
        return Ok(found);
    }
    println!("deny: compiling {PROGRAM} into the cache, which takes a few minutes once");
    let root = settings.cache.join("tools");
    shell::run(settings.cargo().args(["install", PROGRAM, "--locked", "--root"]).arg(&root))?;
    Ok(root.join("bin").join(PROGRAM))
}

/// Which checks of deny.toml run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// Those that need no network.
    Offline,
    /// Also the advisories, whose database is fetched.
    All,
}

/// Fails when a dependency breaks a rule of deny.toml.
pub fn check(settings: &Settings, workspace: &Workspace, program: &Path, checks: Checks) -> Result<()> {
    let mut deny = Command::new(program);
    deny.args(["--workspace", "check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
    if checks == Checks::All {
        deny.arg("advisories");
    }
    shell::run(deny.env("CARGO", settings.cargo().get_program()).current_dir(&workspace.root))
}
