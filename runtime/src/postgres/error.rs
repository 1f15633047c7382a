//! What can keep the server from running, in words that say what to do next. It must never hold back what PostgreSQL itself said.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no PostgreSQL 15 or newer was found{found}. Install one (Debian, Ubuntu: `apt install postgresql`; Fedora, RHEL: `dnf install \
         postgresql-server`; Arch: `pacman -S postgresql`; Alpine: `apk add postgresql17`; macOS: `brew install postgresql@17`), or \
         name the directory of its programs, or give the URL of a running server in DATABASE_URL"
    )]
    NotFound { found: String },
    #[error("{} has no PostgreSQL 15 or newer with initdb and pg_ctl: {why}", dir.display())]
    BadBinDir { dir: PathBuf, why: String },
    #[error(
        "the data in {} was made by PostgreSQL {data}, but only version {found} was found: install PostgreSQL {data}, or use \
         another data directory, or move the data over with pg_dump", dir.display()
    )]
    Version { dir: PathBuf, data: u32, found: String },
    #[error("{} is in use by another deedbox{pid}: stop it, or pass another --data-dir", dir.display())]
    InUse { dir: PathBuf, pid: String },
    #[error("{} is not empty and is no PostgreSQL data directory: move it away, or pass another --data-dir", dir.display())]
    NotData { dir: PathBuf },
    #[error("{} belongs to the user with id {owner}: run deedbox as that user, or pass another --data-dir", dir.display())]
    Owner { dir: PathBuf, owner: u32 },
    #[error(
        "PostgreSQL refuses to run as root and setpriv cannot start it as another user ({why}): install util-linux, or run deedbox \
         as an ordinary user, or give the URL of a running server in DATABASE_URL"
    )]
    NoSetpriv { why: String },
    #[error(
        "PostgreSQL refuses to run as root and there is neither a user `postgres` nor a user `nobody`: create one, or run deedbox \
         as an ordinary user"
    )]
    NoUser,
    #[error(
        "PostgreSQL refuses to run as root, so it runs as `{user}`, which cannot enter {}: allow it (`chmod o+x`), or pass a \
         --data-dir that {user} can reach, for example under /var/lib", dir.display()
    )]
    NotReachable { dir: PathBuf, user: String },
    #[error("PostgreSQL runs as `{user}`, which cannot execute {}: install it where every user can", program.display())]
    NotExecutable { program: PathBuf, user: String },
    #[error("the disk that holds {} is full: free some space, or pass a --data-dir on another disk\n{log}", dir.display())]
    DiskFull { dir: PathBuf, log: String },
    #[error("initdb failed; it said:\n{output}")]
    Initdb { output: String },
    #[error("PostgreSQL ended while starting; its log ends with:\n{log}")]
    Exited { log: String },
    #[error("PostgreSQL was not ready within {seconds} s and was stopped; its log ends with:\n{log}")]
    NotReady { seconds: u64, log: String },
    #[error(
        "a PostgreSQL server that was left behind (process {pid}) does not stop: stop it, then start again\n{output}"
    )]
    LeftBehind { pid: u32, output: String },
    #[error("{doing} failed: {source}")]
    Io { doing: String, source: std::io::Error },
}

impl Error {
    pub(super) fn io(doing: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::Io { doing: doing.into(), source: source.into() }
    }
}
