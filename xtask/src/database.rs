//! A private PostgreSQL for work on the schema: a temporary folder, a Unix socket, no network.
//!
//! It is gone, data and all, when the value is dropped. It must never touch a server or a folder
//! that it did not make itself.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::setup::Postgres;
use crate::shell;

const NAME: &str = "deedbox";
const POLLS: u32 = 200;
const POLL_EVERY: Duration = Duration::from_millis(50);

pub struct Database {
    server: Child,
    folder: TempDir,
    programs: PathBuf,
}

/// The user and group that the server runs as when this program runs as root, which it refuses.
struct Account {
    user: u32,
    group: u32,
}

impl Database {
    /// Makes a cluster and waits, at most ten seconds, until it answers.
    pub fn start(postgres: &Postgres) -> Result<Self> {
        // Ctrl-C reaches the programs that work on the database; their failure ends this one in order.
        signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::new(AtomicBool::new(false)))?;
        // The server trusts whoever reaches its socket.
        let private = fs::Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("deedbox-db-").permissions(private).tempdir()?;
        let account = Account::needed()?;
        if let Some(account) = &account {
            std::os::unix::fs::chown(folder.path(), Some(account.user), Some(account.group))?;
        }
        let initdb = ["--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "--username=postgres", "--pgdata"];
        shell::quiet(
            server_command(&postgres.programs.join("initdb"), account.as_ref(), folder.path())
                .args(initdb)
                .arg(folder.path().join("data")),
        )?;
        let server = spawn(&postgres.programs, account.as_ref(), folder.path())?;
        let mut database = Self { server, folder, programs: postgres.programs.clone() };
        database.wait_until_ready()?;
        shell::quiet(database.psql("postgres").args(["--command", &format!("create database {NAME}")]))?;
        Ok(database)
    }

    /// For `DATABASE_URL`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@localhost/{NAME}?host={}", self.folder.path().display())
    }

    /// Applies the files of the folder in the order of their names, each in one transaction.
    pub fn migrate(&self, folder: &Path) -> Result<usize> {
        let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        files.retain(|file| file.extension().is_some_and(|ending| ending == "sql"));
        files.sort();
        for file in &files {
            let mut psql = self.psql(NAME);
            if !fs::read_to_string(file)?.starts_with("-- no-transaction") {
                psql.arg("--single-transaction");
            }
            shell::quiet(psql.arg("--file").arg(file))?;
        }
        Ok(files.len())
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        for _ in 0..POLLS {
            if shell::quiet(self.psql("postgres").args(["--command", "select 1"])).is_ok() {
                return Ok(());
            }
            if self.server.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(POLL_EVERY);
        }
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        bail!("the private PostgreSQL did not start:\n{log}")
    }

    fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", "--username", "postgres"]);
        psql.args(["--dbname", database, "--host"]).arg(self.folder.path());
        psql
    }
}

impl Drop for Database {
    /// A fast shutdown, and after ten seconds a hard one.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.server), Signal::INT);
        for _ in 0..POLLS {
            if !matches!(self.server.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL_EVERY);
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Account {
    fn needed() -> Result<Option<Self>> {
        if !shell::is_root() {
            return Ok(None);
        }
        let name = ["postgres", "nobody"].into_iter().find(|name| id("-u", name).is_ok());
        let name = name.context("PostgreSQL refuses to run as root, and there is no user postgres or nobody")?;
        Ok(Some(Self { user: id("-u", name)?, group: id("-g", name)? }))
    }
}

fn id(kind: &str, name: &str) -> Result<u32> {
    Ok(shell::capture(Command::new("id").args([kind, name]))?.trim().parse()?)
}

fn spawn(programs: &Path, account: Option<&Account>, folder: &Path) -> Result<Child> {
    use std::os::unix::process::CommandExt;
    let log = File::create(folder.join("log"))?;
    let mut server = server_command(&programs.join("postgres"), account, folder);
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).args(["-c", "listen_addresses="]);
    // A group of its own, so that a Ctrl-C in the terminal does not reach it before its clients.
    server.process_group(0).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    server.spawn().with_context(|| format!("cannot start {}", programs.join("postgres").display()))
}

/// On Linux the program ends with this one, however this one ends.
fn server_command(program: &Path, account: Option<&Account>, folder: &Path) -> Command {
    if !cfg!(target_os = "linux") {
        let mut command = Command::new(program);
        command.current_dir(folder);
        return command;
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "INT"]).current_dir(folder);
    if let Some(Account { user, group }) = account {
        command.args([format!("--reuid={user}"), format!("--regid={group}"), "--clear-groups".into()]);
    }
    command.arg(program);
    command
}
