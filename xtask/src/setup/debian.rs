//! A private compiler with the guests' standard library, from Debian's packages.
//!
//! Debian packages a recent rustc, its sources and a C library for WASI for its web browsers. They
//! are unpacked below the cache folder; nothing is installed and no search path changes. It is made
//! beside its final place and moved there when complete, so a half-made one is never used.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::apt::Apt;
use super::wasm::{Compiler, STEP};
use super::wasm_std;
use crate::report::{Done, progress};
use crate::settings::Settings;
use crate::shell;

/// Guests need this version or a newer one.
const MIN_VERSION: &str = "1.95";
const COMPILER: &str = "rustc-web";
/// Packages of the compiler's own version.
const SAME_VERSION: [&str; 4] = [COMPILER, "libstd-rust-web-dev", "rust-web-src", "rust-web-llvm"];
const MARKER: &str = ".done";

pub fn is_cached(settings: &Settings) -> bool {
    place(settings).join(MARKER).exists()
}

/// Whether this is a system with apt. Its sources may still lack the packages.
pub fn is_possible(settings: &Settings) -> bool {
    ["apt-get", "apt-cache", "dpkg"].iter().all(|name| shell::find(name, &settings.search_path).is_some())
}

/// The cached compiler; makes it first when there is none, which takes one to two minutes.
pub fn ensure(settings: &Settings) -> Result<(Compiler, Done)> {
    let place = place(settings);
    let compiler = || Compiler::Private { rustc: place.join(wasm_std::WRAPPER), marker: place.join(MARKER) };
    let found = || Done::AlreadyThere(place.display().to_string());
    if is_cached(settings) {
        return Ok((compiler(), found()));
    }
    if !is_possible(settings) {
        bail!(
            "DEEDBOX_WASM_STD=debian needs Debian's apt-get, apt-cache and dpkg: unset it to let rustup add the target"
        );
    }
    let _lock = lock(settings)?;
    if is_cached(settings) {
        return Ok((compiler(), found()));
    }
    // One name, so that what a killed run left is found; the lock makes it ours.
    let draft = settings.cache.join("wasm-rust.draft");
    remove(&draft)?;
    fs::create_dir(&draft)?;
    if let Err(error) = make(settings, &draft) {
        remove(&draft)?;
        return Err(error);
    }
    remove(&place)?;
    fs::rename(&draft, &place)?;
    Ok((compiler(), Done::Made("built")))
}

fn remove(folder: &Path) -> Result<()> {
    if !folder.exists() {
        return Ok(());
    }
    fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))
}

fn place(settings: &Settings) -> PathBuf {
    settings.cache.join("wasm-rust")
}

/// Two runs at once: the second one waits here, and then finds the work done.
fn lock(settings: &Settings) -> Result<File> {
    fs::create_dir_all(&settings.cache)?;
    let file = File::create(settings.cache.join("wasm-rust.lock"))?;
    if file.try_lock().is_err() {
        progress(STEP, "waiting for another run that builds it");
        file.lock()?;
    }
    Ok(file)
}

fn make(settings: &Settings, draft: &Path) -> Result<()> {
    let apt = Apt::new(draft.join("packages"))?;
    let version = find_version(&apt)?;
    let packages = selection(&apt, &version)?;
    progress(STEP, &format!("downloading {} Debian packages of {COMPILER} {version}", packages.len()));
    let files = apt.download(&packages)?;
    progress(STEP, "unpacking them into the cache");
    for file in files {
        shell::quiet(Command::new("dpkg").arg("-x").arg(file).arg(draft.join("root")))?;
    }
    fs::remove_dir_all(draft.join("packages"))?;
    progress(STEP, "compiling the standard library, about a minute");
    wasm_std::build(settings, draft)?;
    fs::write(draft.join(MARKER), version)?;
    Ok(())
}

/// The version that apt offers, after an update of its lists when they have none new enough.
fn find_version(apt: &Apt) -> Result<String> {
    if let Some(version) = apt.candidate(COMPILER, MIN_VERSION)? {
        return Ok(version);
    }
    progress(STEP, &format!("apt-get update, because the package lists have no {COMPILER} {MIN_VERSION}"));
    apt.update()?;
    apt.candidate(COMPILER, MIN_VERSION)?.with_context(|| {
        format!(
            "apt offers no {COMPILER} >= {MIN_VERSION}: on Debian 12, is bookworm-security among the apt sources? \
             Elsewhere, `rustup target add {}` is the way",
            crate::guests::TARGET
        )
    })
}

/// Each as `name` or `name=version`, for `apt-get download`.
fn selection(apt: &Apt, version: &str) -> Result<Vec<String>> {
    let pinned = |name: &str| format!("{name}={version}");
    let host_std = apt.dependency(&pinned("libstd-rust-web-dev"), "libstd-rust-web-")?;
    let llvm = apt.dependency(&pinned(&host_std), "libllvm")?;
    let linker = llvm.replacen("libllvm", "lld-", 1);
    let mut packages: Vec<String> = SAME_VERSION.iter().map(|name| pinned(name)).collect();
    packages.push(pinned(&host_std));
    packages.extend([llvm.clone(), linker.clone(), "wasi-libc".to_owned()]);
    let libraries = apt.missing_for(&[&llvm, &linker])?;
    packages.extend(libraries.into_iter().filter(|name| *name != llvm && *name != linker));
    Ok(packages)
}
