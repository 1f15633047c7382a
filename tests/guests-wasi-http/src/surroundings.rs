//! Everything that WASI lets a program see of where it runs: for the tests that there is nothing to be seen.

use std::collections::BTreeMap;

use deedbox_guest::prelude::*;
use wasip2::cli::{environment, stdin, terminal_stderr, terminal_stdin, terminal_stdout};
use wasip2::clocks::{monotonic_clock, wall_clock};
use wasip2::filesystem::preopens;
use wasip2::random::{insecure, insecure_seed, random as secure};

#[data]
struct Look {
    /// Files and directories of the machine to be opened.
    paths: Vec<String>,
}

#[data]
struct Surroundings {
    env: Vec<(String, String)>,
    args: Vec<String>,
    cwd: Option<String>,
    /// What the standard library makes of these.
    std_env: usize,
    std_args: Vec<String>,
    stdin: String,
    /// Of stdin, stdout and stderr.
    terminals: [bool; 3],
    preopens: Vec<String>,
    /// What each path holds, or why it cannot be opened.
    paths: BTreeMap<String, Result<String, String>>,
}

/// Returns everything that it can find out.
#[activity]
#[allow(clippy::disallowed_methods, reason = "it shows what the environment holds")]
fn look_around(_ctx: &Context, input: Look) -> Result<Surroundings, Failure> {
    Ok(Surroundings {
        env: environment::get_environment(),
        args: environment::get_arguments(),
        cwd: environment::initial_cwd(),
        std_env: std::env::vars_os().count(),
        std_args: std::env::args().collect(),
        stdin: read_stdin(),
        terminals: [
            terminal_stdin::get_terminal_stdin().is_some(),
            terminal_stdout::get_terminal_stdout().is_some(),
            terminal_stderr::get_terminal_stderr().is_some(),
        ],
        preopens: preopens::get_directories().into_iter().map(|(_, name)| name).collect(),
        paths: input.paths.into_iter().map(|path| (path.clone(), opened(&path))).collect(),
    })
}

fn read_stdin() -> String {
    let stream = stdin::get_stdin();
    let mut all = Vec::new();
    // It ends with an error, which is how a stream says that it is over.
    while let Ok(part) = stream.blocking_read(4_096) {
        all.extend(part);
    }
    String::from_utf8_lossy(&all).into_owned()
}

fn opened(path: &str) -> Result<String, String> {
    if std::fs::read_dir(path).is_ok() {
        return Ok("a directory".to_owned());
    }
    std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(|error| error.to_string())
}

#[data]
struct Watch {
    /// How many different readings to take of each clock.
    readings: usize,
    sleep_ns: u64,
}

/// All in nanoseconds.
#[data]
struct Clocks {
    monotonic_resolution: u64,
    wall_resolution: u64,
    monotonic: Vec<u64>,
    wall: Vec<u64>,
    /// What the monotonic clock says of a sleep for a duration, and of one until an instant.
    slept: u64,
    slept_until: u64,
}

/// Reads the clocks until they have moved so often, and sleeps.
#[activity]
fn watch(_ctx: &Context, input: Watch) -> Result<Clocks, Failure> {
    let nanos = |time: wall_clock::Datetime| time.seconds * 1_000_000_000 + u64::from(time.nanoseconds);
    let began = monotonic_clock::now();
    monotonic_clock::subscribe_duration(input.sleep_ns).block();
    let between = monotonic_clock::now();
    monotonic_clock::subscribe_instant(between + input.sleep_ns).block();
    let slept_until = monotonic_clock::now() - between;
    Ok(Clocks {
        monotonic_resolution: monotonic_clock::resolution(),
        wall_resolution: nanos(wall_clock::resolution()),
        monotonic: different(input.readings, monotonic_clock::now),
        wall: different(input.readings, || nanos(wall_clock::now())),
        slept: between - began,
        slept_until,
    })
}

fn different(count: usize, read: impl Fn() -> u64) -> Vec<u64> {
    let mut readings = vec![read()];
    while readings.len() < count {
        let reading = read();
        if readings.last() != Some(&reading) {
            readings.push(reading);
        }
    }
    readings
}

#[data]
struct Drawn {
    secure: Vec<u64>,
    insecure: Vec<u64>,
    seed: (u64, u64),
}

/// Returns numbers of every source of chance that there is.
#[activity]
fn draw(_ctx: &Context, _input: Value) -> Result<Drawn, Failure> {
    Ok(Drawn {
        secure: (0..4).map(|_| secure::get_random_u64()).collect(),
        insecure: (0..4).map(|_| insecure::get_insecure_random_u64()).collect(),
        seed: insecure_seed::insecure_seed(),
    })
}

#[data]
struct Leave {
    status: i32,
}

/// Leaves as a program leaves, instead of returning.
#[activity]
fn leave(_ctx: &Context, input: Leave) -> Result<(), Failure> {
    std::process::exit(input.status)
}
