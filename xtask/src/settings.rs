//! What the environment decides, read once.
//!
//! No other file here may read an environment variable.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow, bail};

/// Where the standard library for guests comes from when the toolchain has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WasmStd {
    /// What is cached, then rustup, then Debian's packages.
    Auto,
    /// `rustup target add`, and nothing else.
    Rustup,
    /// Debian's packages; rustup is never called.
    Debian,
}

pub struct Settings {
    pub wasm_std: WasmStd,
    /// The user's cache folder for this project; it may not exist yet.
    pub cache: PathBuf,
    /// The folders of `PATH`, in order.
    pub search_path: Vec<PathBuf>,
    cargo: PathBuf,
}

impl Settings {
    /// Fails when `DEEDBOX_WASM_STD` has an unknown value, or when no cache folder can be named.
    pub fn from_environment() -> Result<Self> {
        let path = variable("PATH").unwrap_or_default();
        Ok(Self {
            wasm_std: wasm_std(variable("DEEDBOX_WASM_STD"))?,
            cache: cache_folder()?,
            search_path: std::env::split_paths(&path).collect(),
            cargo: variable("CARGO").map_or_else(|| "cargo".into(), PathBuf::from),
        })
    }

    /// The cargo that runs this program; every build uses the recorded queries, not a database.
    pub fn cargo(&self) -> Command {
        let mut command = Command::new(&self.cargo);
        command.env("SQLX_OFFLINE", "true");
        command
    }
}

fn wasm_std(value: Option<OsString>) -> Result<WasmStd> {
    let Some(value) = value else {
        return Ok(WasmStd::Auto);
    };
    match value.to_str() {
        Some("auto") => Ok(WasmStd::Auto),
        Some("rustup") => Ok(WasmStd::Rustup),
        Some("debian") => Ok(WasmStd::Debian),
        _ => bail!("DEEDBOX_WASM_STD is {value:?}: set it to auto, rustup or debian, or unset it"),
    }
}

fn cache_folder() -> Result<PathBuf> {
    // The convention says that a relative path is to be ignored.
    if let Some(folder) = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|folder| folder.is_absolute()) {
        return Ok(folder.join("deedbox"));
    }
    let home = variable("HOME")
        .ok_or_else(|| anyhow!("neither HOME nor XDG_CACHE_HOME is set: set one of them, caches go there"))?;
    let below = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    Ok(Path::new(&home).join(below).join("deedbox"))
}

#[allow(clippy::disallowed_methods, reason = "the one place that reads the environment")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_source_of_the_standard_library_is_refused() {
        assert_eq!(wasm_std(None).unwrap(), WasmStd::Auto);
        assert_eq!(wasm_std(Some("debian".into())).unwrap(), WasmStd::Debian);
        assert!(wasm_std(Some("Debian".into())).is_err());
    }
}
