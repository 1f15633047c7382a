//! The command line: one file per command. A command either runs a part of a fleet (`up`, `serve`, `worker`, `migrate`) or asks
//! a server over HTTP like any other client; the latter must never reach around the API to the database, but for
//! `token bootstrap`, which makes the first token, and `key`, whose master keys the API must not have to take.
//!
//! Exit codes: 0 done, 1 it failed, or the run did, 2 usage, 3 the server cannot be reached.

mod activity;
mod bootstrap;
mod build;
mod client;
mod compile;
mod demo;
mod deploy;
mod dumps;
mod effects;
mod events;
mod failure;
mod follow;
mod hook;
mod key;
mod log;
mod master_keys;
mod migrate;
mod module;
mod new;
mod os_signals;
mod output;
mod page;
mod provider;
mod runs;
mod secret;
mod seed;
mod serve;
mod settings;
mod signal;
mod sse;
mod start;
mod table;
mod tenant;
mod token;
mod trust;
mod up;
mod values;
mod verify;
mod wait;
mod worker;

use std::process::ExitCode;

use anyhow::Context;
use clap::builder::FalseyValueParser;
use clap::{ArgAction, Args, Parser, Subcommand};
use output::Output;

/// Runs WebAssembly activities whose side effects happen once.
#[derive(Debug, Parser)]
#[command(name = "deedbox", version, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Args)]
struct Global {
    /// Print JSON for programs instead of text for people.
    #[arg(long, global = true)]
    json: bool,
    /// Let the system keep the memory of this process when it crashes, with all secrets in it, and let debuggers in.
    #[arg(
        long,
        env = "DEEDBOX_CORE_DUMPS",
        value_parser = FalseyValueParser::new(),
        action = ArgAction::SetTrue,
        global = true
    )]
    core_dumps: bool,
    #[command(flatten)]
    log: log::Settings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start everything on this machine: PostgreSQL, API and worker.
    Up(up::Up),
    /// Start the API only, on a fleet's database.
    Serve(serve::Serve),
    /// Start a worker only, on a fleet's database.
    Worker(worker::Worker),
    /// Bring a database's schema up to this version.
    Migrate(migrate::Migrate),
    /// Begin a project with an activity.
    New(new::New),
    /// Build a project into a component.
    Build(build::Build),
    /// Upload a component and deploy its activities.
    Deploy(deploy::Deploy),
    /// Start a run of an activity.
    Start(start::Start),
    /// Look at runs; cancel, pause, resume or retry them.
    Runs(runs::Runs),
    /// Send a message to a run.
    Signal(signal::Signal),
    /// Look at the deployed activities; pause or resume their runs.
    Activity(activity::Activity),
    /// Upload modules and look at them: who brought them, who signed them.
    Module(module::Module),
    /// Look at effects, the ledger's entries.
    Effects(effects::Effects),
    /// Follow what happens to all runs, until it is ended.
    Events(events::Events),
    /// Manage the credentials for providers.
    Secret(secret::Secret),
    /// Manage tenants; needs an admin token.
    Tenant(tenant::Tenant),
    /// Manage tokens; needs an admin token, and can make the first one.
    Token(token::Token),
    /// Look at the known providers.
    Provider(provider::Provider),
    /// Manage what is taken from senders of webhooks.
    Hook(hook::Hook),
    /// Look at the keys that seal secrets, and replace them, in a fleet's database.
    Key(key::Key),
    /// Kill a worker in the middle of a charge and see that it was charged once.
    Demo(demo::Demo),
    /// Run an activity with every crash and see that nothing doubles.
    Verify(verify::Verify),
    /// Compile one component for the node that started this process.
    #[command(hide = true)]
    Compile(compile::Compile),
}

impl Cli {
    /// Runs the command and says how it ended.
    pub fn run(self) -> ExitCode {
        let output = Output::new(self.global.json);
        let result = match self.command {
            // A process of its own for each component: it has no use for a log, nor for threads that wait.
            Command::Compile(command) => command.run(),
            command => command.start(&self.global, &output),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failure::report(&error, &output),
        }
    }
}

impl Command {
    fn start(self, global: &Global, output: &Output) -> anyhow::Result<()> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the threads")?;
        runtime.block_on(async {
            log::start(&global.log, matches!(self, Self::Verify(_)))?;
            if !global.core_dumps {
                dumps::forbid();
            }
            self.run(output).await
        })
    }

    async fn run(self, output: &Output) -> anyhow::Result<()> {
        match self {
            Self::Up(command) => command.run(output).await,
            Self::Serve(command) => command.run(output).await,
            Self::Worker(command) => command.run(output).await,
            Self::Migrate(command) => command.run(output).await,
            Self::New(command) => command.run(output).await,
            Self::Build(command) => command.run(output).await,
            Self::Deploy(command) => command.run(output).await,
            Self::Start(command) => command.run(output).await,
            Self::Runs(command) => command.run(output).await,
            Self::Signal(command) => command.run(output).await,
            Self::Activity(command) => command.run(output).await,
            Self::Module(command) => command.run(output).await,
            Self::Effects(command) => command.run(output).await,
            Self::Events(command) => command.run(output).await,
            Self::Secret(command) => command.run(output).await,
            Self::Tenant(command) => command.run(output).await,
            Self::Token(command) => command.run(output).await,
            Self::Provider(command) => command.run(output).await,
            Self::Hook(command) => command.run(output).await,
            Self::Key(command) => command.run(output).await,
            Self::Demo(command) => command.run(output).await,
            Self::Verify(command) => command.run(output).await,
            Self::Compile(command) => command.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_arguments_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn lists_are_the_default_of_their_commands() {
        for words in [["deedbox", "runs"], ["deedbox", "effects"], ["deedbox", "activity"], ["deedbox", "module"]] {
            assert!(Cli::try_parse_from(words).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn global_flags_and_the_server_may_stand_after_the_last_word() {
        let words =
            ["deedbox", "runs", "show", "0190b1c2-0000-7000-8000-000000000001", "--json", "--url", "http://h:1"];
        assert!(Cli::try_parse_from(words).is_ok_and(|cli| cli.global.json));
    }
}
