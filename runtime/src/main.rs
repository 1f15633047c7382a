//! The `deedbox` program: parses its arguments and hands them on, nothing else.

use std::process::ExitCode;

use clap::Parser;
use deedbox::cli::Cli;

fn main() -> ExitCode {
    Cli::parse().run()
}
