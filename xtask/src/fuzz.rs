//! Fuzzing by libFuzzer: builds the targets of `fuzz/` beside the ordinary build, and runs each on its stored inputs.
//!
//! Only the runtime and the targets are compiled anew, with the instructions that libFuzzer follows; what they depend on is
//! shared with the tests. An input that breaks a law is left in `target/fuzz/failed`, and is an error that names it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;

use crate::settings::Settings;
use crate::shell;
use crate::workspace::Workspace;

/// The package of the targets.
const PACKAGE: &str = "deedbox-fuzz";
/// What every test run spends on one target, in seconds.
pub const SHORT: u64 = 3;

/// Stands before rustc for the members of the workspace. The flags are those of cargo-fuzz but for the sanitizer, which the
/// stable compiler does not have. Build scripts, macros and programs are not fuzzed, and cannot be linked with them.
const WRAPPER: &str = r#"#!/bin/sh
case " $* " in
*" --crate-name deedbox "*" --crate-type lib "* | *" fuzz/fuzz_targets/"*)
  exec "$@" --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-simplifycfg-branch-fold-threshold=0
  ;;
esac
exec "$@"
"#;

#[derive(Args)]
pub struct Options {
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The targets; all if none is named.
    targets: Vec<String>,
}

/// Where a run puts the inputs that it finds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// Nowhere: each run begins with the stored inputs alone.
    Nothing,
    /// In `target/fuzz/corpus`, where the next run goes on.
    Found,
}

/// Whether the targets can be built here: libFuzzer is C++.
pub fn has_compiler(settings: &Settings) -> bool {
    shell::find("c++", &settings.search_path).is_some()
}

/// Builds and runs the named targets by hand.
pub fn by_hand(settings: &Settings, workspace: &Workspace, options: &Options) -> Result<()> {
    if !has_compiler(settings) {
        bail!("there is no C++ compiler `c++`, which libFuzzer needs: install g++ or clang");
    }
    let all = workspace.programs(PACKAGE);
    if let Some(unknown) = options.targets.iter().find(|name| !all.contains(name)) {
        bail!("there is no target `{unknown}`; there are {}", all.join(", "));
    }
    let named = if options.targets.is_empty() { &all } else { &options.targets };
    build(settings, workspace)?;
    run(workspace, named, options.seconds, Keep::Found)
}

/// Builds and runs all targets, each for a short time.
pub fn short(settings: &Settings, workspace: &Workspace) -> Result<()> {
    build(settings, workspace)?;
    run(workspace, &workspace.programs(PACKAGE), SHORT, Keep::Nothing)
}

fn build(settings: &Settings, workspace: &Workspace) -> Result<()> {
    let folder = workspace.target.join("fuzz");
    fs::create_dir_all(&folder)?;
    let mut cargo = settings.cargo();
    // With the features of the whole workspace, as the tests are built, so that nothing is built twice.
    cargo.args(["build", "--workspace", "--features", &format!("{PACKAGE}/fuzz")]);
    for name in workspace.programs(PACKAGE) {
        cargo.args(["--bin", &name]);
    }
    shell::run(cargo.env("RUSTC_WORKSPACE_WRAPPER", wrapper(&folder)?).current_dir(&workspace.root))
}

/// Writes the wrapper under a name of its content: cargo builds anew when the name is another one, not when the file is.
fn wrapper(folder: &Path) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    WRAPPER.hash(&mut hasher);
    let path = folder.join(format!("rustc-{:016x}", hasher.finish()));
    if !path.exists() {
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        std::io::Write::write_all(&mut file, WRAPPER.as_bytes())?;
        file.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
        // Closed first: a file that is open for writing cannot be run.
        file.into_temp_path().persist(&path)?;
    }
    Ok(path)
}

