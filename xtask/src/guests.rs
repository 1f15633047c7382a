//! Building the guest programs of the repository into components.
//!
//! They have a target folder of their own, because their compiler may be another one than the
//! host's. It never guesses: a result that is not a component is an error.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::settings::Settings;
use crate::setup::Compiler;
use crate::shell;
use crate::workspace::Workspace;

/// The activity of the demo and of the README.
pub const DEMO: &str = "examples/charge-once";
/// The folders of every guest program.
pub const ALL: [&str; 6] = [
    DEMO,
    "examples/hazards",
    "examples/samples/rust",
    "tests/guests",
    "tests/guests-faulty",
    "tests/guests-wasi-http",
];

pub const TARGET: &str = "wasm32-wasip2";
const PROFILE: &str = "guest";
/// The preamble of a component: the magic bytes, version 13, layer 1.
const COMPONENT: [u8; 8] = *b"\0asm\x0d\0\x01\0";

/// Builds the packages in these folders and gives the folder that holds the components.
pub fn build(settings: &Settings, workspace: &Workspace, compiler: &Compiler, folders: &[&str]) -> Result<PathBuf> {
    let packages = folders.iter().map(|folder| workspace.guest_package(folder)).collect::<Result<Vec<_>>>()?;
    let target = workspace.target.join("guests");
    forget_other_compiler(&target, &compiler.identity()?)?;
    let mut cargo = settings.cargo();
    cargo.args(["build", "--profile", PROFILE, "--target", TARGET, "--target-dir"]).arg(&target);
    for package in &packages {
        cargo.args(["--package", &package.name]);
    }
    compiler.apply(&mut cargo);
    shell::run(cargo.current_dir(&workspace.root))?;

    let components = target.join("components");
    for package in &packages {
        let file = format!("{}.wasm", package.artefact);
        publish(&target.join(TARGET).join(PROFILE).join(&file), &components.join(&file))?;
    }
    Ok(components)
}

/// Empties the target folder when another standard library filled it.
fn forget_other_compiler(target: &Path, identity: &str) -> Result<()> {
    let note = target.join("compiler");
    if fs::read_to_string(&note).is_ok_and(|written| written == identity) {
        return Ok(());
    }
    if target.exists() {
        fs::remove_dir_all(target)?;
    }
    fs::create_dir_all(target)?;
    Ok(fs::write(note, identity)?)
}

/// Copies only what changed, so that what is built from a component is not built again.
fn publish(built: &Path, component: &Path) -> Result<()> {
    let bytes = fs::read(built).with_context(|| format!("cargo did not write {}", built.display()))?;
    if !bytes.starts_with(&COMPONENT) {
        bail!("{} is not a component: its toolchain links {TARGET} without wasm-component-ld", built.display());
    }
    if fs::read(component).is_ok_and(|published| published == bytes) {
        return Ok(());
    }
    let folder = component.parent().context("a component without a folder")?;
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    std::io::Write::write_all(&mut file, &bytes)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
    file.persist(component)?;
    println!("guests: {} ({} kB)", component.display(), bytes.len() / 1000);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_standard_library_built_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let (target, built) = (folder.path().join("guests"), folder.path().join("guests/a.rlib"));
        forget_other_compiler(&target, "one").unwrap();
        fs::write(&built, "").unwrap();
        forget_other_compiler(&target, "one").unwrap();
        assert!(built.exists());
        forget_other_compiler(&target, "two").unwrap();
        assert!(!built.exists());
    }

    #[test]
    fn a_core_module_is_not_published() {
        let folder = tempfile::tempdir().unwrap();
        let (built, component) = (folder.path().join("a.wasm"), folder.path().join("out/a.wasm"));
        fs::write(&built, b"\0asm\x01\0\0\0").unwrap();
        assert!(publish(&built, &component).is_err());
        fs::write(&built, b"\0asm\x0d\0\x01\0more").unwrap();
        publish(&built, &component).unwrap();
        assert_eq!(fs::read(&component).unwrap(), fs::read(&built).unwrap());
    }
}
