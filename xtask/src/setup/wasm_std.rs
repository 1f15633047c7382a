//! Compiling the standard library for guests with an unpacked compiler, from that compiler's sources.
//!
//! The result is found relative to its own place, so the folder can be moved as a whole.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::guests::TARGET;
use crate::settings::Settings;
use crate::shell;

/// The compiler, as seen by cargo: a script in the folder's root.
pub const WRAPPER: &str = "rustc-wasm";
/// What linking needs of the C library for WASI.
const C_LIBRARY: [&str; 3] = ["crt1-command.o", "crt1-reactor.o", "libc.a"];

/// `folder/root` holds the unpacked packages. Leaves there only what compiling guests needs.
pub fn build(settings: &Settings, folder: &Path) -> Result<()> {
    let usr = folder.join("root/usr");
    write_wrapper(folder)?;
    let rustlib = usr.join("lib/rustlib");
    link_linker(&usr, &rustlib.join(host(folder)?).join("bin"))?;
    let sources = only_entry(&usr.join("src"), "rustc-")?;
    compile(settings, folder, &sources.join("library"))?;
    install(folder, &usr, &rustlib.join(TARGET).join("lib"))?;
    for surplus in [folder.join("build"), sources, usr.join("share")] {
        fs::remove_dir_all(surplus)?;
    }
    Ok(())
}

fn write_wrapper(folder: &Path) -> Result<()> {
    let libraries = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let script = format!(
        "#!/bin/sh\n\
         here=$(CDPATH='' cd -- \"$(dirname -- \"$0\")\" && pwd)/root/usr\n\
         export LD_LIBRARY_PATH=\"$here/{libraries}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\"\n\
         exec \"$here/bin/rustc\" \"$@\"\n"
    );
    let path = folder.join(WRAPPER);
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// The triple of this machine, as the compiler names it.
fn host(folder: &Path) -> Result<String> {
    let version = shell::capture(Command::new(folder.join(WRAPPER)).arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

/// The compiler looks for its linkers beside its own programs; Debian puts them into LLVM's folder.
fn link_linker(usr: &Path, programs: &Path) -> Result<()> {
    let llvm = only_entry(&usr.join("lib"), "llvm-")?;
    let llvm = Path::new("lib").join(llvm.file_name().context("a folder without a name")?).join("bin");
    fs::create_dir_all(programs.join("gcc-ld"))?;
    let up = |levels: usize| "../".repeat(levels);
    // `programs` is usr/lib/rustlib/<host>/bin.
    replace_link(&Path::new(&up(4)).join(&llvm).join("lld"), &programs.join("rust-lld"))?;
    replace_link(&Path::new(&up(5)).join(&llvm).join("wasm-ld"), &programs.join("gcc-ld/wasm-ld"))
}

fn replace_link(to: &Path, at: &Path) -> Result<()> {
    if at.symlink_metadata().is_ok() {
        fs::remove_file(at)?;
    }
    symlink(to, at).with_context(|| format!("cannot link {}", at.display()))
}

fn compile(settings: &Settings, folder: &Path, library: &Path) -> Result<()> {
    shell::run(
        settings
            .cargo()
            .args(["build", "--locked", "--release", "--package", "std", "--target", TARGET])
            .current_dir(library)
            .env("RUSTC", folder.join(WRAPPER))
            // The sources of std use unstable features by nature.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTFLAGS", "-Zforce-unstable-if-unmarked -Cembed-bitcode=yes")
            .env("CARGO_TARGET_DIR", folder.join("build")),
    )
}

fn install(folder: &Path, usr: &Path, libraries: &Path) -> Result<()> {
    let linked = libraries.join("self-contained");
    fs::create_dir_all(&linked)?;
    for entry in fs::read_dir(folder.join("build").join(TARGET).join("release/deps"))? {
        let path = entry?.path();
        if let Some(name) = path.file_name().filter(|_| path.extension().is_some_and(|ending| ending == "rlib")) {
            fs::copy(&path, libraries.join(name))?;
        }
    }
    for name in C_LIBRARY {
        let from = usr.join("lib/wasm32-wasi").join(name);
        fs::copy(&from, linked.join(name)).with_context(|| format!("wasi-libc has no {}", from.display()))?;
    }
    Ok(())
}

fn only_entry(folder: &Path, prefix: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            return Ok(entry.path());
        }
    }
    anyhow::bail!("{} has no {prefix}*: Debian changed its packages", folder.display())
}
