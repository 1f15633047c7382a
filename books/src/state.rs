//! The provider's memory: the books, the world, the keys and the script, behind one lock. What is remembered was first written
//! down. Methods that write block on the disk: call them off the async threads. A key must never leave being in flight without
//! its answer being settled or its operation being left unapplied.

use std::collections::{HashSet, VecDeque};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::watch;

use crate::answer::Answer;
use crate::behaviour::{Behaviour, FOREIGN};
use crate::convention::{Convention, InFlight};
use crate::files::LineFile;
use crate::keys::{Begin, Books, Keys};
use crate::lookup;
use crate::object::Conditions;
use crate::place::Place;
use crate::record::{ANSWERS, APPLIED, ARRIVALS, Arrival, Entry, Fingerprint, Kept, Line};
use crate::request::Request;
use crate::server::{Error, Options};
use crate::template::Words;
use crate::world::{Settled, World};

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
    /// What its key says; none when it comes to no application whatever the key is.
    pub begin: Option<Begin>,
}

/// What became of a fresh request.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub answer: Answer,
    /// The object that was made; none when nothing was applied.
    pub id: Option<String>,
}

#[derive(Debug)]
pub(crate) struct State {
    keyless: bool,
    convention: Convention,
    inner: Mutex<Inner>,
    counts: watch::Sender<Counts>,
    releases: watch::Sender<u64>,
    settlements: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    arrivals: Vec<Arrival>,
    arrivals_file: LineFile,
    applied: Vec<Entry>,
    applied_file: LineFile,
    answers_file: LineFile,
    world: World,
    keys: Keys,
    /// Objects on which a conditional write is being worked.
    busy: HashSet<String>,
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

impl State {
    /// Opens the books in `dir`, creating what is missing.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        let convention = options.convention.unwrap_or_default();
        convention.check()?;
        std::fs::create_dir_all(dir)?;
        let lock = lock(dir)?;
        let (arrivals_file, arrivals) = LineFile::open::<Arrival>(dir.join(ARRIVALS))?;
        let (applied_file, applied) = LineFile::open::<Entry>(dir.join(APPLIED))?;
        let (answers_file, lines) = LineFile::open::<Line>(dir.join(ANSWERS))?;
        let counts = Counts { arrivals: arrivals.len() as u64, applied: applied.len() as u64 };
        let mut world = World::default();
        let answer = |entry| world.apply(&convention, entry).unwrap_or_else(|| Answer::applied(&convention, entry));
        let answers = applied.iter().map(answer).collect();
        let books = Books { convention: &convention, applied: &applied };
        let keys = Keys::rebuild(books, answers, lines, &arrivals);
        let inner = Inner {
            arrivals,
            arrivals_file,
            applied,
            applied_file,
            answers_file,
            world,
            keys,
            busy: HashSet::new(),
            script: VecDeque::new(),
            _lock: lock,
        };
        Ok(Self {
            keyless: options.keyless,
            convention,
            inner: Mutex::new(inner),
            counts: watch::Sender::new(counts),
            releases: watch::Sender::new(0),
            settlements: watch::Sender::new(0),
        })
    }

    pub fn convention(&self) -> &Convention {
        &self.convention
    }

    /// Books the arrival, takes the next behaviour if it is an effect, and asks its key: once the arrival is counted, the key is taken.
    pub fn receive(&self, request: &Request) -> io::Result<Received> {
        let mut guard = self.lock();
        let inner = &mut *guard;
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
        let is_effect = self.convention.is_effect(request);
        let scripted = if is_effect { inner.script.pop_front() } else { None };
        let behaviour = scripted.unwrap_or(Behaviour::Normal);
        if let (Behaviour::KeyUsedElsewhere, Some(key)) = (&behaviour, self.key(request)) {
            self.mark_used(inner, key, FOREIGN)?;
        }
        let begin = (is_effect && !behaviour.is_early()).then(|| self.ask(inner, request));
        let releases = *self.releases.borrow();
        self.publish(inner);
        Ok(Received { behaviour, releases, begin })
    }

