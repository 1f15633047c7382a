//! The `deedbox` program: parses its arguments and hands them on, nothing else.

use std::process::ExitCode;

use clap::Parser;
use deedbox::cli::Cli;

#[tokio::main]
async fn main() -> ExitCode {
    Cli::parse().run().await
}
