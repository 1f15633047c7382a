//! Under which user, and with which parent-death signal, PostgreSQL's programs run. PostgreSQL refuses root, so root hands over to
//! `postgres` or `nobody` by way of `setpriv`. It must never change the owner of a directory with anything in it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::Error;
use super::find::{self, Binaries, on_path};
use super::layout::Layout;

/// Variables by which PostgreSQL's programs take settings that this module sets itself.
const VARIABLES: &[&str] = &["PGDATA", "PGHOST", "PGHOSTADDR", "PGOPTIONS", "PGPORT", "PGSERVICE", "PGUSER"];

#[derive(Debug)]
pub(super) struct Account {
    /// `setpriv` with its arguments; empty where the programs run as they are.
    prefix: Vec<String>,
    /// Set when another user than our own runs the server.
    other: Option<User>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct User {
    name: String,
    uid: u32,
    gid: u32,
}

impl Account {
    /// The user who runs the server of this layout: the owner of the data if there is any.
    pub fn choose(layout: &Layout) -> Result<Self, Error> {
        let me = rustix::process::geteuid().as_raw();
        let owner = layout.pgdata().metadata().ok().map(|data| (data.uid(), data.gid()));
        if me == 0 {
            return Self::instead_of_root(user_for(owner)?);
        }
        match owner {
            Some((owner, _)) if owner != me => Err(Error::Owner { dir: layout.pgdata(), owner }),
            _ => Ok(Self::ourselves()),
        }
    }

    fn instead_of_root(user: User) -> Result<Self, Error> {
        let (uid, gid) = (format!("--reuid={}", user.uid), format!("--regid={}", user.gid));
        let prefix = setpriv(&[&uid, &gid, "--clear-groups"]).map_err(|why| Error::NoSetpriv { why })?;
        Ok(Self { prefix, other: Some(user) })
    }

    fn ourselves() -> Self {
        let prefix = if cfg!(target_os = "linux") { setpriv(&[]) } else { Ok(Vec::new()) };
        let prefix = prefix.unwrap_or_else(|why| {
            tracing::warn!(
                why,
                "setpriv cannot be used: if deedbox is killed, its PostgreSQL server runs on until the next start"
            );
            Vec::new()
        });
        Self { prefix, other: None }
    }

    /// A command for one of PostgreSQL's programs: in a process group of its own, so that Ctrl-C in a terminal reaches only us.
    pub fn command(&self, program: &Path, layout: &Layout) -> Command {
        let mut command = match self.prefix.split_first() {
            Some((setpriv, arguments)) => {
                let mut command = find::command(setpriv);
                command.args(arguments).arg(program);
                command
            }
            None => find::command(program),
        };
        for name in VARIABLES {
            command.env_remove(name);
        }
        command.env("LC_ALL", "C").current_dir(layout.root()).process_group(0).stdin(Stdio::null());
        command
    }

    /// Hands over the data directory itself while it is still empty.
    pub fn own_fresh_root(&self, layout: &Layout) -> Result<(), Error> {
        if layout.is_fresh_of_root() { self.own(layout.root()) } else { Ok(()) }
    }

    /// Gives a path that was just made to the user who runs the server.
    pub fn own(&self, path: &Path) -> Result<(), Error> {
        let Some(user) = &self.other else {
            return Ok(());
        };
        std::os::unix::fs::lchown(path, Some(user.uid), Some(user.gid))
            .map_err(|error| Error::io(format!("giving {} to {}", path.display(), user.name), error))
    }

    /// The id of the user who runs the server.
    pub fn uid(&self) -> u32 {
        self.other.as_ref().map_or_else(|| rustix::process::geteuid().as_raw(), |user| user.uid)
    }

    /// Another user must be able to enter the data directory and to execute the programs.
    pub fn check_reach(&self, layout: &Layout, binaries: &Binaries) -> Result<(), Error> {
        let Some(user) = &self.other else {
            return Ok(());
        };
        if !self.can_execute(layout.root()) {
            let dir = user.first_closed(layout.root()).unwrap_or_else(|| layout.root().to_owned());
            return Err(Error::NotReachable { dir, user: user.name.clone() });
        }
        let program = binaries.postgres();
        if self.can_execute(&program) {
            return Ok(());
        }
        Err(Error::NotExecutable { program, user: user.name.clone() })
    }

