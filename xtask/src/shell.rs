//! Running other programs.
//!
//! Every failure names the command line and its exit status, so that it can be repeated by hand.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Runs to the end with the terminal's input and output.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", line(command)))?;
    if !status.success() {
        bail!("`{}` ended with {status}", line(command));
    }
    Ok(())
}

/// Runs to the end without output; a failure carries what the program wrote.
pub fn quiet(command: &mut Command) -> Result<()> {
    capture(command).map(drop)
}

/// What the program writes to its standard output.
pub fn capture(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start `{}`", line(command)))?;
    let written = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}:\n{written}{complaint}", line(command), output.status);
    }
    Ok(written)
}

/// Replaces this program by another one, so that its signals and exit code are the user's.
/// Returns only when that fails.
pub fn become_program(command: &mut Command) -> anyhow::Error {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    anyhow::Error::new(error).context(format!("cannot start `{}`", line(command)))
}

/// The first program of that name in the folders.
pub fn find(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

pub fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|entry| entry.is_file() && entry.permissions().mode() & 0o111 != 0)
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
