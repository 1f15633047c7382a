//! Projects in Rust: `cargo build` for WASI's second preview, whose linker makes a component by itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::super::settings;
use super::{Failure, Project, componentize, tools};

const TARGET: &str = "wasm32-wasip2";
/// The magic bytes and the version of what is no component yet.
const CORE_MODULE: &[u8] = b"\0asm\x01\0\0\0";
const INSTALL: &str = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh";

pub fn is_here(dir: &Path) -> bool {
    dir.join("Cargo.toml").is_file()
}

/// Builds the package in the project's directory for release, and copies its component.
pub fn build(project: &Project) -> Result<PathBuf, Failure> {
    let cargo = tools::need(project, "cargo", INSTALL)?;
    check_target(project)?;
    let package = Package::of(project, &cargo)?;
    tools::run(
        Command::new(&cargo)
            .args(["build", "--release", "--target", TARGET, "--package", &package.name])
            .current_dir(&project.dir),
    )?;
    let built = package.target_dir.join(TARGET).join("release").join(format!("{}.wasm", package.library));
    let mut bytes = tools::read(&built)?;
    // The linkers of some distributions stop at a core module, which has the component's type in it already.
    if bytes.starts_with(CORE_MODULE) {
        bytes = componentize::component(&bytes, None, true).map_err(Failure::Other)?;
    }
    tools::write(&project.out, &bytes)?;
    Ok(project.out.clone())
}

/// Asks the compiler that cargo will use whether it has the standard library for guests.
fn check_target(project: &Project) -> Result<(), Failure> {
    let rustc = match settings::program("RUSTC") {
        Some(rustc) => rustc,
        None => tools::need(project, "rustc", INSTALL)?,
    };
    let mut ask = Command::new(rustc);
    ask.args(["--print", "target-libdir", "--target", TARGET]).current_dir(&project.dir);
    let folder = tools::capture(&mut ask)?;
    let is_std = |name: &str| name.starts_with("libstd") && name.ends_with(".rlib");
    let has_std = std::fs::read_dir(folder.trim())
        .is_ok_and(|entries| entries.flatten().any(|entry| is_std(&entry.file_name().to_string_lossy())));
    let missing = || tools::missing(&format!("the target {TARGET} of Rust"), &format!("rustup target add {TARGET}"));
    if has_std { Ok(()) } else { Err(missing()) }
}

#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    /// The file name of the library, without its ending.
    library: String,
    target_dir: PathBuf,
}

impl Package {
    fn of(project: &Project, cargo: &Path) -> Result<Self, Failure> {
        let mut ask = Command::new(cargo);
        ask.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(&project.dir);
        let metadata = tools::capture(&mut ask)?;
        Self::parse(&metadata, &project.dir.join("Cargo.toml")).map_err(Failure::Other)
    }

    fn parse(metadata: &str, manifest: &Path) -> Result<Self, String> {
        let metadata: Value = serde_json::from_str(metadata).map_err(|e| format!("cargo metadata is not JSON: {e}"))?;
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let is_here = |package: &Value| package["manifest_path"].as_str().is_some_and(|at| Path::new(at) == manifest);
        let package = list(&metadata["packages"]).into_iter().find(is_here);
        let package =
            package.ok_or_else(|| format!("{} has no package: build one of its members", manifest.display()))?;
        let is_cdylib = |target: &Value| list(&target["crate_types"]).iter().any(|kind| kind == "cdylib");
        let library = list(&package["targets"]).into_iter().find(is_cdylib);
        let library = library.ok_or_else(|| {
            format!("{} makes no component: add to it\n  [lib]\n  crate-type = [\"cdylib\"]", manifest.display())
        })?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Ok(Self {
            name: text(&package["name"]),
            library: text(&library["name"]).replace('-', "_"),
            target_dir: text(&metadata["target_directory"]).into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(kind: &str) -> String {
        let lib = json!({ "name": "my-activity", "crate_types": [kind] });
        json!({ "target_directory": "/t", "packages": [
            { "name": "other", "manifest_path": "/other/Cargo.toml", "targets": [] },
            { "name": "my-activity", "manifest_path": "/p/Cargo.toml", "targets": [lib] },
        ] })
        .to_string()
    }

    #[test]
    fn the_package_of_the_directory_and_its_library_are_found() {
        let found = Package::parse(&metadata("cdylib"), Path::new("/p/Cargo.toml")).unwrap();
        let expected = Package { name: "my-activity".into(), library: "my_activity".into(), target_dir: "/t".into() };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_package_that_makes_no_component_is_told_what_to_add() {
        let error = Package::parse(&metadata("lib"), Path::new("/p/Cargo.toml")).unwrap_err();
        assert!(error.contains("crate-type = [\"cdylib\"]"), "{error}");
        let error = Package::parse(&metadata("cdylib"), Path::new("/Cargo.toml")).unwrap_err();
        assert!(error.contains("no package"), "{error}");
    }
}