    /// Asks the system rather than the mode bits, because access lists count too.
    fn can_execute(&self, path: &Path) -> bool {
        let Some((setpriv, arguments)) = self.prefix.split_first() else {
            return true;
        };
        let status = find::command(setpriv).args(arguments).args(["test", "-x"]).arg(path).current_dir("/").status();
        status.is_ok_and(|status| status.success())
    }
}

impl User {
    /// The topmost directory on the way to `path` that this user may not enter by its mode.
    fn first_closed(&self, path: &Path) -> Option<PathBuf> {
        let mut above: Vec<&Path> = path.ancestors().collect();
        above.reverse();
        above.into_iter().find(|dir| dir.metadata().is_ok_and(|data| !self.may_enter(&data))).map(Path::to_owned)
    }

    fn may_enter(&self, dir: &Metadata) -> bool {
        let bit = match dir {
            _ if dir.uid() == self.uid => 0o100,
            _ if dir.gid() == self.gid => 0o010,
            _ => 0o001,
        };
        dir.mode() & bit != 0
    }
}

fn user_for(owner: Option<(u32, u32)>) -> Result<User, Error> {
    let users = std::fs::read_to_string("/etc/passwd").map_err(|error| Error::io("reading /etc/passwd", error))?;
    match owner {
        Some((uid, gid)) if uid != 0 => {
            let name = users
                .lines()
                .filter_map(user)
                .find(|user| user.uid == uid)
                .map_or_else(|| uid.to_string(), |user| user.name);
            Ok(User { name, uid, gid })
        }
        _ => ["postgres", "nobody"].iter().find_map(|name| named(&users, name)).ok_or(Error::NoUser),
    }
}

fn named(users: &str, name: &str) -> Option<User> {
    users.lines().filter_map(user).find(|user| user.name == name && user.uid != 0)
}

/// `name:password:uid:gid:…`
fn user(line: &str) -> Option<User> {
    let mut fields = line.split(':');
    let name = fields.next()?.to_owned();
    let uid = fields.nth(1)?.parse().ok()?;
    let gid = fields.next()?.parse().ok()?;
    Some(User { name, uid, gid })
}

/// `setpriv` with these switches and the parent-death signal that is PostgreSQL's fast shutdown, or why it does not work.
fn setpriv(switches: &[&str]) -> Result<Vec<String>, String> {
    let path = on_path("setpriv").ok_or("setpriv was not found")?;
    let mut prefix = vec![path.to_str().ok_or("setpriv's path is not UTF-8")?.to_owned()];
    prefix.extend(switches.iter().chain(&["--pdeathsig", "INT"]).map(|switch| (*switch).to_owned()));
    let trial = find::command(&prefix[0])
        .args(&prefix[1..])
        .arg("true")
        .current_dir("/")
        .output()
        .map_err(|error| error.to_string())?;
    if trial.status.success() { Ok(prefix) } else { Err(String::from_utf8_lossy(&trial.stderr).trim().to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str =
        "root:x:0:0:root:/root:/bin/sh\npostgres:x:101:104:,,,:/var/lib/postgresql:/bin/bash\nodd line\n";

    #[test]
    fn users_are_read_from_the_password_file_and_root_is_never_one() {
        assert_eq!(named(USERS, "postgres"), Some(User { name: "postgres".into(), uid: 101, gid: 104 }));
        assert_eq!(named(USERS, "nobody"), None);
        assert_eq!(named(USERS, "root"), None);
    }

    #[test]
    fn the_topmost_closed_directory_is_the_one_that_is_named() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("closed/inner");
        std::fs::create_dir_all(&inner).unwrap();
        let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        mode(root.path(), 0o755);
        mode(&root.path().join("closed"), 0o700);
        mode(&inner, 0o700);
        let stranger = User { name: "stranger".into(), uid: u32::MAX - 2, gid: u32::MAX - 2 };
        assert_eq!(stranger.first_closed(&inner), Some(root.path().join("closed")));
    }
}
