//! The places inside the data directory: `pgdata`, `socket`, `lock`, `postgres.log`, and `socket-path` when a unix socket needs a
//! shorter or plainer directory than this one. It must never follow or take over a socket directory that somebody else could have made.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::PORT;
use super::account::Account;
use super::error::Error;

/// The bytes of a unix socket's path, without its closing zero.
const SOCKET_PATH_MAX: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

const LOCK: &str = "lock";

/// The locked data directory, until it is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread forks just now shares the open file until its exec.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the data directory cannot be unlocked");
        }
    }
}

#[derive(Debug)]
pub(super) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Creates the data directory if it is missing, with a mode that keeps other users out.
    pub fn open(data_dir: &Path) -> Result<Self, Error> {
        let doing = || format!("creating {}", data_dir.display());
        if !data_dir.exists() {
            let parent = data_dir.parent().filter(|parent| !parent.as_os_str().is_empty());
            parent.map_or(Ok(()), std::fs::create_dir_all).map_err(|error| Error::io(doing(), error))?;
            DirBuilder::new().mode(0o700).create(data_dir).map_err(|error| Error::io(doing(), error))?;
        }
        let root = data_dir.canonicalize().map_err(|error| Error::io(doing(), error))?;
        Ok(Self { root })
    }

    /// Locks the data directory; the lock's file holds our process id, for the words of the next one's error.
    pub fn lock(&self) -> Result<Lock, Error> {
        let path = self.root.join(LOCK);
        let doing = format!("locking {}", path.display());
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = opened.map_err(|error| Error::io(&doing, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                let known = file.read_to_string(&mut pid).is_ok_and(|bytes| bytes > 0);
                let pid = if known { format!(" (process {})", pid.trim()) } else { String::new() };
                return Err(Error::InUse { dir: self.root.clone(), pid });
            }
            Err(TryLockError::Error(error)) => return Err(Error::io(&doing, error)),
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(|error| Error::io(&doing, error))?;
        Ok(Lock(file))
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether nothing but our lock is in the data directory, and root owns it.
    pub fn is_fresh_of_root(&self) -> bool {
        let owned_by_root = self.root.metadata().is_ok_and(|data| data.uid() == 0);
        let nothing_else = self
            .root
            .read_dir()
            .is_ok_and(|mut files| files.all(|file| file.is_ok_and(|file| file.file_name() == LOCK)));
        owned_by_root && nothing_else
    }

    pub fn pgdata(&self) -> PathBuf {
        self.root.join("pgdata")
    }

    /// Where a data directory is made before it is moved to its name, whole.
    pub fn unfinished(&self) -> PathBuf {
        self.root.join("pgdata.unfinished")
    }

    pub fn log(&self) -> PathBuf {
        self.root.join("postgres.log")
    }

    /// The data directory and the major version it was made by; none before it was made.
    pub fn version(&self) -> Result<Option<(PathBuf, u32)>, Error> {
        let pgdata = self.pgdata();
        if !pgdata.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(pgdata.join("PG_VERSION")).unwrap_or_default();
        let major = text.trim().split('.').next().and_then(|major| major.parse().ok());
        major.map(|major| Some((pgdata.clone(), major))).ok_or(Error::NotData { dir: pgdata })
    }

    /// The directory of the socket, made if missing and emptied of what a dead server left in it.
    pub fn socket_dir(&self, account: &Account) -> Result<PathBuf, Error> {
        let inside = self.root.join("socket");
        let dir = if fits(&inside) { inside } else { self.short_socket_dir(account)? };
        make_private(&dir, account)?;
        for name in [format!(".s.PGSQL.{PORT}"), format!(".s.PGSQL.{PORT}.lock")] {
            match std::fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("removing a dead server's socket", error));
                }
                _ => {}
            }
        }
        Ok(dir)
    }

    /// A directory under the temporary one, remembered; a new one when the remembered one is gone or no longer ours alone.
    fn short_socket_dir(&self, account: &Account) -> Result<PathBuf, Error> {
        let note = self.root.join("socket-path");
        if let Ok(text) = std::fs::read_to_string(&note) {
            let remembered = PathBuf::from(text);
            if fits(&remembered) && is_private(&remembered, account) {
                return Ok(remembered);
            }
        }
        let name = format!("deedbox-{}", &uuid::Uuid::new_v4().simple().to_string()[..16]);
        let temporary = Some(std::env::temp_dir().join(&name)).filter(|dir| fits(dir));
        let dir = temporary.unwrap_or_else(|| Path::new("/tmp").join(&name));
        std::fs::write(&note, dir.as_os_str().as_bytes())
            .map_err(|error| Error::io("remembering the socket's directory", error))?;
        Ok(dir)
    }
}

/// Whether the server with this process id says that it accepts connections: PostgreSQL writes it into the eighth line. One that
/// follows another server accepts them, too.
pub(super) fn is_ready(pgdata: &Path, pid: u32) -> bool {
    let text = std::fs::read_to_string(pgdata.join("postmaster.pid")).unwrap_or_default();
    let mut lines = text.lines();
    lines.next() == Some(pid.to_string().as_str())
        && lines.nth(6).is_some_and(|status| ["ready", "standby"].contains(&status.trim()))
}

/// Makes a directory that only the server's user can enter; one that exists must be such a directory already.
fn make_private(dir: &Path, account: &Account) -> Result<(), Error> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => account.own(dir),
        Err(error) if error.kind() == ErrorKind::AlreadyExists && is_private(dir, account) => Ok(()),
        Err(error) => Err(Error::io(format!("making {} for the socket", dir.display()), error)),
    }
}

fn is_private(dir: &Path, account: &Account) -> bool {
    dir.symlink_metadata().is_ok_and(|data| data.is_dir() && data.uid() == account.uid() && data.mode() & 0o077 == 0)
}

/// Short enough for a socket, and free of what PostgreSQL's server and clients take for a list of directories.
fn fits(dir: &Path) -> bool {
    let plain = dir.to_str().is_some_and(|path| !path.contains([',', '"']));
    plain && dir.join(format!(".s.PGSQL.{PORT}")).as_os_str().len() <= SOCKET_PATH_MAX
}
