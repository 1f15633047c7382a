//! Makes what the binary carries besides its code: the component of the conformance fixtures out of its text, and the list of the
//! sources of the SDKs. It must do nothing else: everything else is built by cargo alone.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

const TEXT: &str = "fixtures/openwop.wat";
const SDKS: &str = "../guest-sdk";
/// What tools leave in a folder of sources. Named here, because an archive of the sources has no git to ask.
const BUILT: [&str; 10] = [
    "target",
    "node_modules",
    "venv",
    ".venv",
    "__pycache__",
    "dist",
    ".gocache",
    ".pytest_cache",
    ".mypy_cache",
    ".git",
];
const BUILT_ENDINGS: [&str; 3] = ["wasm", "pyc", "egg-info"];

#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "cargo tells a build script in the environment where to write, and is told in turn"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={TEXT}");
    println!("cargo::rerun-if-changed={SDKS}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo did not say where to write")?);
    fs::write(out.join("openwop.wasm"), wat::parse_file(TEXT)?)?;
    let root = Path::new(SDKS).canonicalize()?;
    let mut files = Vec::new();
    gather(&root, &mut files)?;
    write_if_other(&out.join("sdks.rs"), &listing(&root, &mut files)?)?;
    Ok(())
}

fn gather(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if BUILT.contains(&name.as_str()) || BUILT_ENDINGS.contains(&ending.as_str()) {
            continue;
        }
        if path.is_dir() { gather(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// An expression: each file by its path below the root, with its content.
fn listing(root: &Path, files: &mut [PathBuf]) -> Result<String, Box<dyn Error>> {
    let mut lines = Vec::new();
    for file in files {
        let path = file.strip_prefix(root)?.to_str().ok_or("a path that is not UTF-8")?.replace('\\', "/");
        lines.push(format!("    ({path:?}, include_bytes!({file:?})),\n"));
    }
    lines.sort();
    Ok(format!("&[\n{}]\n", lines.concat()))
}

fn write_if_other(path: &Path, text: &str) -> Result<(), Box<dyn Error>> {
    if !fs::read_to_string(path).is_ok_and(|written| written == text) {
        fs::write(path, text)?;
    }
    Ok(())
}
