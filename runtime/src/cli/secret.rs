//! `deedbox secret`: puts, lists and removes credentials. A value is read from standard input or a file, never from an argument
//! that others on the machine could see, and is never shown.

use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::client::Client;
use super::failure::Failure;
use super::output::{Output, items, text, time};
use super::page::{Page, Unasked};
use super::settings::{self, Remote};
use super::table::Table;

/// The exit code of a process that was interrupted.
const INTERRUPTED: i32 = 130;

#[derive(Debug, Args)]
pub(super) struct Secret {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Put a secret, replacing an older value. The value is asked for, or read from standard input.
    Set {
        name: String,
        /// Read the value from this file.
        #[arg(long, value_name = "FILE")]
        from_file: Option<PathBuf>,
    },
    /// List the names; values are never shown.
    List(Page),
    /// Remove a secret.
    Rm { name: String },
}

impl Secret {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let client = Client::tenant(&self.remote)?;
        match self.command {
            Command::Set { name, from_file } => {
                let value = read_value(&name, from_file).await?;
                client.put(&["v1", "secrets", &name], &json!({ "value": value.as_str() })).await?;
                output.show(&json!({ "name": name }), |_| format!("secret {name} is set"))
            }
            Command::List(page) => page.show(&client, output, &["v1", "secrets"], &[], Unasked::All, table).await,
            Command::Rm { name } => {
                client.delete(&["v1", "secrets", &name]).await?;
                output.show(&json!({ "name": name }), |_| format!("secret {name} is removed"))
            }
        }
    }
}

fn table(secrets: &Value) -> String {
    let mut table = Table::new(&["name", "updated"]);
    for secret in items(secrets) {
        table.row([text(secret, "/name"), time(secret, "/updated_at")]);
    }
    table.render("no secrets: put one with `deedbox secret set NAME`")
}

/// The value without the line end that an editor or `echo` adds.
async fn read_value(name: &str, file: Option<PathBuf>) -> anyhow::Result<Zeroizing<String>> {
    let mut bytes = Zeroizing::new(match file {
        Some(file) => settings::read(&file).await?,
        None if io::stdin().is_terminal() => ask(name).await?,
        None => {
            let mut bytes = Vec::new();
            io::stdin().read_to_end(&mut bytes)?;
            bytes
        }
    });
    for end in [b'\n', b'\r'] {
        if bytes.last() == Some(&end) {
            bytes.pop();
        }
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| Failure::Usage("the value is not UTF-8 text".to_owned()))?;
    if text.is_empty() {
        return Err(Failure::Usage("the value is empty".to_owned()).into());
    }
    Ok(Zeroizing::new(text.to_owned()))
}

/// Asks at the terminal, which does not show what is typed.
async fn ask(name: &str) -> anyhow::Result<Vec<u8>> {
    write!(io::stderr(), "value of {name} (not shown): ")?;
    let quiet = Quiet::start().context("the terminal cannot be kept from showing the value")?;
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line.into_bytes())
    });
    let line = tokio::select! {
        line = line => line??,
        _ = tokio::signal::ctrl_c() => {
            drop(quiet);
            std::process::exit(INTERRUPTED);
        }
    };
    drop(quiet);
    writeln!(io::stderr())?;
    Ok(line)
}

/// Keeps the terminal from showing what is typed, until it is dropped.
struct Quiet(Termios);

impl Quiet {
    fn start() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_line_end_is_no_part_of_a_value() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("value");
        for (written, value) in
            [("sk_1\n", Some("sk_1")), ("sk_1\r\n", Some("sk_1")), ("a\n\n", Some("a\n")), ("\n", None)]
        {
            std::fs::write(&file, written).unwrap();
            let read = read_value("stripe", Some(file.clone())).await;
            assert_eq!(read.ok().as_deref().map(String::as_str), value, "{written:?}");
        }
    }
}
