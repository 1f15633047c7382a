//! Keeps the directory of compiled code in its bounds. Only files of this program's own naming are touched; what is removed here
//! is compiled again when it is needed.

use std::io;
use std::os::fd::AsFd;

use cap_std::fs::{Dir, DirEntry};
use cap_std::time::SystemTime;
use rustix::fs::{Timestamps, UTIME_NOW, futimens};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::time::Timespec;

/// How the names of whole files end. Those of unfinished ones go on with the writer's process id and its mark.
pub const WHOLE: &str = ".artefact";

/// The name under which a file is written before it is whole.
pub fn unfinished(name: &str, mark: &str, serial: u64) -> String {
    format!("{name}.{}.{mark}.{serial}", std::process::id())
}

/// Removes what writers have left unfinished that are no more. `mark`: of this process.
pub fn remove_leftovers(dir: &Dir, mark: &str) -> io::Result<()> {
    for entry in dir.entries()? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| is_left(name, mark)) {
            gone(entry.remove_file())?;
        }
    }
    Ok(())
}

/// Removes the whole files that were used longest ago until the rest is within the bound.
pub fn shrink(dir: &Dir, max_bytes: u64) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in dir.entries()? {
        files.extend(whole(entry?));
    }
    let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
    files.sort_by_key(|file| file.used);
    for file in files {
        if bytes <= max_bytes {
            break;
        }
        gone(file.entry.remove_file())?;
        bytes -= file.bytes;
    }
    Ok(())
}

/// Notes that a file was used now.
pub fn touch(file: &impl AsFd) -> io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Ok(futimens(file, &Timestamps { last_access: now, last_modification: now })?)
}

struct Whole {
    entry: DirEntry,
    bytes: u64,
    used: Option<SystemTime>,
}

/// None for other files, and for one that is gone.
fn whole(entry: DirEntry) -> Option<Whole> {
    let is_whole = entry.file_name().to_str().is_some_and(|name| name.ends_with(WHOLE));
    let metadata = entry.metadata().ok().filter(|metadata| is_whole && metadata.is_file())?;
    Some(Whole { entry, bytes: metadata.len(), used: metadata.modified().ok() })
}

/// Another may have removed it first.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn is_left(name: &str, mark: &str) -> bool {
    let Some((_, writer)) = name.split_once(&format!("{WHOLE}.")) else { return false };
    let Some((process, rest)) = writer.split_once('.') else { return false };
    let Some(process) = process.parse::<i32>().ok().filter(|id| *id > 0).and_then(Pid::from_raw) else { return false };
    // In a container each life of a node has the same process id; only the mark tells them apart.
    let own = process.as_raw_pid().unsigned_abs() == std::process::id();
    if own { rest.split('.').next() != Some(mark) } else { test_kill_process(process) == Err(Errno::SRCH) }
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;
    use tempfile::TempDir;

    use super::*;

    fn dir() -> (TempDir, Dir) {
        let place = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        (place, dir)
    }

    fn names(dir: &Dir) -> Vec<String> {
        let entries = dir.entries().unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    /// A file that was used so many seconds after the beginning of time.
    fn write(dir: &Dir, name: &str, bytes: usize, used: i64) {
        dir.write(name, vec![0; bytes]).unwrap();
        let used = Timespec { tv_sec: used, tv_nsec: 0 };
        let file = dir.open(name).unwrap();
        futimens(&file, &Timestamps { last_access: used, last_modification: used }).unwrap();
    }

    #[test]
    fn what_was_used_longest_ago_is_removed_first() {
        let (_place, dir) = dir();
        write(&dir, "a.artefact", 10, 2);
        write(&dir, "b.artefact", 10, 1);
        write(&dir, "c.artefact", 10, 3);
        write(&dir, "notes.txt", 1000, 0);
        shrink(&dir, 30).unwrap();
        assert_eq!(names(&dir), ["a.artefact", "b.artefact", "c.artefact", "notes.txt"]);
        shrink(&dir, 29).unwrap();
        assert_eq!(names(&dir), ["a.artefact", "c.artefact", "notes.txt"]);
        touch(&dir.open("a.artefact").unwrap()).unwrap();
        shrink(&dir, 10).unwrap();
        assert_eq!(names(&dir), ["a.artefact", "notes.txt"]);
        shrink(&dir, 9).unwrap();
        assert_eq!(names(&dir), ["notes.txt"]);
    }

    #[test]
    fn only_what_dead_writers_left_is_removed() {
        let (_place, dir) = dir();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let parent = Pid::as_raw(rustix::process::getppid());
        let earlier_life = unfinished("a.artefact", "earlier", 0);
        let own = unfinished("a.artefact", "mine", 0);
        let kept = [own, format!("b.artefact.{parent}.other.0"), "a.artefact".to_owned(), "x.tmp".to_owned()];
        let left = [earlier_life, format!("c.artefact.{}.other.7", dead.id())];
        kept.iter().chain(&left).for_each(|name| write(&dir, name, 1, 1));
        remove_leftovers(&dir, "mine").unwrap();
        let mut expected = kept.to_vec();
        expected.sort_unstable();
        assert_eq!(names(&dir), expected);
    }
}
