//! What the operating system says of processes, by `ps`, which Linux and macOS both have.

use std::process::Command;

/// The state of a process, such as `T` for stopped and `Z` for ended and not reaped.
pub fn state(id: u32) -> Option<char> {
    ps(&["-o", "state=", "-p", &id.to_string()]).trim().chars().next()
}

/// Ids and command lines of all processes.
pub fn all() -> Vec<String> {
    ps(&["-axww", "-o", "pid=,command="]).lines().map(|line| line.trim().to_owned()).collect()
}

fn ps(arguments: &[&str]) -> String {
    let output = Command::new("ps").args(arguments).output().unwrap_or_else(|e| panic!("`ps` must be installed: {e}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
