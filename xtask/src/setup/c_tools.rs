//! The C compiler for components, for `deedbox build`: a folder to put into `DEEDBOX_TOOLS`.
//!
//! It is Zig's, which carries the C library of WASI, and comes as a package of Python, pinned with its hashes. It runs from wherever
//! it lies; it never touches a compiler of the machine. The tests of the SDK use the machine's own.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::python;
use crate::report::Done;
use crate::settings::Settings;
use crate::shell;

pub const STEP: &str = python::ZIG.step;

/// The folder that has `zig`. Fails when the machine has no C compiler and no make for the SDK's tests.
pub fn ensure(settings: &Settings, root: &Path) -> Result<(PathBuf, Done)> {
    for program in ["cc", "make"] {
        if shell::find(program, &settings.search_path).is_none() {
            bail!(
                "`{program}` is missing, and the tests of the C SDK need it: install build-essential or what your system calls it"
            );
        }
    }
    let (python, done) = python::ensure(settings, &python::ZIG, root)?;
    let place = python.parent().and_then(Path::parent).context("a Python without a folder")?;
    let folder = programs(place).with_context(|| format!("{} has no Zig: remove it and try again", place.display()))?;
    Ok((folder, done))
}

/// The program lies among the packages of the one version of Python that the environment has. The script for it beside Python names
/// the folder in which the environment was made, and it was moved since.
fn programs(place: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(place.join("lib")).ok()?;
    let folders = versions.flatten().map(|version| version.path().join("site-packages/ziglang"));
    folders.into_iter().find(|folder| shell::is_program(&folder.join("zig")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn zig_is_found_among_the_packages_when_it_can_be_run() {
        let place = tempfile::tempdir().unwrap();
        assert_eq!(programs(place.path()), None);
        let folder = place.path().join("lib/python3.11/site-packages/ziglang");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("zig"), "").unwrap();
        assert_eq!(programs(place.path()), None);
        fs::set_permissions(folder.join("zig"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(programs(place.path()), Some(folder));
    }
}
