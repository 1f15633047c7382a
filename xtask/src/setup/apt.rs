//! The few questions to apt, and downloads into a private folder.
//!
//! Nothing here installs a package. Everything but `update` works for an ordinary user.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;

pub struct Apt {
    /// Where packages are downloaded to.
    folder: PathBuf,
}

impl Apt {
    pub fn new(folder: PathBuf) -> Result<Self> {
        fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// The version that would be installed, when it is at least `minimum`.
    pub fn candidate(&self, package: &str, minimum: &str) -> Result<Option<String>> {
        let policy = shell::capture(plain("apt-cache").args(["policy", package]))?;
        let version = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate:"));
        let version = version.map(str::trim).filter(|version| *version != "(none)");
        Ok(version.filter(|version| at_least(version, minimum)).map(str::to_owned))
    }

    /// Reads the package lists again, which only root may do.
    pub fn update(&self) -> Result<()> {
        if !shell::is_root() {
            bail!("apt's package lists are missing or old: let root run `apt-get update`, then try again");
        }
        shell::run(plain("apt-get").args(["update", "-qq"]))
    }

    /// The one dependency of a package (`name=version`) whose name is the prefix and a number.
    pub fn dependency(&self, package: &str, prefix: &str) -> Result<String> {
        let text = shell::capture(plain("apt-cache").args(["depends", package]))?;
        text.lines()
            .filter_map(|line| line.trim().strip_prefix("Depends:"))
            .map(str::trim)
            .find(|name| name.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())))
            .map(str::to_owned)
            .with_context(|| format!("{package} depends on no {prefix}<number>: Debian changed its packages"))
    }

    /// The packages that an installation of these would bring to this machine, by name.
    pub fn missing_for(&self, packages: &[&str]) -> Result<Vec<String>> {
        let text = shell::capture(
            plain("apt-get")
                .args(["install", "--print-uris", "-qq", "--no-install-recommends", "-o", "Debug::NoLocking=1"])
                .args(packages),
        )?;
        Ok(text.lines().filter_map(package_of_uri_line).collect())
    }

    pub fn download(&self, packages: &[String]) -> Result<Vec<PathBuf>> {
        let mut command = plain("apt-get");
        command.args(["download", "-qq"]).args(packages).current_dir(&self.folder);
        if shell::is_root() {
            // Otherwise apt drops to a user that cannot write to this folder, and warns.
            command.args(["-o", "APT::Sandbox::User=root"]);
        }
        shell::run(&mut command)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            files.push(entry?.path());
        }
        if files.len() != packages.len() {
            bail!("apt-get downloaded {} of {} packages", files.len(), packages.len());
        }
        Ok(files)
    }
}

/// Answers are parsed, so they must not be translated.
fn plain(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn at_least(version: &str, minimum: &str) -> bool {
    let mut dpkg = plain("dpkg");
    dpkg.args(["--compare-versions", version, "ge", minimum]).status().is_ok_and(|status| status.success())
}

/// `'http://…' name_version_architecture.deb 123 SHA256:…`
fn package_of_uri_line(line: &str) -> Option<String> {
    let file = line.split_whitespace().nth(1)?;
    let (name, _) = file.split_once('_')?;
    file.ends_with(".deb").then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_named_before_the_first_underscore_of_its_file() {
        let line =
            "'http://debian.example/pool/libz3-4_4.8.12-3.1_amd64.deb' libz3-4_4.8.12-3.1_amd64.deb 7180 MD5Sum:0";
        assert_eq!(package_of_uri_line(line).as_deref(), Some("libz3-4"));
        assert_eq!(package_of_uri_line("Reading package lists..."), None);
    }
}
