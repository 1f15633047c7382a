//! The provider's memory: the books, the keys and the script, behind one lock. What is remembered was first written down.
//! Methods that write block on the disk: call them off the async threads. A key must never leave `InFlight` without its answer
//! being kept or its operation being left unapplied.

use std::collections::{HashMap, VecDeque};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::Utc;
use tokio::sync::watch;

use crate::answer::Answer;
use crate::behaviour::Behaviour;
use crate::files::LineFile;
use crate::record::{ANSWERS, APPLIED, ARRIVALS, Arrival, Entry, Fingerprint, Kept};
use crate::request::Request;
use crate::server::Error;

/// How many lines the books have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    pub arrivals: u64,
    pub applied: u64,
}

/// What a request is to do, settled in the moment it arrived.
#[derive(Debug)]
pub(crate) struct Received {
    pub behaviour: Behaviour,
    /// The number of releases so far: a hold ends when there are more.
    pub releases: u64,
}

/// What its key says about a request.
#[derive(Debug)]
pub(crate) enum Begin {
    /// First of its key, or without one: apply it, then `keep` or `forget`.
    Fresh,
    /// Answer this and apply nothing.
    Settled(Answer),
}

#[derive(Debug)]
pub(crate) struct State {
    keyless: bool,
    inner: Mutex<Inner>,
    counts: watch::Sender<Counts>,
    releases: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    arrivals: Vec<Arrival>,
    arrivals_file: LineFile,
    applied: Vec<Entry>,
    applied_file: LineFile,
    answers_file: LineFile,
    keys: HashMap<String, Key>,
    script: VecDeque<Behaviour>,
    /// Held so that no second provider writes into the same books.
    _lock: Lock,
}

/// The locked directory, until it is dropped.
#[derive(Debug)]
struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing is not enough: a child that another thread forks just now shares the open file until its exec.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the books cannot be unlocked");
        }
    }
}

#[derive(Debug)]
enum Key {
    InFlight(Fingerprint),
    Kept(Fingerprint, Answer),
}

impl State {
    /// Opens the books in `dir`, creating what is missing.
    pub fn open(dir: &Path, keyless: bool) -> Result<Self, Error> {
        std::fs::create_dir_all(dir)?;
        let lock = lock(dir)?;
        let (arrivals_file, arrivals) = LineFile::open::<Arrival>(dir.join(ARRIVALS))?;
        let (applied_file, applied) = LineFile::open::<Entry>(dir.join(APPLIED))?;
        let (answers_file, kept) = LineFile::open::<Kept>(dir.join(ANSWERS))?;
        let counts = Counts { arrivals: arrivals.len() as u64, applied: applied.len() as u64 };
        let keys = keys(&applied, kept);
        let inner = Inner {
            arrivals,
            arrivals_file,
            applied,
            applied_file,
            answers_file,
            keys,
            script: VecDeque::new(),
            _lock: lock,
        };
        Ok(Self {
            keyless,
            inner: Mutex::new(inner),
            counts: watch::Sender::new(counts),
            releases: watch::Sender::new(0),
        })
    }

    /// Books the arrival and takes the next behaviour if it is an effect.
    pub fn receive(&self, request: &Request) -> io::Result<Received> {
        let mut inner = self.lock();
        let arrival = Arrival {
            number: inner.arrivals.len() as u64 + 1,
            method: request.method.to_string(),
            path_and_query: request.path_and_query.clone(),
            key: request.key.clone(),
            headers: request.headers.clone(),
            body: request.body_text(),
            at: Utc::now(),
        };
        inner.arrivals_file.append(&arrival)?;
        inner.arrivals.push(arrival);
        let scripted = if request.is_effect() { inner.script.pop_front() } else { None };
        let releases = *self.releases.borrow();
        self.publish(&inner);
        Ok(Received { behaviour: scripted.unwrap_or(Behaviour::Normal), releases })
    }

    /// Asks the key; a fresh one is in flight from here on.
    pub fn begin(&self, request: &Request) -> Begin {
        let Some(key) = self.key(request) else {
            return Begin::Fresh;
        };
        let mut inner = self.lock();
        let fingerprint = request.fingerprint();
        let settled = match inner.keys.get(key) {
            None => {
                inner.keys.insert(key.to_owned(), Key::InFlight(fingerprint));
                return Begin::Fresh;
            }
            Some(Key::InFlight(first) | Key::Kept(first, _)) if *first != fingerprint => Answer::key_mismatch(),
            Some(Key::InFlight(_)) => Answer::key_in_use(),
            Some(Key::Kept(_, answer)) => answer.clone().replayed(),
        };
        Begin::Settled(settled)
    }

    /// Books one application.
    pub fn apply(&self, request: &Request) -> io::Result<Entry> {
        let mut inner = self.lock();
        let fingerprint = request.fingerprint();
        let entry = Entry {
            number: inner.applied.len() as u64 + 1,
            key: self.key(request).map(str::to_owned),
            method: fingerprint.method,
            path: fingerprint.path,
            body_blake3: fingerprint.body_blake3,
            body: request.body_text(),
            at: Utc::now(),
        };
        inner.applied_file.append(&entry)?;
        inner.applied.push(entry.clone());
        self.publish(&inner);
        Ok(entry)
    }

    /// Keeps the final answer under the request's key, which is no longer in flight then.
    pub fn keep(&self, request: &Request, answer: Answer) -> io::Result<()> {
        let Some(key) = self.key(request) else {
            return Ok(());
        };
        let kept = Kept { key: key.to_owned(), fingerprint: request.fingerprint(), answer };
        let mut inner = self.lock();
        inner.answers_file.append(&kept)?;
        inner.keys.insert(kept.key, Key::Kept(kept.fingerprint, kept.answer));
        Ok(())
    }

    /// Gives the key back: nothing was applied under it.
    pub fn forget(&self, request: &Request) {
        if let Some(key) = self.key(request) {
            self.lock().keys.remove(key);
        }
    }

    pub fn script(&self, behaviours: Vec<Behaviour>) {
        self.lock().script.extend(behaviours);
    }

    /// Ends every hold of a request that has arrived.
    pub fn release(&self) {
        let _inner = self.lock();
        self.releases.send_modify(|count| *count += 1);
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.lock().arrivals.clone()
    }

    pub fn applied(&self) -> Vec<Entry> {
        self.lock().applied.clone()
    }

    pub fn watch_counts(&self) -> watch::Receiver<Counts> {
        self.counts.subscribe()
    }

    pub fn watch_releases(&self) -> watch::Receiver<u64> {
        self.releases.subscribe()
    }

    fn key<'a>(&self, request: &'a Request) -> Option<&'a str> {
        if self.keyless { None } else { request.key.as_deref() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, inner: &Inner) {
        self.counts.send_replace(Counts { arrivals: inner.arrivals.len() as u64, applied: inner.applied.len() as u64 });
    }
}

/// An application whose answer was not yet kept when the provider was killed replays its regular answer.
fn keys(applied: &[Entry], kept: Vec<Kept>) -> HashMap<String, Key> {
    let rebuilt = applied.iter().filter_map(|entry| {
        let key = entry.key.clone()?;
        Some((key, Key::Kept(entry.fingerprint(), Answer::applied(entry))))
    });
    let written = kept.into_iter().map(|kept| (kept.key, Key::Kept(kept.fingerprint, kept.answer)));
    rebuilt.chain(written).collect()
}

fn lock(dir: &Path) -> Result<Lock, Error> {
    let file = File::options().create(true).append(true).open(dir.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { dir: dir.to_owned() }),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}
