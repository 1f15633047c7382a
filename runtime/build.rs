//! Makes the component of the conformance fixtures out of its text, so that the binary can carry it. It must do nothing
//! else: everything else is built by cargo alone.

use std::error::Error;
use std::path::PathBuf;

const TEXT: &str = "fixtures/openwop.wat";

#[allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "cargo tells a build script in the environment where to write, and is told in turn"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={TEXT}");
    let out = std::env::var_os("OUT_DIR").ok_or("cargo did not say where to write")?;
    std::fs::write(PathBuf::from(out).join("openwop.wasm"), wat::parse_file(TEXT)?)?;
    Ok(())
}
