//! The server's log file, and what its last lines mean. It must never grow without bound: a long one is set aside at a start.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use super::error::Error;
use super::layout::Layout;

/// Bytes after which a start begins a new log and keeps the last one as `postgres.log.1`.
const LONG: u64 = 16 * 1024 * 1024;
const TAIL_LINES: usize = 12;
const TAIL_BYTES: u64 = 64 * 1024;
/// With less than this left on the disk, a server that does not start is taken to lack space, even if it could not log so.
const SPACE_NEEDED: u64 = 1024 * 1024;

#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    root: PathBuf,
    /// Where this start's lines begin.
    from: u64,
}

impl Log {
    /// Opens the log for appending.
    pub fn open(layout: &Layout) -> Result<(Self, File), Error> {
        let path = layout.log();
        if path.metadata().is_ok_and(|data| data.len() > LONG) {
            let aside = path.with_extension("log.1");
            std::fs::rename(&path, aside).map_err(|error| Error::io("setting the long log aside", error))?;
        }
        let doing = || format!("opening {}", path.display());
        let file = File::options().append(true).create(true).open(&path).map_err(|error| Error::io(doing(), error))?;
        let from = file.metadata().map_err(|error| Error::io(doing(), error))?.len();
        Ok((Self { path, root: layout.root().to_owned(), from }, file))
    }

    /// The last lines that this start wrote.
    pub fn tail(&self) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.path)?;
            let end = file.metadata()?.len();
            file.seek(SeekFrom::Start(self.from.max(end.saturating_sub(TAIL_BYTES))))?;
            let mut text = Vec::new();
            file.take(TAIL_BYTES).read_to_end(&mut text)?;
            Ok(text)
        };
        let text = read().unwrap_or_default();
        last_lines(&String::from_utf8_lossy(&text))
    }

    /// The same failure, or the full disk that caused it.
    pub fn explain(&self, error: Error) -> Error {
        let log = self.tail();
        if speaks_of_a_full_disk(&log) || space_left(&self.root).is_some_and(|bytes| bytes < SPACE_NEEDED) {
            return Error::DiskFull { dir: self.root.clone(), log };
        }
        error
    }
}

pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

pub(super) fn speaks_of_a_full_disk(text: &str) -> bool {
    ["No space left on device", "Check free disk space", "Disk quota exceeded"].iter().any(|words| text.contains(words))
}

fn space_left(dir: &std::path::Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}
