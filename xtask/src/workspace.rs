//! What cargo knows about this workspace: its root, its target folder, its packages.
//!
//! Everything comes from `cargo metadata`, so `CARGO_TARGET_DIR` and cargo's settings are honoured.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::settings::Settings;
use crate::shell;

pub struct Workspace {
    pub root: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    packages: Vec<Value>,
}

/// A package that builds a library for the wasm target.
pub struct GuestPackage {
    /// The name for `cargo build --package`.
    pub name: String,
    /// The file name of the result without its ending, for example `charge_once`.
    pub artefact: String,
}

impl Workspace {
    pub fn load(settings: &Settings) -> Result<Self> {
        let arguments = ["metadata", "--no-deps", "--format-version", "1"];
        let text = shell::capture(settings.cargo().args(arguments))?;
        let metadata: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
        Ok(Self {
            root: path(&metadata, "workspace_root")?,
            target: path(&metadata, "target_directory")?,
            packages: metadata["packages"].as_array().cloned().unwrap_or_default(),
        })
    }

    /// Where cargo puts a program of the dev profile.
    pub fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// The names of the programs of a package, in their order.
    pub fn programs(&self, package: &str) -> Vec<String> {
        let found = self.packages.iter().find(|own| text(own, "name") == Some(package));
        let targets = found.and_then(|package| package["targets"].as_array()).into_iter().flatten();
        let programs =
            targets.filter(|target| target["kind"].as_array().is_some_and(|all| all.iter().any(|k| k == "bin")));
        programs.filter_map(|target| text(target, "name")).map(str::to_owned).collect()
    }

    /// The package in that folder of the repository. Fails when it has no `cdylib` target.
    pub fn guest_package(&self, folder: &str) -> Result<GuestPackage> {
        let manifest = self.root.join(folder).join("Cargo.toml");
        let package = self
            .packages
            .iter()
            .find(|package| text(package, "manifest_path").is_some_and(|at| Path::new(at) == manifest))
            .with_context(|| format!("{folder} is not a member of the workspace"))?;
        let artefact = package["targets"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|target| is_cdylib(target))
            .and_then(|target| text(target, "name"))
            .with_context(|| format!("{folder}/Cargo.toml needs crate-type = [\"cdylib\"]"))?;
        Ok(GuestPackage {
            name: text(package, "name").context("a package without a name")?.to_owned(),
            artefact: artefact.replace('-', "_"),
        })
    }
}

fn is_cdylib(target: &Value) -> bool {
    target["crate_types"].as_array().is_some_and(|types| types.iter().any(|kind| kind == "cdylib"))
}

fn path(metadata: &Value, member: &str) -> Result<PathBuf> {
    let found = text(metadata, member).with_context(|| format!("cargo metadata has no {member}"))?;
    Ok(PathBuf::from(found))
}

fn text<'a>(value: &'a Value, member: &str) -> Option<&'a str> {
    value[member].as_str()
}
