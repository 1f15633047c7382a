//! A private PostgreSQL server for `deedbox up` and the tests: found on the machine, made once, reached only through a unix socket
//! in a directory that nobody else can enter, stopped with its parent. It must never turn fsync off, listen on a network, or touch a
//! server that is not the one of its data directory.
//!
//! On Linux the server runs under `setpriv`, so that it shuts down by itself when its parent is killed. macOS takes the same path
//! without `setpriv` and was not run by this project's tests: there, a server left behind is stopped by the next start.

mod account;
mod error;
mod find;
mod initialise;
mod launch;
mod layout;
mod leftover;
mod log;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use account::Account;
pub use error::Error;
use launch::Postmaster;
use layout::Layout;
use log::Log;

/// The superuser of every private server.
pub const USER: &str = "deedbox";

/// How long a server may take until it accepts connections.
const READY_WITHIN: Duration = Duration::from_secs(30);
const READY_POLL: Duration = Duration::from_millis(15);
/// Only names the socket's file: nothing listens on a network.
const PORT: &str = "5432";

/// Where the server lives.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Holds `pgdata`, `socket`, `lock` and `postgres.log`; created if missing, continued if not.
    pub data_dir: PathBuf,
    /// The directory of `postgres`, `initdb` and `pg_ctl`, in place of the search.
    pub bin_dir: Option<PathBuf>,
}

/// A running server. Dropping it begins a shutdown without waiting for it; `stop` waits.
#[derive(Debug)]
pub struct Server {
    socket_dir: PathBuf,
    bin_dir: PathBuf,
    postmaster: Postmaster,
}

impl Server {
    /// Starts the server of `settings.data_dir` and returns once it accepts connections. A server of that directory that was left
    /// behind is stopped first; the directory is locked for as long as the server runs.
    ///
    /// Every error says what to do next; after an error nothing runs.
    pub async fn start(settings: Settings) -> Result<Self, Error> {
        Self::start_within(settings, READY_WITHIN).await
    }

    /// A connection URL for `database` as the superuser: `postgres:///<database>?host=<socket directory>&port=5432&user=deedbox`.
    /// The database `postgres` always exists.
    pub fn url(&self, database: &str) -> String {
        let host = encoded(self.socket_dir.as_os_str().as_bytes());
        format!("postgres:///{}?host={host}&port={PORT}&user={USER}&sslmode=disable", encoded(database.as_bytes()))
    }

    /// The process id of the server.
    pub fn pid(&self) -> u32 {
        self.postmaster.pid()
    }

    /// The directory of the programs that the server was started from.
    pub fn bin_dir(&self) -> &Path {
        &self.bin_dir
    }

    /// Returns when the server's process has ended, for whatever reason.
    pub async fn ended(&self) {
        self.postmaster.ended().await;
    }

    /// Shuts the server down: fast for 20 seconds, then at once, then by force. Returns when the process has ended.
    pub async fn stop(self) {
        self.postmaster.stop().await;
    }

    async fn start_within(settings: Settings, limit: Duration) -> Result<Self, Error> {
        let prepared = tokio::task::spawn_blocking(move || prepare(&settings)).await;
        let Prepared { server, log, pgdata } = prepared.map_err(|error| Error::io("preparing the server", error))??;
        let begun = Instant::now();
        loop {
            if server.postmaster.has_ended() {
                return Err(log.explain(Error::Exited { log: log.tail() }));
            }
            if layout::is_ready(&pgdata, server.pid()) {
                tracing::info!(postgres.pid = server.pid(), "the private PostgreSQL server is ready");
                return Ok(server);
            }
            if begun.elapsed() > limit {
                let error = log.explain(Error::NotReady { seconds: limit.as_secs(), log: log.tail() });
                server.stop().await;
                return Err(error);
            }
            tokio::time::sleep(READY_POLL).await;
        }
    }
}

struct Prepared {
    server: Server,
    log: Log,
    pgdata: PathBuf,
}

/// Everything up to the launch; blocking.
fn prepare(settings: &Settings) -> Result<Prepared, Error> {
    let layout = Layout::open(&settings.data_dir)?;
    let lock = layout.lock()?;
    let account = Account::choose(&layout)?;
    let binaries = find::find(settings.bin_dir.as_deref(), layout.version()?)?;
    account.own_fresh_root(&layout)?;
    account.check_reach(&layout, &binaries)?;
    leftover::stop(&layout, &account, &binaries)?;
    initialise::run(&layout, &account, &binaries)?;
    let socket_dir = layout.socket_dir(&account)?;
    let (log, file) = Log::open(&layout)?;

    let mut command = account.command(&binaries.postgres(), &layout);
    serve_arguments(&mut command, &layout, &socket_dir);
    let errors = file.try_clone().map_err(|error| Error::io("opening the server's log", error))?;
    command.stdout(file).stderr(errors);
    let postmaster = Postmaster::launch(command, lock).map_err(|error| Error::io("starting postgres", error))?;
    let server = Server { socket_dir, bin_dir: binaries.dir().to_owned(), postmaster };
    Ok(Prepared { server, log, pgdata: layout.pgdata() })
}

fn serve_arguments(command: &mut Command, layout: &Layout, socket_dir: &Path) {
    // The setting is a list: quotes keep the spaces of a name.
    let mut quoted = OsString::from("\"");
    quoted.push(socket_dir);
    quoted.push("\"");
    command.arg("-D").arg(layout.pgdata()).arg("-k").arg(quoted).args(["-p", PORT]);
    command.args([
        "-c",
        "listen_addresses=",
        "-c",
        "fsync=on",
        // Many nodes of one machine share it, and each has a pool of its own.
        "-c",
        "max_connections=300",
        "-c",
        "logging_collector=off",
        "-c",
        "log_destination=stderr",
    ]);
}

fn encoded(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            text.push(char::from(*byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}
