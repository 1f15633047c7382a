//! The programs of PostgreSQL: found, or installed where that is this machine's custom.
//!
//! It never starts a server, and an installation leaves no server running.
//! The macOS part follows Homebrew's documentation and has not been run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::apt::Apt;
use crate::report::{Done, progress};
use crate::settings::Settings;
use crate::shell;

pub const STEP: &str = "PostgreSQL";
const MIN_MAJOR: u32 = 15;
const PROGRAMS: [&str; 4] = ["initdb", "pg_ctl", "postgres", "psql"];
/// The places where the runtime looks too: a parent, what stands before the version, what follows.
const PLACES: [(&str, &str, &str); 7] = [
    ("/usr/lib/postgresql", "", "bin"),
    ("/usr", "pgsql-", "bin"),
    ("/usr/lib", "postgresql", "bin"),
    ("/usr/libexec", "postgresql", ""),
    ("/opt/homebrew/opt", "postgresql@", "bin"),
    ("/usr/local/opt", "postgresql@", "bin"),
    ("/Applications/Postgres.app/Contents/Versions", "", "bin"),
];
/// Debian's answer to "make a cluster when the package is installed?".
const CLUSTER_SETTINGS: &str = "/etc/postgresql-common/createcluster.conf";

pub struct Postgres {
    /// The folder that holds all of [`PROGRAMS`].
    pub programs: PathBuf,
    pub major: u32,
}

pub fn ensure(settings: &Settings) -> Result<(Postgres, Done)> {
    if let Some(found) = find(settings) {
        let what = format!("{} in {}", found.major, found.programs.display());
        return Ok((found, Done::AlreadyThere(what)));
    }
    install(settings)?;
    match find(settings) {
        Some(found) => Ok((found, Done::Made("installed"))),
        None => bail!("PostgreSQL was installed, but no folder has {PROGRAMS:?} of version {MIN_MAJOR} or newer"),
    }
}

/// The one on PATH, else the newest in the known places.
fn find(settings: &Settings) -> Option<Postgres> {
    let on_path = shell::find("postgres", &settings.search_path).and_then(|path| path.canonicalize().ok());
    let on_path = on_path.as_deref().and_then(Path::parent).and_then(accept);
    on_path.or_else(|| known_places().iter().filter_map(|folder| accept(folder)).max_by_key(|found| found.major))
}

fn known_places() -> Vec<PathBuf> {
    PLACES.iter().flat_map(|place| versions_in(*place)).collect()
}

fn versions_in((parent, prefix, below): (&str, &str, &str)) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let versioned = entries.filter(|entry| {
        let name = entry.file_name();
        let version = name.to_str().and_then(|name| name.strip_prefix(prefix));
        version.is_some_and(|version| version.parse::<u32>().is_ok())
    });
    versioned.map(|entry| entry.path().join(below)).collect()
}

fn accept(folder: &Path) -> Option<Postgres> {
    if !PROGRAMS.iter().all(|name| shell::is_program(&folder.join(name))) {
        return None;
    }
    let text = shell::capture(Command::new(folder.join("postgres")).arg("--version")).ok()?;
    let major = major(&text).filter(|major| *major >= MIN_MAJOR)?;
    Some(Postgres { programs: folder.to_owned(), major })
}

/// `postgres (PostgreSQL) 17.2 (Debian 17.2-1)`, also `18beta1`.
fn major(text: &str) -> Option<u32> {
    let version = text.split_whitespace().nth(2)?;
    version.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn install(settings: &Settings) -> Result<()> {
    let has = |name: &str| shell::find(name, &settings.search_path).is_some();
    if has("apt-get") && shell::is_root() {
        return install_with_apt();
    }
    if has("apt-get") {
        bail!(
            "PostgreSQL >= {MIN_MAJOR} is missing: let root run `apt-get install --no-install-recommends postgresql`"
        );
    }
    if cfg!(target_os = "macos") && has("brew") {
        progress(STEP, "brew install postgresql@17");
        return shell::run(Command::new("brew").args(["install", "postgresql@17"]));
    }
    bail!(
        "PostgreSQL >= {MIN_MAJOR} is missing: install its server with your system's package manager \
         (dnf install postgresql-server, pacman -S postgresql, apk add postgresql, brew install postgresql@17)"
    )
}

fn install_with_apt() -> Result<()> {
    let lists = tempfile::tempdir()?;
    let apt = Apt::new(lists.path().join("packages"))?;
    if apt.candidate("postgresql", &MIN_MAJOR.to_string())?.is_none() {
        progress(STEP, "apt-get update");
        apt.update()?;
    }
    progress(STEP, "apt-get install postgresql, without a cluster of its own");
    apt_install("postgresql-common")?;
    let _no_cluster = NoCluster::set()?;
    apt_install("postgresql")
}

fn apt_install(package: &str) -> Result<()> {
    let mut command = Command::new("apt-get");
    command.args(["install", "-y", "-qq", "--no-install-recommends", package]);
    shell::quiet(command.env("DEBIAN_FRONTEND", "noninteractive"))
}

/// While it lives, installing a server package makes no cluster and so starts no service.
struct NoCluster {
    before: String,
}

impl NoCluster {
    fn set() -> Result<Self> {
        let before = fs::read_to_string(CLUSTER_SETTINGS).unwrap_or_default();
        fs::write(CLUSTER_SETTINGS, format!("{before}\ncreate_main_cluster = false\n"))?;
        Ok(Self { before })
    }
}

impl Drop for NoCluster {
    fn drop(&mut self) {
        let _ = fs::write(CLUSTER_SETTINGS, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_read_from_every_form() {
        assert_eq!(major("postgres (PostgreSQL) 15.10 (Debian 15.10-0+deb12u1)\n"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 18beta1\n"), Some(18));
        assert_eq!(major("something else"), None);
    }
}
