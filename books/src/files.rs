//! Append-only files of JSON lines. An append returns only after the line is synced to the disk, so a killed process loses
//! nothing it has answered for; a torn last line is cut off when the file is opened again. This module must never rewrite a whole line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// One file of JSON lines, open for appending.
#[derive(Debug)]
pub(crate) struct LineFile {
    file: File,
    path: PathBuf,
}

impl LineFile {
    /// Opens or creates the file and returns what it holds, oldest first.
    pub fn open<T: DeserializeOwned>(path: PathBuf) -> io::Result<(Self, Vec<T>)> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(&path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let whole = whole_lines(&text);
        if whole.len() < text.len() {
            file.set_len(whole.len() as u64)?;
            file.sync_all()?;
        }
        let records = parse(whole, &path)?;
        file.seek(SeekFrom::End(0))?;
        Ok((Self { file, path }, records))
    }

    /// Appends one record and waits until the disk has it.
    pub fn append<T: Serialize>(&mut self, record: &T) -> io::Result<()> {
        let mut line = serde_json::to_vec(record)?;
        line.push(b'\n');
        self.file
            .write_all(&line)
            .and_then(|()| self.file.sync_data())
            .map_err(|error| io::Error::new(error.kind(), format!("cannot write {}: {error}", self.path.display())))
    }
}

/// Reads all whole lines; a file that does not exist holds none.
pub(crate) fn read_lines<T: DeserializeOwned>(path: &Path) -> io::Result<Vec<T>> {
    match std::fs::read(path) {
        Ok(text) => parse(whole_lines(&text), path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &text[..end]
}

fn parse<T: DeserializeOwned>(text: &[u8], path: &Path) -> io::Result<Vec<T>> {
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_slice(line).map_err(|error| {
                let words =
                    format!("line {} of {} is not a record ({error}); move the file away", index + 1, path.display());
                io::Error::new(io::ErrorKind::InvalidData, words)
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_cut_off_and_the_next_append_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, "1\n2\n{\"torn").unwrap();
        assert_eq!(read_lines::<u64>(&path).unwrap(), [1, 2]);
        let (mut file, records) = LineFile::open::<u64>(path.clone()).unwrap();
        assert_eq!(records, [1, 2]);
        file.append(&3).unwrap();
        assert_eq!(read_lines::<u64>(&path).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_damaged_whole_line_is_an_error_and_names_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines");
        std::fs::write(&path, "1\nx\n").unwrap();
        let words = read_lines::<u64>(&path).unwrap_err().to_string();
        assert!(words.contains("line 2") && words.contains("lines"), "{words}");
    }
}
