//! A Rust compiler with the standard library for guests.
//!
//! The toolchain's own is preferred; a private one never replaces or changes it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::debian;
use crate::guests::TARGET;
use crate::report::{Done, progress};
use crate::settings::{Settings, WasmStd};
use crate::shell;

pub const STEP: &str = "wasm target";

pub enum Compiler {
    /// The toolchain in use has the target.
    Toolchain,
    /// A compiler of its own, in the cache; guests are built with it.
    Private {
        rustc: PathBuf,
        /// Written when it was made.
        marker: PathBuf,
    },
}

impl Compiler {
    pub fn apply(&self, cargo: &mut Command) {
        if let Some(rustc) = self.rustc() {
            cargo.env("RUSTC", rustc);
        }
    }

    /// The program that cargo is to use instead of its own.
    pub fn rustc(&self) -> Option<&Path> {
        match self {
            Self::Toolchain => None,
            Self::Private { rustc, .. } => Some(rustc),
        }
    }

    /// Another text for another standard library, which cargo cannot tell apart: it compares
    /// versions, and a private library that is made anew has the version of the one before.
    pub fn identity(&self) -> Result<String> {
        match self {
            Self::Toolchain => Ok("toolchain".to_owned()),
            Self::Private { marker, .. } => Ok(format!("private {:?}", marker.metadata()?.modified()?)),
        }
    }
}

pub fn ensure(settings: &Settings) -> Result<(Compiler, Done)> {
    if let Some(sysroot) = toolchain_with_target()? {
        return Ok((Compiler::Toolchain, Done::AlreadyThere(sysroot.display().to_string())));
    }
    match settings.wasm_std {
        WasmStd::Debian => debian::ensure(settings),
        WasmStd::Auto if debian::is_cached(settings) => debian::ensure(settings),
        WasmStd::Auto | WasmStd::Rustup if rustup_adds_it(settings) => Ok((Compiler::Toolchain, Done::Made("added"))),
        WasmStd::Auto if debian::is_possible(settings) => debian::ensure(settings),
        _ => bail!(
            "this toolchain has no {TARGET}: run `rustup target add {TARGET}` (see the message above if \
             rustup refused), or install your distribution's standard library for it"
        ),
    }
}

/// The sysroot of the toolchain in use, when it has the target's standard library.
fn toolchain_with_target() -> Result<Option<PathBuf>> {
    let sysroot = PathBuf::from(shell::capture(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
    let libraries = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    Ok(has_std(&libraries).then_some(sysroot))
}

fn has_std(libraries: &Path) -> bool {
    fs::read_dir(libraries).is_ok_and(|entries| {
        entries.flatten().any(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            name.starts_with("libstd") && name.ends_with(".rlib")
        })
    })
}

fn rustup_adds_it(settings: &Settings) -> bool {
    let Some(rustup) = shell::find("rustup", &settings.search_path) else {
        return false;
    };
    progress(STEP, &format!("rustup target add {TARGET}"));
    shell::run(Command::new(rustup).args(["target", "add", TARGET])).is_ok()
}
