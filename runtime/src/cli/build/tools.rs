//! The programs of other toolchains: where they are looked for, and how they are run. Nothing here knows a language.
//!
//! What a program prints goes to standard error, so that the output of `deedbox build --json` stays one JSON text.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::super::settings;
use super::{Failure, Project};

/// Where a project keeps the programs that were installed for it alone.
const OWN: [&str; 3] = [".venv/bin", "venv/bin", "node_modules/.bin"];

/// The first program of that name: in the folders of `DEEDBOX_TOOLS`, in those of the project, on the PATH.
pub fn find(project: &Project, name: &str) -> Option<PathBuf> {
    let own = OWN.map(|below| project.dir.join(below));
    let folders = settings::folders("DEEDBOX_TOOLS").into_iter().chain(own).chain(settings::folders("PATH"));
    find_in(folders, name)
}

/// The same for a program that must be there. `install`: the one command that installs it.
pub fn need(project: &Project, name: &str, install: &str) -> Result<PathBuf, Failure> {
    find(project, name).ok_or_else(|| missing(&format!("`{name}`"), install))
}

pub fn missing(what: &str, install: &str) -> Failure {
    Failure::Missing { what: what.to_owned(), install: install.to_owned() }
}

/// Runs a program to its end, in sight of the user.
pub fn run(command: &mut Command) -> Result<(), Failure> {
    let line = line(command);
    let status = command.stdin(Stdio::null()).stdout(std::io::stderr()).status();
    let status = status.map_err(|error| Failure::Other(format!("`{line}` cannot be started: {error}")))?;
    if status.success() { Ok(()) } else { Err(Failure::Ended { command: line, how: status.to_string() }) }
}

/// What a program writes to its standard output; its standard error goes to the user.
pub fn capture(command: &mut Command) -> Result<String, Failure> {
    let line = line(command);
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| Failure::Other(format!("`{line}` cannot be started: {error}")))?;
    if !output.status.success() {
        return Err(Failure::Ended { command: line, how: output.status.to_string() });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

pub fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|source| Failure::File { path: path.to_owned(), source })
}

pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|source| Failure::File { path: path.to_owned(), source })
}

fn find_in(folders: impl IntoIterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    folders.into_iter().map(|folder| folder.join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|entry| entry.is_file() && entry.permissions().mode() & 0o111 != 0)
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_first_folder_that_has_the_program_counts_and_a_plain_file_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let folders = ["a", "b", "c"].map(|name| dir.path().join(name));
        for folder in &folders {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("tool"), "").unwrap();
        }
        assert_eq!(find_in(folders.clone(), "tool"), None);
        for folder in &folders[1..] {
            std::fs::set_permissions(folder.join("tool"), std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(find_in(folders.clone(), "tool"), Some(folders[1].join("tool")));
    }

    #[test]
    fn a_tool_of_the_project_comes_before_one_of_the_machine() {
        let dir = tempfile::tempdir().unwrap();
        let project = Project { dir: dir.path().to_owned(), out: dir.path().join("a.wasm") };
        let own = dir.path().join("node_modules/.bin/sh");
        std::fs::create_dir_all(own.parent().unwrap()).unwrap();
        std::fs::write(&own, "").unwrap();
        std::fs::set_permissions(&own, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(find(&project, "sh"), Some(own));
        let error = need(&project, "no-such-tool", "npm install no-such-tool").unwrap_err().to_string();
        assert!(error.contains("`no-such-tool` is missing") && error.ends_with("npm install no-such-tool"), "{error}");
    }

    #[test]
    fn a_tool_that_fails_is_named_with_its_arguments() {
        let error = run(Command::new("sh").args(["-c", "exit 3"])).unwrap_err().to_string();
        assert!(error.contains("`sh -c exit 3` ended with") && error.contains('3'), "{error}");
        assert_eq!(capture(Command::new("sh").args(["-c", "echo said"])).unwrap(), "said\n");
    }
}
