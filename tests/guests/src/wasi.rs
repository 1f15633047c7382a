//! What the standard library gets from WASI: output, randomness, and the world that must be empty.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::time::Duration;

use deedbox_guest::prelude::*;

const PATHS: [&str; 6] = ["/", ".", "/etc/passwd", "/proc/self/environ", "/tmp", "Cargo.toml"];

#[data]
struct Print {
    /// Printed first, as it is.
    #[serde(default)]
    raw: Vec<u8>,
    #[serde(default)]
    lines: u32,
    /// Length of each line without its end.
    #[serde(default)]
    bytes: usize,
    #[serde(default)]
    stderr: bool,
}

/// Prints bytes that may be no text, then lines of `x`, and returns how many could be written.
#[activity]
fn print(_ctx: &Context, input: Print) -> Result<u32, Failure> {
    write(&input.raw, input.stderr).map_err(|error| Failure::permanent("cannot-print", error.to_string()))?;
    let line = format!("{}\n", "x".repeat(input.bytes));
    let written = (0..input.lines).take_while(|_| write(line.as_bytes(), input.stderr).is_ok()).count();
    Ok(u32::try_from(written).unwrap_or(u32::MAX))
}

fn write(bytes: &[u8], stderr: bool) -> std::io::Result<()> {
    if stderr {
        return std::io::stderr().write_all(bytes);
    }
    let mut stdout = std::io::stdout();
    stdout.write_all(bytes)?;
    stdout.flush()
}

#[data]
struct Sleep {
    ms: u64,
}

/// Sleeps.
#[activity]
fn sleep(_ctx: &Context, input: Sleep) -> Result<(), Failure> {
    std::thread::sleep(Duration::from_millis(input.ms));
    Ok(())
}

#[data]
struct Random {
    uuid: String,
    second_uuid: String,
    /// From the seed of the standard library's hash maps, 16 hexadecimal digits.
    hash: String,
}

/// Returns random values as an activity and its libraries would make them.
#[activity]
fn random(_ctx: &Context, _input: Value) -> Result<Random, Failure> {
    Ok(Random {
        uuid: uuid::Uuid::new_v4().to_string(),
        second_uuid: uuid::Uuid::new_v4().to_string(),
        hash: format!("{:016x}", RandomState::new().hash_one(42)),
    })
}

#[data]
struct Surroundings {
    env: BTreeMap<String, String>,
    args: Vec<String>,
    stdin: String,
    /// For each path the reason why it could not be opened, or `opened`.
    files: BTreeMap<String, String>,
    /// The same for a file to be written.
    written: String,
}

/// Returns everything of the machine that it can see.
#[activity]
#[allow(clippy::disallowed_methods, reason = "it shows what the environment holds")]
fn env_dump(_ctx: &Context, _input: Value) -> Result<Surroundings, Failure> {
    let mut stdin = String::new();
    let read = std::io::stdin().read_to_string(&mut stdin);
    Ok(Surroundings {
        env: std::env::vars().collect(),
        args: std::env::args().collect(),
        stdin: read.map_or_else(|error| format!("error: {error}"), |_| stdin),
        files: PATHS.iter().map(|path| ((*path).to_owned(), open(path))).collect(),
        written: result(std::fs::write("written-by-a-guest", "x")),
    })
}

fn open(path: &str) -> String {
    match std::fs::read_dir(path) {
        Ok(_) => "opened".to_owned(),
        Err(_) => result(std::fs::File::open(path)),
    }
}

fn result<T>(result: std::io::Result<T>) -> String {
    result.map_or_else(|error| error.to_string(), |_| "opened".to_owned())
}
