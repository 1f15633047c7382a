//! The client of the OpenWOP specification, which a test runs: in a virtual environment of its own below the cache
//! folder.
//!
//! Versions and hashes are pinned in the requirements file; when that changes, the environment is made anew. It never
//! touches the system's Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::report::{Done, progress};
use crate::settings::Settings;
use crate::shell;

pub const STEP: &str = "OpenWOP client";
/// Below the workspace's root.
pub const REQUIREMENTS: &str = "tests/openwop_client/requirements.txt";

/// What the client asks for, and what makes an environment.
const CHECK: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
const PROGRAM: &str = "python3";

/// The Python that has the client.
pub fn ensure(settings: &Settings, requirements: &Path) -> Result<(PathBuf, Done)> {
    let wanted = fs::read_to_string(requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    let place = settings.cache.join("openwop-client");
    let python = place.join("bin").join(PROGRAM);
    if is_made(&place, &python, &wanted) {
        let what = python.display().to_string();
        return Ok((python, Done::AlreadyThere(what)));
    }
    let base = base(settings)?;
    progress(STEP, "installing it into the cache");
    make(settings, &base, requirements, &wanted, &place)?;
    Ok((python, Done::Made("installed")))
}

/// Also false when the system's Python is another one by now.
fn is_made(place: &Path, python: &Path, wanted: &str) -> bool {
    let made_for = fs::read_to_string(note(place)).is_ok_and(|made| made == wanted);
    made_for && shell::quiet(Command::new(python).args(["-c", "import openwop_client"])).is_ok()
}

/// What an environment was made for.
fn note(place: &Path) -> PathBuf {
    place.join("requirements.txt")
}

fn base(settings: &Settings) -> Result<PathBuf> {
    let found = shell::find(PROGRAM, &settings.search_path);
    let able = found.filter(|python| shell::quiet(Command::new(python).args(["-c", CHECK])).is_ok());
    match able {
        Some(python) => Ok(python),
        None => bail!(
            "Python 3.10 or newer with venv and pip is missing, and the test with the OpenWOP client needs it: install \
             python3 and python3-venv (Debian, Ubuntu), python3 (Fedora, Homebrew), or what your system calls them"
        ),
    }
}

/// Made beside its final place and moved there when complete, so that a half-made one is never used.
fn make(settings: &Settings, base: &Path, requirements: &Path, wanted: &str, place: &Path) -> Result<()> {
    fs::create_dir_all(&settings.cache)?;
    let draft = tempfile::tempdir_in(&settings.cache)?;
    let environment = draft.path().join("openwop-client");
    shell::quiet(Command::new(base).args(["-m", "venv"]).arg(&environment))?;
    let mut install = Command::new(environment.join("bin").join(PROGRAM));
    install.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--require-hashes",
        "-r",
    ]);
    shell::quiet(install.arg(requirements))?;
    fs::write(note(&environment), wanted)?;
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    // Another run that was faster made one as good.
    match fs::rename(&environment, place) {
        Err(error) if !place.exists() => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environment_for_other_requirements_is_made_anew() {
        let place = tempfile::tempdir().unwrap();
        let python = PathBuf::from("true");
        assert!(!is_made(place.path(), &python, "client==2"));
        fs::write(note(place.path()), "client==1").unwrap();
        assert!(!is_made(place.path(), &python, "client==2"));
        fs::write(note(place.path()), "client==2").unwrap();
        assert!(is_made(place.path(), &python, "client==2"));
        assert!(!is_made(place.path(), Path::new("false"), "client==2"), "one that cannot import it");
    }

    #[test]
    fn every_requirement_is_pinned_with_its_hash() {
        let text = include_str!("../../../tests/openwop_client/requirements.txt");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        for requirement in lines.join(" ").split("openwop-client").skip(1) {
            assert!(requirement.starts_with("==") && requirement.contains("--hash=sha256:"), "{requirement}");
        }
    }
}
