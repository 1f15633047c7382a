//! `cargo xtask test`: what must hold before a change goes in, in the order of its cost.
//!
//! It stops at the first stage that fails, and always prints the table of the stages it ran.

use anyhow::Result;
use clap::Args;

use crate::deny::Checks;
use crate::report::Stages;
use crate::settings::Settings;
use crate::workspace::Workspace;
use crate::{deny, fuzz, guests, sdks, setup, shell, sqlx};

/// Tests of `deedbox verify` that carry out whole verifications, each of many seconds.
const VERIFICATIONS: [&str; 3] = ["verify::faults::", "verify::clean::", "verify::outcome::"];

/// The variable that tells tests and benchmarks where the components are.
pub const COMPONENTS: &str = "DEEDBOX_COMPONENTS";
/// The variable that tells tests where the program of the NATS server is.
const NATS_SERVER: &str = "DEEDBOX_NATS_SERVER";

/// The variable that tells tests which Python has the OpenWOP client.
const OPENWOP_PYTHON: &str = "DEEDBOX_OPENWOP_PYTHON";
/// The variable that tells the long suite which Python has Schemathesis.
const SCHEMATHESIS: &str = "DEEDBOX_SCHEMATHESIS";

/// The variable that tells tests of which languages the samples must be there.
const SDKS: &str = "DEEDBOX_SDKS";

/// Tests at once. They wait for processes, time and the disk more than they compute, so there are more than the two cores of
/// a small machine.
const TEST_THREADS: &str = "4";

/// The tests that have the machine for themselves.
const NEIGHBOURS: &str = "neighbours::";

#[derive(Args)]
pub struct Options {
    /// Run the long suite as well: wider searches of the model, every cell of the crash matrix with real processes, made-up
    /// requests to every route.
    #[arg(long)]
    long: bool,
    /// Check advisories as well, which needs a network.
    #[arg(long)]
    deny: bool,
    /// Leave out the check of dependencies, which compiles cargo-deny into the cache when it is not there.
    #[arg(long, conflicts_with = "deny")]
    no_deny: bool,
    /// Leave out the fuzzers. Their stored inputs are tried all the same, by a test.
    #[arg(long)]
    no_fuzz: bool,
    /// Fail when the tools of a language of the SDKs cannot be had, instead of leaving that language out.
    #[arg(long)]
    every_sdk: bool,
    /// Run only the tests whose names contain one of these.
    filters: Vec<String>,
}

pub fn run(settings: &Settings, workspace: &Workspace, options: &Options) -> Result<()> {
    let mut stages = Stages::default();
    let result = run_stages(settings, workspace, options, &mut stages);
    stages.print_table();
    result
}

fn run_stages(settings: &Settings, workspace: &Workspace, options: &Options, stages: &mut Stages) -> Result<()> {
    let cargo = |arguments: &[&str]| shell::run(settings.cargo().args(arguments).current_dir(&workspace.root));
    let (tools, nats, python) = stages.run("setup", || {
        Ok((setup::all(settings)?, setup::nats_only(settings)?, setup::openwop_only(settings, workspace)?))
    })?;
    let schemathesis =
        options.long.then(|| stages.run("setup, long", || setup::schemathesis_only(settings, workspace)));
    let schemathesis = schemathesis.transpose()?;
    stages.run("format", || cargo(&["fmt", "--all", "--check"]))?;
    stages.run("lint", || cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    stages.run("queries", || sqlx::check(settings, workspace, &tools.postgres, &sqlx::Scope::Workspace))?;
    let components = stages.run("guests", || guests::build(settings, workspace, &tools.compiler, &guests::ALL))?;
    deny_stage(settings, workspace, options, stages)?;
    // Programs and tests in one invocation: cargo then gives both the same features, and builds once.
    stages.run("build", || cargo(&["build", "--workspace", "--bins", "--tests"]))?;
    let machine = sdks::Machine { settings, workspace, compiler: &tools.compiler };
    let whole = options.long || options.every_sdk;
    let languages = if whole {
        stages.run("sdks", || sdks::build(&machine, &components, options.every_sdk))?
    } else {
        stages.skip("sdks", "it runs with --every-sdk or --long");
        Vec::new()
    };
    let tests = |arguments: &[&str]| {
        let mut tests = settings.cargo();
        tests.args(["test", "--workspace"]).args(arguments);
        tests.env(COMPONENTS, &components).env(NATS_SERVER, &nats).env(OPENWOP_PYTHON, &python);
        tests.env(SDKS, languages.join(","));
        if let Some(schemathesis) = &schemathesis {
            tests.env("DEEDBOX_LONG", "1").env(SCHEMATHESIS, schemathesis);
        }
        tests.current_dir(&workspace.root);
        tests
    };
    stages.run("test", || {
        let mut most = tests(&["--", "--test-threads", TEST_THREADS]);
        if options.filters.is_empty() {
            most.args(["--skip", NEIGHBOURS]);
            for tests in VERIFICATIONS.iter().filter(|_| !whole) {
                most.args(["--skip", tests]);
            }
        }
        shell::run(most.args(&options.filters))
    })?;
    if options.long && options.filters.is_empty() {
        // They compare times, so nothing else may be measured with them.
        let alone = ["--test", "it", "--", NEIGHBOURS, "--test-threads", "1"];
        stages.run("neighbours", || shell::run(&mut tests(&alone)))?;
    }
    fuzz_stage(settings, workspace, options, stages)
}

fn fuzz_stage(settings: &Settings, workspace: &Workspace, options: &Options, stages: &mut Stages) -> Result<()> {
    if options.no_fuzz || !fuzz::has_compiler(settings) {
        let why =
            if options.no_fuzz { "as asked for" } else { "libFuzzer needs a C++ compiler, and there is no `c++`" };
        stages.skip("fuzz", why);
        return Ok(());
    }
    stages.run("fuzz", || fuzz::short(settings, workspace))
}

fn deny_stage(settings: &Settings, workspace: &Workspace, options: &Options, stages: &mut Stages) -> Result<()> {
    if options.no_deny {
        stages.skip("deny", "as asked for");
        return Ok(());
    }
    let checks = if options.deny { Checks::All } else { Checks::Offline };
    stages.run("deny", || deny::check(settings, workspace, &deny::install(settings)?, checks))
}
