//! What the provider remembers under keys, and what that means for a request that comes with one. It is rebuilt from the
//! books' lines in the order in which they were written. It must never let a key go from in flight by itself.

use std::collections::HashMap;

use chrono::{DateTime, Utc};

use crate::answer::Answer;
use crate::convention::{Convention, CountedFrom, InFlight, OnMismatch, OnRepeat};
use crate::record::{Arrival, Entry, Fingerprint, Kept, Line};
use crate::request::Request;
use crate::template::{Template, Words};

/// What its key says about a request.
#[derive(Debug)]
pub(crate) enum Begin {
    /// First of its key, or without one: apply it, then `keep` or `forget`.
    Fresh,
    /// Answer this and apply nothing.
    Settled(Answer),
    /// Ask again when some key has been settled.
    Wait,
}

/// The books as they are while a key is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Books<'a> {
    pub convention: &'a Convention,
    pub applied: &'a [Entry],
}

#[derive(Debug, Default)]
pub(crate) struct Keys(HashMap<String, Key>);

#[derive(Debug)]
enum Key {
    InFlight { fingerprint: Fingerprint, since: DateTime<Utc>, id: Option<String> },
    Kept { kept: Kept, last_use: DateTime<Utc> },
}

impl Keys {
    /// Reads what was remembered. An application whose answer was not yet kept when the provider was killed has its regular
    /// answer, which `answers` gives for every application.
    pub fn rebuild(books: Books, answers: Vec<Answer>, lines: Vec<Line>, arrivals: &[Arrival]) -> Self {
        let mut keys = Self::default();
        let mut applications = books.applied.iter().zip(answers).peekable();
        for line in lines {
            while let Some((entry, answer)) = applications.next_if(|(entry, _)| entry.number <= line.applied()) {
                keys.recall(books, entry, answer);
            }
            let at = if let Line::Kept(kept) = &line { kept.at } else { DateTime::default() };
            keys.remember(line, at);
        }
        for (entry, answer) in applications {
            keys.recall(books, entry, answer);
        }
        for arrival in arrivals {
            if let Some(Key::Kept { last_use, .. }) = arrival.key.as_ref().and_then(|key| keys.0.get_mut(key)) {
                *last_use = arrival.at.max(*last_use);
            }
        }
        keys
    }

    fn recall(&mut self, books: Books, entry: &Entry, answer: Answer) {
        let Some(key) = entry.key.clone() else {
            return;
        };
        let (fingerprint, id) = (entry.fingerprint(books.convention), Some(books.convention.id(entry.number)));
        let kept = Kept { key, fingerprint, answer, id, at: entry.at, applied: entry.number };
        self.remember(Line::Kept(kept), entry.at);
    }

    /// Asks the key; a fresh one is in flight from here on.
    pub fn begin(&mut self, books: Books, key: &str, request: &Request, now: DateTime<Utc>) -> Begin {
        if self.0.get(key).is_some_and(|known| known.is_over(books.convention, now)) {
            self.0.remove(key);
        }
        let fingerprint = request.fingerprint(books.convention);
        let Some(known) = self.0.get_mut(key) else {
            self.0.insert(key.to_owned(), Key::InFlight { fingerprint, since: now, id: None });
            return Begin::Fresh;
        };
        if let Key::Kept { last_use, .. } = known {
            *last_use = now;
        }
        let body = request.body_text();
        let fill = |template: &Template| {
            let id = known.id().map(str::to_owned);
            let entry = id.as_deref().and_then(|id| books.made(id));
            template.answer(&Words { id, entry, key: Some(key), body: &body })
        };
        let convention = books.convention;
        match (&convention.on_mismatch, &*known) {
            (OnMismatch::Answer(refusal), _) if *known.fingerprint() != fingerprint => Begin::Settled(fill(refusal)),
            (_, Key::InFlight { .. }) => match &convention.in_flight {
                InFlight::Answer(answer) => Begin::Settled(fill(answer)),
                InFlight::Wait { .. } => Begin::Wait,
            },
            (_, Key::Kept { kept, .. }) => Begin::Settled(repeat(convention, kept, fill)),
        }
    }

    /// Notes which object was made under a key in flight.
    pub fn made(&mut self, key: &str, made: String) {
        if let Some(Key::InFlight { id, .. }) = self.0.get_mut(key) {
            *id = Some(made);
        }
    }

    /// When the key was taken; none when it is not in flight.
    pub fn since(&self, key: &str) -> Option<DateTime<Utc>> {
        match self.0.get(key) {
            Some(Key::InFlight { since, .. }) => Some(*since),
            _ => None,
        }
    }

