//! The lines of the three books, in the shape they have on disk, and blocking readers for use after the provider is gone.
//! A line is the truth once it ends in a newline; a torn last line was never answered for and must never be read as a record.

use std::io;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::Answer;
use crate::convention::Convention;
use crate::files;

pub(crate) const APPLIED: &str = "applied.jsonl";
pub(crate) const ARRIVALS: &str = "arrivals.jsonl";
pub(crate) const ANSWERS: &str = "answers.jsonl";

/// One application of an operation: the thing that must happen once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// From 1, without gaps, going on over restarts.
    pub number: u64,
    /// The key, from wherever the convention has it; none in keyless mode and for requests that do not take part.
    pub key: Option<String>,
    pub method: String,
    /// Path and query.
    pub path: String,
    /// BLAKE3 of the body's bytes, lower-case hex.
    pub body_blake3: String,
    /// The body, with bytes that are not UTF-8 replaced.
    pub body: String,
    /// All headers in order, names in lower case.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    pub at: DateTime<Utc>,
}

/// One request that was received whole, whatever was done with it. Control requests are never booked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// From 1, without gaps, going on over restarts.
    pub number: u64,
    pub method: String,
    pub path_and_query: String,
    /// The key as it arrived, from wherever the convention has it, also in keyless mode.
    pub key: Option<String>,
    /// All headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, with bytes that are not UTF-8 replaced.
    pub body: String,
    pub at: DateTime<Utc>,
}

/// One line of the answers: what has become of a key, or of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Line {
    Kept(Kept),
    /// The answer was of a kind that is not kept: the key is free again.
    Freed {
        freed: String,
        applied: u64,
    },
    /// All keys were forgotten, on demand.
    Forgotten {
        forgotten: DateTime<Utc>,
        applied: u64,
    },
}

/// What is remembered under a key. Lines of older books have only the first three members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub key: String,
    pub fingerprint: Fingerprint,
    pub answer: Answer,
    /// The object that was made; none when nothing was applied.
    #[serde(default)]
    pub id: Option<String>,
    /// When the key was taken.
    #[serde(default)]
    pub at: DateTime<Utc>,
    /// How many applications were booked before this line was written.
    #[serde(default = "all")]
    pub applied: u64,
}

/// What must be equal for two requests to be the same request under one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fingerprint {
    pub method: String,
    pub path: String,
    pub body_blake3: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub companions: Vec<Option<String>>,
}

impl Line {
    /// How many applications were booked before it.
    pub fn applied(&self) -> u64 {
        match self {
            Self::Kept(Kept { applied, .. }) | Self::Freed { applied, .. } | Self::Forgotten { applied, .. } => {
                *applied
            }
        }
    }
}

impl Fingerprint {
    /// That of no request that could arrive.
    pub fn foreign() -> Self {
        let nothing = String::new;
        Self { method: nothing(), path: nothing(), body_blake3: nothing(), companions: Vec::new() }
    }

    /// The values of the convention's companion headers.
    pub fn companions(convention: &Convention, headers: &[(String, String)]) -> Vec<Option<String>> {
        let value = |name: &String| headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name));
        convention.companions.iter().map(|name| value(name).map(|(_, value)| value.clone())).collect()
    }
}

impl Entry {
    /// Every application booked in `dir`, oldest first; empty when nothing was booked. Blocking.
    pub fn read_all(dir: impl AsRef<Path>) -> io::Result<Vec<Self>> {
        files::read_lines(&dir.as_ref().join(APPLIED))
    }

    /// The body as JSON, or none when it is not JSON.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.body).ok()
    }

    /// The body as JSON, or else as its text.
    pub(crate) fn shown(&self) -> Value {
        self.json().unwrap_or_else(|| Value::String(self.body.clone()))
    }

    /// The body as JSON, or the fields of a form-encoded one as an object of strings, or null.
    pub(crate) fn fields(&self) -> Value {
        if !self.header("content-type").is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded")) {
            return self.json().unwrap_or_default();
        }
        let pairs = url::form_urlencoded::parse(self.body.as_bytes());
        Value::Object(pairs.map(|(name, value)| (name.into_owned(), Value::String(value.into_owned()))).collect())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The path without the query.
    pub(crate) fn bare_path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// The query, without its question mark.
    pub(crate) fn query(&self) -> &str {
        self.path.split_once('?').map_or("", |(_, query)| query)
    }

    pub(crate) fn fingerprint(&self, convention: &Convention) -> Fingerprint {
        Fingerprint {
            method: self.method.clone(),
            path: self.path.clone(),
            body_blake3: self.body_blake3.clone(),
            companions: Fingerprint::companions(convention, &self.headers),
        }
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

/// Lines of older books say not how many: each was written after all applications of its key.
fn all() -> u64 {
    u64::MAX
}