/// Runs the targets, as many at once as there are processors. All of them run, whether or not one fails.
fn run(workspace: &Workspace, names: &[String], seconds: u64, keep: Keep) -> Result<()> {
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..at_once.min(names.len()) {
            scope.spawn(|| {
                while let Some(name) = names.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match run_one(workspace, name, seconds, keep) {
                        Ok(said) => println!("fuzz: {name:<15} {said}"),
                        Err(error) => failed.lock().unwrap_or_else(|e| e.into_inner()).push((name, error)),
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(|e| e.into_inner());
    for (name, error) in &failed {
        println!("fuzz: {name:<15} FAILED: {error:#}");
    }
    let names: Vec<&str> = failed.iter().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { Ok(()) } else { Err(anyhow!("targets that failed: {}", names.join(", "))) }
}

fn run_one(workspace: &Workspace, name: &str, seconds: u64, keep: Keep) -> Result<Said> {
    let folder = workspace.target.join("fuzz");
    let [failed, logs] = ["failed", "log"].map(|kind| folder.join(kind));
    let passing = tempfile::tempdir()?;
    let found = if keep == Keep::Found { folder.join("corpus").join(name) } else { passing.path().to_owned() };
    [&failed, &logs, &found].into_iter().try_for_each(fs::create_dir_all)?;
    let log = logs.join(format!("{name}.txt"));
    let mut target = Command::new(workspace.program(name));
    target.arg(format!("-artifact_prefix={}/{name}-", failed.display()));
    target.arg(format!("-max_total_time={seconds}"));
    // One input may take so many seconds and so much memory; each is small.
    target.args(["-timeout=10", "-rss_limit_mb=2048", "-max_len=4096", "-print_final_stats=1"]);
    // The first folder is where it puts what it finds.
    target.arg(&found).arg(workspace.root.join("fuzz/corpus").join(name));
    let output = fs::File::create(&log)?;
    let status = target.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output).status();
    let status = status.with_context(|| format!("cannot start the target {name}"))?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    if !status.success() {
        let input = text.lines().rev().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path);
        let input = input.unwrap_or("(none: a stored one)");
        let tail: Vec<&str> = text.lines().filter(|line| is_of_the_failure(line)).take(8).collect();
        bail!(
            "it ended with {status}.\n{}\nThe input: {input}\nAgain: {} INPUT\nAll it said: {}",
            tail.join("\n"),
            workspace.program(name).display(),
            log.display()
        );
    }
    Ok(Said::read(&text))
}

fn is_of_the_failure(line: &str) -> bool {
    let begins = ["thread ", "assertion ", "  left:", " right:", "==", "SUMMARY:"];
    begins.iter().any(|start| line.starts_with(start)) || line.contains("panicked at") || line.contains(" law")
}

/// What libFuzzer says at its end.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    runs: u64,
    per_second: u64,
    /// Edges of the program that were reached.
    covered: u64,
    /// Inputs that reach something of their own.
    inputs: u64,
    peak_mb: u64,
}

impl Said {
    fn read(text: &str) -> Self {
        let stat = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
            line.and_then(|rest| rest.trim_start_matches(':').trim().parse().ok()).unwrap_or_default()
        };
        let last = text.lines().rev().find(|line| line.contains(" cov: ")).unwrap_or_default();
        let word = |name: &str| {
            let rest = last.split_once(name).map(|(_, rest)| rest.trim_start()).unwrap_or_default();
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..digits].parse().unwrap_or_default()
        };
        Self {
            runs: stat("number_of_executed_units"),
            per_second: stat("average_exec_per_sec"),
            covered: word(" cov:"),
            inputs: word(" corp:"),
            peak_mb: stat("peak_rss_mb"),
        }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { runs, per_second, covered, inputs, peak_mb } = self;
        write!(f, "{runs:>9} runs, {per_second:>6} per s, {covered:>5} edges, {inputs:>4} inputs, {peak_mb:>4} MB")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_fuzzer_are_read() {
        let text = "INFO: seed\n#2 INITED cov: 5 ft: 6 corp: 1/1b exec/s: 0 rss: 29Mb\n\
                    #9 DONE   cov: 37 ft: 60 corp: 12/40b lim: 4 exec/s: 3 rss: 30Mb\nDone 9 runs in 3 second(s)\n\
                    stat::number_of_executed_units: 9\nstat::average_exec_per_sec:     3\nstat::peak_rss_mb:              31\n";
        let said = Said { runs: 9, per_second: 3, covered: 37, inputs: 12, peak_mb: 31 };
        assert_eq!(Said::read(text), said);
        assert_eq!(Said::read(""), Said::default());
    }

    #[test]
    fn the_wrapper_has_one_name_and_can_be_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = wrapper(folder.path()).unwrap();
        assert_eq!(wrapper(folder.path()).unwrap(), path);
        let said = |arguments: &[&str]| shell::capture(Command::new(&path).arg("echo").args(arguments)).unwrap();
        assert!(
            said(&["--crate-name", "deedbox", "--edition=2024", "--crate-type", "lib", "x"]).contains("--cfg fuzzing")
        );
        assert!(said(&["--crate-name", "mask", "fuzz/fuzz_targets/mask.rs"]).contains("sancov-module"));
        for other in [
            &["--crate-name", "deedbox", "--edition=2024", "--crate-type", "bin"][..],
            &["--crate-name", "deedbox_guest"],
            &["-vV"],
        ] {
            assert!(!said(other).contains("fuzzing"), "{other:?}");
        }
    }
}