    /// The answer to a read: of the world where the path is one of its places, else of the applications.
    pub fn look_up(&self, request: &Request) -> Answer {
        if let Some(page) = self.convention.pages.get(&request.path_and_query) {
            return Answer::page(page);
        }
        let settled = Settled { lag: self.convention.lag(), now: Utc::now() };
        let inner = self.lock();
        let read = inner.world.read(&self.convention, request, settled);
        read.unwrap_or_else(|| lookup::answer(&self.convention, request, &inner.applied, settled))
    }

    /// Asks the key, or the object where objects are the convention; a fresh one is in flight from here on.
    pub fn begin(&self, request: &Request) -> Begin {
        self.ask(&mut self.lock(), request)
    }

    fn ask(&self, inner: &mut Inner, request: &Request) -> Begin {
        if self.takes_part(request) && self.convention.is_invalid(request) {
            return Begin::Settled(self.convention.invalid.answer(&Words {
                key: request.key.as_deref(),
                body: &request.body_text(),
                ..Words::default()
            }));
        }
        let Some(key) = self.key(request) else {
            return self.contended(request).map_or(Begin::Fresh, |object| self.begin_write(inner, request, object));
        };
        let books = Books { convention: &self.convention, applied: &inner.applied };
        inner.keys.begin(books, key, request, Utc::now())
    }

    fn begin_write(&self, inner: &mut Inner, request: &Request, object: String) -> Begin {
        if inner.busy.contains(&object) {
            return match &self.convention.in_flight {
                InFlight::Answer(_) => Begin::Settled(self.in_flight_answer(request)),
                InFlight::Wait { .. } => Begin::Wait,
            };
        }
        let draft = self.draft(request, inner.applied.len() as u64 + 1);
        match inner.world.refuse(&self.convention, &draft) {
            Some(refusal) => Begin::Settled(refusal),
            None => {
                inner.busy.insert(object);
                Begin::Fresh
            }
        }
    }

