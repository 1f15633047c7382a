//! The lines of the three books, in the shape they have on disk, and blocking readers for use after the provider is gone.
//! A line is the truth once it ends in a newline; a torn last line was never answered for and must never be read as a record.

use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::files;

pub(crate) const APPLIED: &str = "applied.jsonl";
pub(crate) const ARRIVALS: &str = "arrivals.jsonl";
pub(crate) const ANSWERS: &str = "answers.jsonl";

/// One application of an operation: the thing that must happen once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// From 1, without gaps, going on over restarts.
    pub number: u64,
    /// The `Idempotency-Key`; none in keyless mode.
    pub key: Option<String>,
    pub method: String,
    /// Path and query.
    pub path: String,
    /// BLAKE3 of the body's bytes, lower-case hex.
    pub body_blake3: String,
    /// The body, with bytes that are not UTF-8 replaced.
    pub body: String,
    pub at: DateTime<Utc>,
}

/// One request that was received whole, whatever was done with it. Control requests are never booked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// From 1, without gaps, going on over restarts.
    pub number: u64,
    pub method: String,
    pub path_and_query: String,
    /// The `Idempotency-Key` as it arrived, also in keyless mode.
    pub key: Option<String>,
    /// All headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, with bytes that are not UTF-8 replaced.
    pub body: String,
    pub at: DateTime<Utc>,
}

/// The answer that a key replays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub key: String,
    pub fingerprint: Fingerprint,
    pub answer: Answer,
}

/// What must be equal for two requests to be the same request under one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    pub method: String,
    pub path: String,
    pub body_blake3: String,
}

impl Entry {
    /// Every application booked in `dir`, oldest first; empty when nothing was booked. Blocking.
    pub fn read_all(dir: impl AsRef<Path>) -> io::Result<Vec<Self>> {
        files::read_lines(&dir.as_ref().join(APPLIED))
    }

    /// The body as JSON, or none when it is not JSON.
    pub fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.body).ok()
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        Fingerprint { method: self.method.clone(), path: self.path.clone(), body_blake3: self.body_blake3.clone() }
    }
}

impl Arrival {
    /// Every arrival booked in `dir`, oldest first; empty when nothing was booked. Blocking.
    pub fn read_all(dir: impl AsRef<Path>) -> io::Result<Vec<Self>> {
        files::read_lines(&dir.as_ref().join(ARRIVALS))
    }

    /// The first value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(candidate, _)| candidate == name).map(|(_, value)| value.as_str())
    }
}
