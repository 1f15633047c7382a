//! The check of licences, bans, sources and advisories by `cargo-deny`.
//!
//! Compiling that program takes minutes, so it is done once, into the user's cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::settings::Settings;
use crate::shell;
use crate::workspace::Workspace;

const PROGRAM: &str = "cargo-deny";
/// The one that deny.toml is written for.
const VERSION: &str = "0.20.2";

/// Where the program is kept: another version has a folder of its own.
fn cached(settings: &Settings) -> PathBuf {
    settings.cache.join("tools").join(format!("{PROGRAM}-{VERSION}"))
}

/// The program on PATH, else the one in the cache, which is compiled unless it is there.
pub fn install(settings: &Settings) -> Result<PathBuf> {
    let root = cached(settings);
    let program = root.join("bin").join(PROGRAM);
    if let Some(found) = shell::find(PROGRAM, &settings.search_path) {
        return Ok(found);
    }
    if shell::is_program(&program) {
        return Ok(program);
    }
    println!("deny: compiling {PROGRAM} into the cache, which takes a few minutes once");
    let mut cargo = settings.cargo();
    cargo.args(["install", PROGRAM, "--version", VERSION, "--locked", "--root"]).arg(&root);
    // What it is made of is no part of this workspace: cargo builds it in a folder that it removes.
    cargo.env_remove("CARGO_TARGET_DIR");
    shell::run(&mut cargo).context("cargo-deny cannot be installed; `--no-deny` leaves its check out")?;
    Ok(program)
}

/// Which checks of deny.toml run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Checks {
    /// Those that need no database.
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
