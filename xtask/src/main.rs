//! `cargo xtask`: everything that this repository does beyond `cargo build`.
//!
//! It sets a machine up, builds the guests, runs the demo, the tests and the benchmarks, and keeps
//! the recorded queries fresh. It must build in seconds on a bare machine, so it never depends on
//! the runtime, on an async runtime or on wasmtime.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool reports to its terminal")]

mod bench;
mod database;
mod demo;
mod deny;
mod dev_db;
mod fuzz;
mod guests;
mod report;
mod sdks;
mod settings;
mod setup;
mod shell;
mod sqlx;
mod test;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::settings::Settings;
use crate::workspace::Workspace;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Set-up and automation of this repository")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Make this machine ready: the wasm target, the programs of PostgreSQL and NATS, the OpenWOP client. Safe to repeat.
    Setup,
    /// Build the guest components.
    Guests,
    /// Set up, build and run `deedbox demo`. Further arguments go to the demo.
    Demo {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Set up, then check the format, the lints, the recorded queries, and run every test.
    Test(test::Options),
    /// Record what PostgreSQL says about every query into `.sqlx`.
    Sqlx {
        /// Change nothing; fail when the recorded queries are not those of the source.
        #[arg(long)]
        check: bool,
        /// Compile only this package, for example while another one does not compile.
        #[arg(long)]
        package: Option<String>,
    },
    /// Check licences, advisories and sources; compiles cargo-deny first when it is not there.
    Deny,
    /// Run fuzz targets on their stored inputs, and on what is made of them. What is found is kept for the next time.
    Fuzz(fuzz::Options),
    /// Run the benchmarks of the runtime. Further arguments go to `cargo bench`.
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a private, migrated PostgreSQL until Ctrl-C.
    DevDb,
}

fn main() -> ExitCode {
    match dispatch(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(command: Command) -> Result<()> {
    let settings = Settings::from_environment()?;
    let workspace = Workspace::load(&settings)?;
    match command {
        Command::Setup => {
            setup::all(&settings)?;
            setup::nats_only(&settings)?;
            setup::openwop_only(&settings, &workspace).map(drop)
        }
        Command::Guests => {
            let compiler = setup::wasm_only(&settings)?;
            guests::build(&settings, &workspace, &compiler, &guests::ALL).map(drop)
        }
        Command::Demo { arguments } => demo::run(&settings, &workspace, &arguments),
        Command::Test(options) => test::run(&settings, &workspace, &options),
        Command::Sqlx { check, package } => {
            let postgres = setup::postgres_only(&settings)?;
            let scope = sqlx::Scope::of(package);
            if check {
                return sqlx::check(&settings, &workspace, &postgres, &scope);
            }
            sqlx::record(&settings, &workspace, &postgres, &scope)
        }
        Command::Deny => deny::check(&settings, &workspace, &deny::install(&settings)?, deny::Checks::All),
        Command::Fuzz(options) => fuzz::by_hand(&settings, &workspace, &options),
        Command::Bench { arguments } => bench::run(&settings, &workspace, &arguments),
        Command::DevDb => dev_db::run(&settings, &workspace),
    }
}
