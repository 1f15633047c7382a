//! Python programs that tests run, each in a virtual environment of its own below the cache folder: the client of the
//! OpenWOP specification, what makes up requests for the API, the C compiler for components, the toolchain of Go, and what
//! makes components of Python.
//!
//! Versions and hashes are pinned in a requirements file; when that changes, the environment is made anew. It never
//! touches the system's Python.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::report::{Done, progress};
use crate::settings::Settings;
use crate::shell;

const PROGRAM: &str = "python3";

/// What an environment is for.
pub struct Program {
    pub step: &'static str,
    /// Below the workspace's root.
    pub requirements: &'static str,
    /// Its folder in the cache.
    folder: &'static str,
    /// What it imports.
    module: &'static str,
    /// What it and the making of an environment ask of Python.
    check: &'static str,
    missing: &'static str,
}

pub const OPENWOP: Program = Program {
    step: "OpenWOP client",
    requirements: "tests/openwop_client/requirements.txt",
    folder: "openwop-client",
    module: "openwop_client",
    check: "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))",
    missing: "Python 3.10 or newer with venv and pip is missing, and the test with the OpenWOP client needs it",
};

pub const SCHEMATHESIS: Program = Program {
    step: "Schemathesis",
    requirements: "tests/schemathesis/requirements.txt",
    folder: "schemathesis",
    module: "schemathesis",
    check: "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))",
    missing: "Python 3.11 or newer with venv and pip is missing, and the long suite needs it",
};

pub const COMPONENTIZE_PY: Program = Program {
    step: "componentize-py",
    requirements: "guest-sdk/python/tools/requirements.txt",
    folder: "componentize-py",
    module: "componentize_py",
    check: "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))",
    missing: "Python 3.11 or newer with venv and pip is missing, and the SDK of Python needs it",
};

pub const ZIG: Program = Program {
    step: "Zig",
    requirements: "xtask/c_tools/requirements.txt",
    folder: "zig",
    module: "ziglang",
    check: "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))",
    missing: "Python 3.9 or newer with venv and pip is missing, and the SDK of C gets its compiler by it",
};

pub const GO: Program = Program {
    step: "Go",
    requirements: "xtask/go_tools/requirements.txt",
    folder: "go-tools",
    module: "go",
    check: "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))",
    missing: "Python 3.9 or newer with venv and pip is missing, and the SDK of Go gets its toolchain by it",
};

/// The Python that has the program.
pub fn ensure(settings: &Settings, program: &Program, root: &Path) -> Result<(PathBuf, Done)> {
    let requirements = root.join(program.requirements);
    let wanted =
        fs::read_to_string(&requirements).with_context(|| format!("cannot read {}", requirements.display()))?;
    let place = settings.cache.join(program.folder);
    let python = place.join("bin").join(PROGRAM);
    if is_made(program.module, &place, &python, &wanted) {
        let what = python.display().to_string();
        return Ok((python, Done::AlreadyThere(what)));
    }
    let base = base(settings, program)?;
    progress(program.step, "installing it into the cache");
    make(settings, &base, &requirements, &wanted, &place)?;
    Ok((python, Done::Made("installed")))
}

/// Also false when the system's Python is another one by now.
fn is_made(module: &str, place: &Path, python: &Path, wanted: &str) -> bool {
    let made_for = fs::read_to_string(note(place)).is_ok_and(|made| made == wanted);
    made_for && shell::quiet(Command::new(python).args(["-c", &format!("import {module}")])).is_ok()
}

/// What an environment was made for.
fn note(place: &Path) -> PathBuf {
    place.join("requirements.txt")
}

fn base(settings: &Settings, program: &Program) -> Result<PathBuf> {
    let found = shell::find(PROGRAM, &settings.search_path);
    let able = found.filter(|python| shell::quiet(Command::new(python).args(["-c", program.check])).is_ok());
    match able {
        Some(python) => Ok(python),
        None => bail!(
            "{}: install python3 and python3-venv (Debian, Ubuntu), python3 (Fedora, Homebrew), or what your system calls \
             them",
            program.missing
        ),
    }
}

/// Made beside its final place and moved there when complete, so that a half-made one is never used.
fn make(settings: &Settings, base: &Path, requirements: &Path, wanted: &str, place: &Path) -> Result<()> {
    fs::create_dir_all(&settings.cache)?;
    let draft = tempfile::tempdir_in(&settings.cache)?;
    let environment = draft.path().join("environment");
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
        assert!(!is_made("client", place.path(), &python, "client==2"));
        fs::write(note(place.path()), "client==1").unwrap();
        assert!(!is_made("client", place.path(), &python, "client==2"));
        fs::write(note(place.path()), "client==2").unwrap();
        assert!(is_made("client", place.path(), &python, "client==2"));
        assert!(!is_made("client", place.path(), Path::new("false"), "client==2"), "one that cannot import it");
    }

    #[test]
    fn every_requirement_is_pinned_with_its_hash() {
        for program in [OPENWOP, SCHEMATHESIS, COMPONENTIZE_PY, ZIG, GO] {
            let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
            let text = fs::read_to_string(Path::new(root).join(program.requirements)).unwrap();
            let joined = text.replace("\\\n", " ");
            let pinned = |line: &&str| line.contains("==") && line.contains("--hash=sha256:");
            let mut lines = joined.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
            assert!(lines.peek().is_some(), "{} says nothing", program.requirements);
            assert_eq!(lines.find(|line| !pinned(line)), None, "{}", program.requirements);
        }
    }
}
