//! What is left when a case is over: the run, its attempts and the ledger, as the database has them, and the books of the
//! providers and the files, which are the outside world. Nothing is judged here.

use std::collections::BTreeMap;
use std::path::Path;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::Error;
use super::providers::Providers;
use super::stage::{RUN, TENANT};
use crate::store::{self, Store, ledger};

/// More effects than this are not read.
const MOST: i64 = 1_000;

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// `completed`, `failed`, `waiting` …
    pub state: String,
    pub output: Option<String>,
    pub failure: Option<Value>,
    pub waits_for_signal: Option<String>,
    pub attempts: Vec<Attempt>,
    /// What the host told guests over `wasi:http` about calls that it refused: the attempt and the words.
    pub refused: Vec<(i32, String)>,
    pub effects: Vec<Effect>,
    pub sends: Vec<Send>,
    pub applied: Vec<Booked>,
    pub arrived: Vec<Booked>,
    /// Path and BLAKE3 of what is in it.
    pub files: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub struct Attempt {
    pub number: i32,
    pub outcome: String,
    pub failure: Option<Value>,
}

/// One line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub id: String,
    pub keying: String,
    pub identity: String,
    pub state: String,
    pub provider: String,
    pub method: String,
    /// Without its query.
    pub url: String,
    pub digest: Vec<u8>,
    pub key: Option<String>,
    pub status: Option<i32>,
    pub doubled: bool,
}

#[derive(Clone, Debug)]
pub struct Send {
    pub effect: String,
    pub attempt: i32,
    pub result: String,
    pub status: Option<i32>,
    pub started_at: DateTime<Utc>,
}

/// One line of a provider's books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Booked {
    pub origin: String,
    pub method: String,
    /// Path and query.
    pub path: String,
    pub key: Option<String>,
    pub body: String,
}

impl Booked {
    pub fn is_read(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }

    /// Method and origin.
    pub fn place(&self) -> String {
        format!("{} {}", self.method, self.origin)
    }

    /// Method, origin and path: what a line without identity is known by.
    pub fn slot(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{} {}{path}", self.method, self.origin)
    }
}

impl Effect {
    pub fn slot(&self) -> String {
        format!("{} {}", self.method, self.url)
    }
}

impl Evidence {
    /// Reads everything. The database must be the case's own.
    pub async fn gather(url: &str, providers: &Providers, files: &Path) -> Result<Self, Error> {
        let store = Store::connect(url, 2)?;
        let read = Self::read(&store).await;
        store.close().await;
        let mut evidence = read?;
        for (origin, books) in providers.all() {
            let origin = origin.to_string();
            evidence.applied.extend(books.applied().await?.into_iter().map(|entry| Booked {
                origin: origin.clone(),
                method: entry.method,
                path: entry.path,
                key: entry.key,
                body: entry.body,
            }));
            evidence.arrived.extend(books.arrivals().await?.into_iter().map(|arrival| Booked {
                origin: origin.clone(),
                method: arrival.method,
                path: arrival.path_and_query,
                key: arrival.key,
                body: arrival.body,
            }));
        }
        collect_files(files, "", &mut evidence.files)?;
        Ok(evidence)
    }

    async fn read(store: &Store) -> Result<Self, Error> {
        let Some(run) = store::run::find(store, TENANT, RUN).await? else { return Ok(Self::default()) };
        let attempts = store::run::list_attempts(store, TENANT, RUN, None, MOST).await?;
        let filter = ledger::Filter { limit: MOST, ..ledger::Filter::default() };
        let effects = ledger::list_of_run(store, TENANT, RUN, &filter).await?;
        let sends = store::send::list_of_run(store, TENANT, RUN).await?;
        let logs = store::log::list(store, TENANT, RUN, None, MOST).await?;
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Self {
            state: run.state,
            output: run.output,
            failure: json(run.failure),
            waits_for_signal: run.waiting_signal,
            attempts: attempts
                .into_iter()
                .map(|attempt| Attempt {
                    number: attempt.attempt,
                    outcome: attempt.outcome.unwrap_or_default(),
                    failure: json(attempt.failure),
                })
                .collect(),
            refused: logs.iter().flat_map(refusals).collect(),
            effects: effects.into_iter().map(effect).collect(),
            sends: sends
                .into_iter()
                .map(|send| Send {
                    effect: hex(&send.effect_id),
                    attempt: send.attempt,
                    result: send.result.unwrap_or_default(),
                    status: send.status,
                    started_at: send.started_at,
                })
                .collect(),
            ..Self::default()
        })
    }

    pub fn is_completed(&self) -> bool {
        self.state == "completed"
    }

    /// The output as a value, so that the order of members says nothing.
    pub fn result(&self) -> Option<Value> {
        self.output.as_deref().and_then(|text| serde_json::from_str(text).ok())
    }

    pub fn effect(&self, id: &str) -> Option<&Effect> {
        self.effects.iter().find(|effect| effect.id == id)
    }

    /// The effects whose outcome is an open question.
    pub fn open(&self) -> impl Iterator<Item = &Effect> {
        self.effects.iter().filter(|effect| effect.state == "escaped")
    }
}

/// The host writes them into the guest's error stream.
fn refusals(log: &store::log::Log) -> Vec<(i32, String)> {
    let lines = log.text.lines().filter(|line| line.starts_with("wasi:http: effect mismatch"));
    lines.map(|line| (log.attempt, line.to_owned())).collect()
}

fn effect(entry: ledger::Entry) -> Effect {
    Effect {
        id: hex(&entry.effect_id),
        keying: entry.keying,
        identity: entry.identity,
        state: entry.state,
        provider: entry.provider,
        method: entry.method,
        url: entry.url,
        digest: entry.digest,
        key: entry.wire_key,
        status: entry.status,
        doubled: entry.doubled,
    }
}

fn hex(bytes: &[u8]) -> String {
    data_encoding::HEXLOWER.encode(bytes)
}

fn collect_files(dir: &Path, below: &str, found: &mut BTreeMap<String, String>) -> Result<(), Error> {
    if !dir.exists() {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{below}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect_files(&entry.path(), &name, found)?;
        } else {
            let digest = blake3::hash(&std::fs::read(entry.path())?);
            found.insert(name, digest.to_hex().to_string());
        }
    }
    Ok(())
}
