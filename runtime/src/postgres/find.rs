//! Finds PostgreSQL's programs: the setting, else PATH, else the places where systems put them, newest first.
//! An existing data directory decides the version. It must never run anything but `postgres --version`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::Error;

const OLDEST: u32 = 15;

/// Parent, prefix before the version number, and what follows below it.
const PLACES: &[(&str, &str, &str)] = &[
    ("usr/lib/postgresql", "", "bin"),
    ("usr", "pgsql-", "bin"),
    ("usr/lib", "postgresql", "bin"),
    ("usr/libexec", "postgresql", ""),
    ("opt/homebrew/opt", "postgresql@", "bin"),
    ("usr/local/opt", "postgresql@", "bin"),
    ("Applications/Postgres.app/Contents/Versions", "", "bin"),
];

/// The programs of one installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binaries {
    dir: PathBuf,
    pub major: u32,
}

impl Binaries {
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn postgres(&self) -> PathBuf {
        self.dir.join("postgres")
    }

    pub fn initdb(&self) -> PathBuf {
        self.dir.join("initdb")
    }

    pub fn pg_ctl(&self) -> PathBuf {
        self.dir.join("pg_ctl")
    }
}

/// The programs to use; `data` is the data directory with the major version it was made by, if it was made.
pub(super) fn find(bin_dir: Option<&Path>, data: Option<(PathBuf, u32)>) -> Result<Binaries, Error> {
    let found = match bin_dir {
        Some(dir) => {
            vec![inspect(dir).and_then(new_enough).map_err(|why| Error::BadBinDir { dir: dir.to_owned(), why })?]
        }
        None => search(on_path("postgres"), Path::new("/"))?,
    };
    let Some((dir, data)) = data else {
        return found.into_iter().next().ok_or_else(|| Error::NotFound { found: String::new() });
    };
    let versions: Vec<String> = found.iter().map(|binaries| binaries.major.to_string()).collect();
    let fitting = found.into_iter().find(|binaries| binaries.major == data);
    fitting.ok_or_else(|| Error::Version { dir, data, found: versions.join(", ") })
}

/// Variables with secrets that no other program needs.
const SECRETS: [&str; 4] = ["DATABASE_URL", "DEEDBOX_TOKEN", "DEEDBOX_MASTER_KEY", "DEEDBOX_OTHER_MASTER_KEYS"];

/// A command that inherits no secret from our surroundings.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in SECRETS {
        command.env_remove(name);
    }
    command
}

/// Where the shell finds a program, with links followed.
pub(super) fn on_path(program: &str) -> Option<PathBuf> {
    let output = command("sh").args(["-c", "command -v \"$1\"", "sh", program]).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim_end());
    path.canonicalize().ok()
}

/// All usable installations, best first; an error that names the unusable ones when there is none.
fn search(on_path: Option<PathBuf>, root: &Path) -> Result<Vec<Binaries>, Error> {
    let first = on_path.as_deref().and_then(Path::parent).map(Path::to_owned);
    let mut usable: Vec<Binaries> = Vec::new();
    let mut rejected = Vec::new();
    for dir in first.into_iter().chain(known_places(root)) {
        match inspect(&dir).and_then(new_enough) {
            Ok(binaries) if usable.contains(&binaries) => {}
            Ok(binaries) => usable.push(binaries),
            Err(why) => rejected.push(format!("{}: {why}", dir.display())),
        }
    }
    if usable.is_empty() {
        let found = if rejected.is_empty() { String::new() } else { format!(" ({})", rejected.join("; ")) };
        return Err(Error::NotFound { found });
    }
    Ok(usable)
}

fn known_places(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = PLACES.iter().flat_map(|place| versions_in(root, *place)).collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found.into_iter().map(|(_, dir)| dir).collect()
}

fn versions_in(root: &Path, (parent, prefix, below): (&str, &str, &str)) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = root.join(parent).read_dir() else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let version = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((version, entry.path().join(below)))
        })
        .filter(|(_, dir)| dir.join("postgres").exists())
        .collect()
}

/// The installation in `dir`, or why it is none.
fn inspect(dir: &Path) -> Result<Binaries, String> {
    let dir = dir.canonicalize().map_err(|error| error.to_string())?;
    for program in ["initdb", "pg_ctl"] {
        if !dir.join(program).exists() {
            return Err(format!("{program} is missing"));
        }
    }
    let output =
        command(dir.join("postgres")).arg("--version").output().map_err(|error| format!("postgres: {error}"))?;
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let major = major(&words).ok_or_else(|| format!("`postgres --version` said {words:?}"))?;
    Ok(Binaries { dir, major })
}

fn new_enough(binaries: Binaries) -> Result<Binaries, String> {
    if binaries.major >= OLDEST { Ok(binaries) } else { Err(format!("version {} is too old", binaries.major)) }
}

/// 15 from `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`, 19 from `postgres (PostgreSQL) 19beta1`.
fn major(words: &str) -> Option<u32> {
    let version = words.strip_prefix("postgres (PostgreSQL) ")?;
    let end = version.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::fake_installation;
    use super::*;

    #[test]
    fn versions_are_read_as_the_distributions_write_them() {
        assert_eq!(major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some(15));
        assert_eq!(major("postgres (PostgreSQL) 17.2\n"), Some(17));
        assert_eq!(major("postgres (PostgreSQL) 19beta1\n"), Some(19));
        assert_eq!(major("postgres (PostgreSQL) 9.6.24\n"), Some(9));
        assert_eq!(major("something else 15"), None);
    }

    #[test]
    fn the_path_comes_first_then_the_newest_and_old_ones_never() {
        let root = tempfile::tempdir().unwrap();
        let at = |place: &str| root.path().join(place);
        for (place, version) in [
            ("usr/lib/postgresql/16/bin", 16),
            ("usr/pgsql-18/bin", 18),
            ("usr/lib/postgresql/13/bin", 13),
            ("elsewhere", 15),
        ] {
            fake_installation(&at(place), version, "exit 1", "exit 1");
        }
        let found = search(Some(at("elsewhere/postgres")), root.path()).unwrap();
        assert_eq!(found.iter().map(|binaries| binaries.major).collect::<Vec<_>>(), [15, 18, 16]);
        let found = search(None, root.path()).unwrap();
        assert_eq!(found[0].postgres(), at("usr/pgsql-18/bin/postgres").canonicalize().unwrap());
    }

    #[test]
    fn when_nothing_fits_the_error_says_what_was_there_and_what_to_install() {
        let root = tempfile::tempdir().unwrap();
        let words = search(None, root.path()).unwrap_err().to_string();
        assert!(words.contains("apt install postgresql") && words.contains("brew install"), "{words}");
        fake_installation(&root.path().join("usr/lib/postgresql/13/bin"), 13, "", "");
        let words = search(None, root.path()).unwrap_err().to_string();
        assert!(words.contains("version 13 is too old"), "{words}");
    }

    #[test]
    fn the_data_directory_decides_the_version() {
        let root = tempfile::tempdir().unwrap();
        fake_installation(root.path(), 17, "", "");
        let data = |version| Some((PathBuf::from("/data"), version));
        assert_eq!(find(Some(root.path()), data(17)).unwrap().major, 17);
        let words = find(Some(root.path()), data(16)).unwrap_err().to_string();
        assert!(words.contains("made by PostgreSQL 16") && words.contains("17 was found"), "{words}");
    }
}
