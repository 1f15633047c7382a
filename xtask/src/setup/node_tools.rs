//! The programs that make components of JavaScript and TypeScript, for `deedbox build`: a folder to put into `DEEDBOX_TOOLS`.
//!
//! Versions and hashes are pinned in a lock file; when that changes, the folder is made anew. It never touches what npm has
//! installed for the machine, and runs no script of a package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::report::{Done, progress};
use crate::settings::Settings;
use crate::shell;

pub const STEP: &str = "Node.js tools";

/// Below the workspace's root.
const PINNED: &str = "xtask/node_tools";
const FILES: [&str; 2] = ["package.json", "package-lock.json"];
/// Their folder in the cache.
const FOLDER: &str = "node-tools";
const PROGRAMS: &str = "node_modules/.bin";
const OLDEST_NODE: u32 = 20;

/// The folder that has the programs.
pub fn ensure(settings: &Settings, root: &Path) -> Result<(PathBuf, Done)> {
    let pinned = root.join(PINNED);
    let wanted = texts(&pinned).with_context(|| format!("cannot read {}", pinned.display()))?;
    let place = settings.cache.join(FOLDER);
    let programs = place.join(PROGRAMS);
    if is_made(&place, &wanted) {
        let what = programs.display().to_string();
        return Ok((programs, Done::AlreadyThere(what)));
    }
    let npm = npm(settings)?;
    progress(STEP, "installing them into the cache");
    make(settings, &npm, &wanted, &place)?;
    Ok((programs, Done::Made("installed")))
}

fn texts(folder: &Path) -> std::io::Result<Vec<String>> {
    FILES.iter().map(|name| fs::read_to_string(folder.join(name))).collect()
}

fn is_made(place: &Path, wanted: &[String]) -> bool {
    texts(place).is_ok_and(|made| made == wanted) && shell::is_program(&place.join(PROGRAMS).join("esbuild"))
}

fn npm(settings: &Settings) -> Result<PathBuf> {
    let node = shell::find("node", &settings.search_path);
    let version = node.and_then(|node| shell::capture(Command::new(node).arg("--version")).ok());
    let npm = shell::find("npm", &settings.search_path);
    match (version.as_deref().and_then(major), npm) {
        (Some(major), Some(npm)) if major >= OLDEST_NODE => Ok(npm),
        _ => bail!(
            "Node.js {OLDEST_NODE} or newer with npm is missing, and guests in JavaScript need it: install nodejs and npm \
             (Debian, Ubuntu, Fedora), node (Homebrew), or what your system calls them"
        ),
    }
}

/// `v20.1.2` is 20.
fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

/// Made beside its final place and moved there when complete, so that a half-made one is never used.
fn make(settings: &Settings, npm: &Path, wanted: &[String], place: &Path) -> Result<()> {
    fs::create_dir_all(&settings.cache)?;
    let draft = tempfile::tempdir_in(&settings.cache)?;
    let folder = draft.path().join(FOLDER);
    fs::create_dir(&folder)?;
    for (name, text) in FILES.iter().zip(wanted) {
        fs::write(folder.join(name), text)?;
    }
    let mut install = Command::new(npm);
    install.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"]);
    shell::quiet(install.current_dir(&folder))?;
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    // Another run that was faster made one as good.
    match fs::rename(&folder, place) {
        Err(error) if !place.exists() => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pinned() -> Vec<String> {
        texts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("node_tools")).unwrap()
    }

    #[test]
    fn every_package_is_pinned_with_its_hash() {
        let lock: serde_json::Value = serde_json::from_str(&pinned()[1]).unwrap();
        let packages = lock["packages"].as_object().unwrap();
        assert!(packages.len() > 4, "the lock file says nothing");
        let unpinned = packages.iter().find(|(path, package)| !path.is_empty() && !package["integrity"].is_string());
        assert_eq!(unpinned, None);
        let manifest: serde_json::Value = serde_json::from_str(&pinned()[0]).unwrap();
        assert_eq!(manifest["devDependencies"], packages[""]["devDependencies"], "run npm install in xtask/node_tools");
    }

    #[test]
    fn a_folder_for_other_versions_is_made_anew() {
        let place = tempfile::tempdir().unwrap();
        let wanted = pinned();
        for (name, text) in FILES.iter().zip(&wanted) {
            fs::write(place.path().join(name), text).unwrap();
        }
        assert!(!is_made(place.path(), &wanted), "without its programs");
        let programs = place.path().join(PROGRAMS);
        fs::create_dir_all(&programs).unwrap();
        std::os::unix::fs::symlink("/bin/sh", programs.join("esbuild")).unwrap();
        assert!(is_made(place.path(), &wanted));
        fs::write(place.path().join(FILES[1]), "{}").unwrap();
        assert!(!is_made(place.path(), &wanted));
    }

    #[test]
    fn a_version_of_node_is_read() {
        assert_eq!(major("v20.19.5\n"), Some(20));
        assert_eq!(major("20.1"), None);
        assert_eq!(major(""), None);
    }
}
