//! Set-up: what a machine needs beyond cargo and a C linker, found or made.
//!
//! Every step may be repeated at any time and does nothing when nothing is missing. As an ordinary
//! user it writes only below the cache folder.

mod apt;
mod c_tools;
mod componentize_py;
mod debian;
mod go_tools;
mod nats;
mod node_tools;
mod postgres;
mod python;
mod wasm;
mod wasm_std;

use std::path::PathBuf;

use anyhow::Result;

pub use self::postgres::Postgres;
pub use self::wasm::Compiler;
use crate::report;
use crate::settings::Settings;
use crate::workspace::Workspace;

pub struct Tools {
    pub compiler: Compiler,
    pub postgres: Postgres,
}

pub fn all(settings: &Settings) -> Result<Tools> {
    Ok(Tools { compiler: wasm_only(settings)?, postgres: postgres_only(settings)? })
}

/// The program of the NATS server, which only tests need.
pub fn nats_only(settings: &Settings) -> Result<PathBuf> {
    report::step(nats::STEP, || nats::ensure(settings))
}

/// A Python that has the client of the OpenWOP specification, which only tests need.
pub fn openwop_only(settings: &Settings, workspace: &Workspace) -> Result<PathBuf> {
    environment(settings, workspace, &python::OPENWOP)
}

/// A Python that has what makes up requests, which only the long suite needs.
pub fn schemathesis_only(settings: &Settings, workspace: &Workspace) -> Result<PathBuf> {
    environment(settings, workspace, &python::SCHEMATHESIS)
}

/// The folder of the program that makes components of Python, which only the SDKs' stage needs.
pub fn componentize_py_only(settings: &Settings, workspace: &Workspace) -> Result<PathBuf> {
    report::step(componentize_py::STEP, || componentize_py::ensure(settings, &workspace.root))
}

/// The folder of the C compiler for components, which only the SDKs' stage needs.
pub fn c_only(settings: &Settings, workspace: &Workspace) -> Result<PathBuf> {
    report::step(c_tools::STEP, || c_tools::ensure(settings, &workspace.root))
}

/// The folder of the Go toolchain, which only the SDKs' stage needs.
pub fn go_only(settings: &Settings, workspace: &Workspace) -> Result<PathBuf> {
    report::step(go_tools::STEP, || go_tools::ensure(settings, &workspace.root))
}

/// The folder of the programs that make components of JavaScript, which only the SDKs' stage needs.
pub fn node_only(settings: &Settings, workspace: &Workspace) -> Result<PathBuf> {
    report::step(node_tools::STEP, || node_tools::ensure(settings, &workspace.root))
}

fn environment(settings: &Settings, workspace: &Workspace, program: &python::Program) -> Result<PathBuf> {
    report::step(program.step, || python::ensure(settings, program, &workspace.root))
}

pub fn wasm_only(settings: &Settings) -> Result<Compiler> {
    report::step(wasm::STEP, || wasm::ensure(settings))
}

pub fn postgres_only(settings: &Settings) -> Result<Postgres> {
    report::step(postgres::STEP, || postgres::ensure(settings))
}