    /// Books one application, unless the world says that it changes nothing.
    pub fn apply(&self, request: &Request) -> io::Result<Outcome> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        let entry = self.draft(request, inner.applied.len() as u64 + 1);
        if let Some(answer) = inner.world.refuse(&self.convention, &entry) {
            return Ok(Outcome { answer, id: None });
        }
        inner.applied_file.append(&entry)?;
        let done = inner.world.apply(&self.convention, &entry);
        let answer = done.unwrap_or_else(|| Answer::applied(&self.convention, &entry));
        let id = self.convention.id(entry.number);
        if let Some(key) = &entry.key {
            inner.keys.made(key, id.clone());
        }
        inner.applied.push(entry);
        self.publish(inner);
        Ok(Outcome { answer, id: Some(id) })
    }

    /// Settles the request's key, which is no longer in flight then: the answer is kept, or the key is free when the convention
    /// does not keep such answers.
    pub fn keep(&self, request: &Request, outcome: Outcome) -> io::Result<()> {
        let mut guard = self.lock();
        let inner = &mut *guard;
        if let Some(key) = self.key(request) {
            let (key, now, applied) = (key.to_owned(), Utc::now(), inner.applied.len() as u64);
            let at = inner.keys.since(&key).unwrap_or(now);
            let Outcome { answer, id } = outcome;
            let line = if self.convention.stores.keeps(answer.status) {
                let fingerprint = request.fingerprint(&self.convention);
                Line::Kept(Kept { key, fingerprint, answer, id, at, applied })
            } else {
                Line::Freed { freed: key, applied }
            };
            inner.answers_file.append(&line)?;
            inner.keys.remember(line, now);
        }
        self.settled(inner, request);
        Ok(())
    }

    /// Gives the key back: nothing was applied under it.
    pub fn forget(&self, request: &Request) {
        let mut inner = self.lock();
        if let Some(key) = self.key(request) {
            inner.keys.free(key);
        }
        self.settled(&mut inner, request);
    }

    /// Forgets all keys that are not in flight, as if their retention had passed.
    pub fn forget_all(&self) -> io::Result<()> {
        let mut inner = self.lock();
        let (now, applied) = (Utc::now(), inner.applied.len() as u64);
        self.write_line(&mut inner, Line::Forgotten { forgotten: now, applied }, now)
    }

    /// Marks a key as used by a request that came from elsewhere and made the object `id`.
    pub fn use_key(&self, key: &str, id: &str) -> io::Result<()> {
        self.mark_used(&mut self.lock(), key, id)
    }

    pub fn in_flight_answer(&self, request: &Request) -> Answer {
        let words = Words { key: request.key.as_deref(), body: &request.body_text(), ..Words::default() };
        self.convention.in_flight_answer().answer(&words)
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

    pub fn world(&self) -> Value {
        self.lock().world.shown()
    }

    pub fn watch_counts(&self) -> watch::Receiver<Counts> {
        self.counts.subscribe()
    }

    pub fn watch_releases(&self) -> watch::Receiver<u64> {
        self.releases.subscribe()
    }

    /// Changes whenever a key or an object is no longer in flight.
    pub fn watch_settlements(&self) -> watch::Receiver<u64> {
        self.settlements.subscribe()
    }

    fn draft(&self, request: &Request, number: u64) -> Entry {
        Entry {
            number,
            key: self.key(request).map(str::to_owned),
            method: request.method.to_string(),
            path: request.path_and_query.clone(),
            body_blake3: blake3::hash(&request.body).to_hex().to_string(),
            body: request.body_text(),
            headers: request.headers.clone(),
            at: Utc::now(),
        }
    }

    fn mark_used(&self, inner: &mut Inner, key: &str, id: &str) -> io::Result<()> {
        let (now, applied) = (Utc::now(), inner.applied.len() as u64);
        let words = Words { id: Some(id.to_owned()), key: Some(key), ..Words::default() };
        let answer = self.convention.applied.answer(&words);
        let (key, id, fingerprint) = (key.to_owned(), Some(id.to_owned()), Fingerprint::foreign());
        self.write_line(inner, Line::Kept(Kept { key, fingerprint, answer, id, at: now, applied }), now)
    }

    fn write_line(&self, inner: &mut Inner, line: Line, now: DateTime<Utc>) -> io::Result<()> {
        inner.answers_file.append(&line)?;
        inner.keys.remember(line, now);
        Ok(())
    }

    fn settled(&self, inner: &mut Inner, request: &Request) {
        if let Some(object) = self.contended(request) {
            inner.busy.remove(&object);
        }
        self.settlements.send_modify(|count| *count += 1);
    }

    fn takes_part(&self, request: &Request) -> bool {
        !self.keyless && self.convention.takes_part(request)
    }

    fn key<'a>(&self, request: &'a Request) -> Option<&'a str> {
        if self.takes_part(request) { request.key.as_deref() } else { None }
    }

    /// The object that a conditional write of a request without a key is about.
    fn contended(&self, request: &Request) -> Option<String> {
        let is_conditional = || !Conditions::of(|name| request.header(name), &request.query).are_none();
        if self.convention.object_path.is_none() || self.key(request).is_some() || !is_conditional() {
            return None;
        }
        Place::of(&self.convention, request.method.as_str(), &request.path, &request.query)?.object()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish(&self, inner: &Inner) {
        self.counts.send_replace(Counts { arrivals: inner.arrivals.len() as u64, applied: inner.applied.len() as u64 });
    }
}

fn lock(dir: &Path) -> Result<Lock, Error> {
    let file = File::options().create(true).append(true).open(dir.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Lock(file)),
        Err(TryLockError::WouldBlock) => Err(Error::InUse { dir: dir.to_owned() }),
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}