    pub fn remember(&mut self, line: Line, last_use: DateTime<Utc>) {
        match line {
            Line::Kept(kept) => {
                self.0.insert(kept.key.clone(), Key::Kept { kept, last_use });
            }
            Line::Freed { freed, .. } => self.free(&freed),
            Line::Forgotten { .. } => self.0.retain(|_, key| matches!(key, Key::InFlight { .. })),
        }
    }

    pub fn free(&mut self, key: &str) {
        self.0.remove(key);
    }
}

impl Key {
    fn fingerprint(&self) -> &Fingerprint {
        match self {
            Self::InFlight { fingerprint, .. } => fingerprint,
            Self::Kept { kept, .. } => &kept.fingerprint,
        }
    }

    fn id(&self) -> Option<&str> {
        match self {
            Self::InFlight { id, .. } => id.as_deref(),
            Self::Kept { kept, .. } => kept.id.as_deref(),
        }
    }

    fn is_over(&self, convention: &Convention, now: DateTime<Utc>) -> bool {
        let Self::Kept { kept, last_use } = self else {
            return false;
        };
        let from = match convention.counted_from {
            CountedFrom::First => kept.at,
            CountedFrom::Last => *last_use,
        };
        convention.retention().is_some_and(|retention| now.signed_duration_since(from) >= retention)
    }
}

impl<'a> Books<'a> {
    /// The line by which an object was made.
    pub fn made(&self, id: &str) -> Option<&'a Entry> {
        let number: u64 = id.strip_prefix(&self.convention.id_prefix)?.parse().ok()?;
        self.applied.get(usize::try_from(number).ok()?.checked_sub(1)?)
    }
}

fn repeat(convention: &Convention, kept: &Kept, fill: impl Fn(&Template) -> Answer) -> Answer {
    match &convention.on_repeat {
        OnRepeat::Replay { marker: Some((name, value)) } => kept.answer.clone().marked(name, value),
        OnRepeat::Latest(template) | OnRepeat::Conflict(template) | OnRepeat::Precondition(template)
            if kept.id.is_some() =>
        {
            fill(template)
        }
        _ => kept.answer.clone(),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use hyper::Method;

    use super::*;

    fn request() -> Request {
        Request {
            method: Method::POST,
            path_and_query: "/x".into(),
            path: "/x".into(),
            query: String::new(),
            key: Some("k".into()),
            headers: Vec::new(),
            body: "{}".into(),
        }
    }

    /// When a key that is asked again and again every 40 ms is forgotten, of a retention of 100 ms; none within 400 ms.
    fn forgotten_after(counted_from: CountedFrom) -> Option<i64> {
        let convention = Convention { retention_ms: Some(100), counted_from, ..Convention::default() };
        let (books, request) = (Books { convention: &convention, applied: &[] }, request());
        let begun = DateTime::<Utc>::default();
        let mut keys = Keys::default();
        assert!(matches!(keys.begin(books, "k", &request, begun), Begin::Fresh));
        let (key, fingerprint, answer) = ("k".to_owned(), request.fingerprint(&convention), Answer::failure(500));
        keys.remember(Line::Kept(Kept { key, fingerprint, answer, id: None, at: begun, applied: 0 }), begun);
        (1..10).map(|step| step * 40).find(|ms| {
            let now = begun + TimeDelta::milliseconds(*ms);
            matches!(keys.begin(books, "k", &request, now), Begin::Fresh)
        })
    }

    #[test]
    fn retention_is_counted_from_the_first_or_from_the_last_use() {
        assert_eq!((forgotten_after(CountedFrom::First), forgotten_after(CountedFrom::Last)), (Some(120), None));
    }

    #[test]
    fn the_last_use_is_known_from_the_arrivals_after_a_restart() {
        let at = |ms| DateTime::<Utc>::default() + TimeDelta::milliseconds(ms);
        let convention =
            Convention { retention_ms: Some(100), counted_from: CountedFrom::Last, ..Convention::default() };
        let (books, request) = (Books { convention: &convention, applied: &[] }, request());
        let arrival = |ms| Arrival {
            number: 1,
            method: "POST".into(),
            path_and_query: "/x".into(),
            key: Some("k".into()),
            headers: Vec::new(),
            body: "{}".into(),
            at: at(ms),
        };
        let (key, fingerprint, answer) = ("k".to_owned(), request.fingerprint(&convention), Answer::failure(500));
        let kept = Kept { key, fingerprint, answer, id: None, at: at(0), applied: 0 };
        let rebuilt = || Keys::rebuild(books, Vec::new(), vec![Line::Kept(kept.clone())], &[arrival(0), arrival(90)]);
        assert!(matches!(rebuilt().begin(books, "k", &request, at(180)), Begin::Settled(_)));
        assert!(matches!(rebuilt().begin(books, "k", &request, at(190)), Begin::Fresh));
    }
}
