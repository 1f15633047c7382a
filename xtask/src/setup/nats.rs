//! The program of the NATS server, which tests run: found, or taken from Debian's package.
//!
//! The package is unpacked below the cache folder, so that it leaves no service running and needs no rights. It never
//! starts a server. The macOS part follows Homebrew's documentation and has not been run.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::apt::Apt;
use crate::report::{Done, progress};
use crate::settings::Settings;
use crate::shell;

pub const STEP: &str = "NATS";
const PROGRAM: &str = "nats-server";
/// Tests use JetStream as it is since this version.
const MIN_VERSION: &str = "2.9";
/// Where distributions put it, which the search path of users may leave out.
const PLACES: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"];

/// The server's program.
pub fn ensure(settings: &Settings) -> Result<(PathBuf, Done)> {
    if let Some(found) = find(settings) {
        let what = found.display().to_string();
        return Ok((found, Done::AlreadyThere(what)));
    }
    let has = |name: &str| shell::find(name, &settings.search_path).is_some();
    if has("apt-get") && has("apt-cache") && has("dpkg") {
        unpack(settings)?;
    } else if cfg!(target_os = "macos") && has("brew") {
        progress(STEP, "brew install nats-server");
        shell::run(Command::new("brew").args(["install", PROGRAM]))?;
    } else {
        bail!(
            "{PROGRAM} >= {MIN_VERSION} is missing, and the tests of messages need it: install the package {PROGRAM} of \
             your system, or put the program from a release of nats-io/nats-server on the PATH"
        )
    }
    let found = find(settings).with_context(|| format!("{PROGRAM} was installed, but it is not where it should be"))?;
    Ok((found, Done::Made("installed")))
}

fn find(settings: &Settings) -> Option<PathBuf> {
    let on_path = shell::find(PROGRAM, &settings.search_path);
    let elsewhere = || shell::find(PROGRAM, &PLACES.map(PathBuf::from));
    on_path.or_else(elsewhere).or_else(|| shell::find(PROGRAM, &[place(settings).join("usr/sbin")]))
}

fn place(settings: &Settings) -> PathBuf {
    settings.cache.join("nats")
}

/// Made beside its final place and moved there when complete, so that a half-made one is never used.
fn unpack(settings: &Settings) -> Result<()> {
    fs::create_dir_all(&settings.cache)?;
    let draft = tempfile::tempdir_in(&settings.cache)?;
    let apt = Apt::new(draft.path().join("packages"))?;
    if apt.candidate(PROGRAM, MIN_VERSION)?.is_none() {
        progress(STEP, &format!("apt-get update, because the package lists have no {PROGRAM} {MIN_VERSION}"));
        apt.update()?;
    }
    progress(STEP, &format!("unpacking Debian's {PROGRAM} into the cache"));
    let root = draft.path().join("root");
    for file in apt.download(&[PROGRAM.to_owned()])? {
        shell::quiet(Command::new("dpkg").arg("-x").arg(file).arg(&root))?;
    }
    let place = place(settings);
    // Another run was faster: its program is as good.
    if !place.exists() {
        fs::rename(&root, &place)?;
    }
    Ok(())
}
