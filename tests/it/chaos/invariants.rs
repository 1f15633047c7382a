//! What must be true after any storm, once the faults are over and all is drained. Each check gives a line for every breach
//! that it finds; `planted` shows that each can. They read what was written down, and believe nobody.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::TimeDelta;
use serde_json::Value;
use uuid::Uuid;

use super::seen::{Attempt, Book, Effect, Seen};

/// A statement's time is that of its beginning: one that had to wait for another may seem to come before it.
const WAITED_AT_MOST: TimeDelta = TimeDelta::milliseconds(500);

/// All breaches. None in a healthy system.
pub fn breaches(seen: &Seen) -> Vec<String> {
    let books = Books::of(seen);
    [
        seen.starts.odd.clone(),
        confirmed(seen),
        told(seen),
        runs(seen),
        attempts(seen),
        sends(seen),
        wire_keys(seen),
        books.applied(seen),
        books.arrived(seen),
        doubled(seen),
    ]
    .concat()
}

#[track_caller]
pub fn assert_none(seen: &Seen) {
    let found = breaches(seen);
    let stories: Vec<String> = found.iter().flat_map(|line| seen.story_of(line)).collect();
    assert!(found.is_empty(), "{} breaches:\n{}\n{}", found.len(), found.join("\n"), stories.join("\n"));
}

/// Nothing that was confirmed is lost.
fn confirmed(seen: &Seen) -> Vec<String> {
    let lost = seen.starts.acknowledged.iter().filter(|run| !seen.runs.contains_key(run));
    lost.map(|run| format!("run {run} was confirmed and is lost")).collect()
}

/// What a caller was told of a run's end stays true.
fn told(seen: &Seen) -> Vec<String> {
    let now = |run: &Uuid| seen.runs.get(run).map_or("lost", |run| run.state.as_str());
    let other = seen.starts.told.iter().filter(|(run, state)| now(run) != state.as_str());
    other.map(|(run, state)| format!("run {run} was told to be {state} and is {}", now(run))).collect()
}

/// Every run has come to an end or waits for an answer, within its attempts.
fn runs(seen: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    let effects = by_run(&seen.effects, |effect| effect.run);
    let attempts = by_run(&seen.attempts, |attempt| attempt.run);
    for (id, run) in &seen.runs {
        let own = effects.get(id).map_or(&[][..], Vec::as_slice);
        let asks = own.iter().any(|effect| effect.state == "escaped");
        if !(run.ended || run.state == "waiting" && asks) {
            found.push(format!("run {id} is {} and neither ends nor waits for an answer", run.state));
        }
        if run.spent > run.max_attempts || run.spent > run.attempts {
            found.push(format!(
                "run {id} has spent {} of {} attempts, {} begun",
                run.spent, run.max_attempts, run.attempts
            ));
        }
        let last = attempts.get(id).and_then(|all| all.last());
        if last.map_or(0, |attempt| attempt.attempt) != run.attempts || last.is_some_and(|a| a.token > run.token) {
            found.push(format!("run {id} counts {} attempts, and the last is {last:?}", run.attempts));
        }
        if run.state == "completed" && own.iter().any(|effect| effect.state != "completed") {
            found.push(format!("run {id} is completed with an unsettled effect: {own:?}"));
        }
        let completed = attempts.get(id).map_or(&[][..], Vec::as_slice);
        let ends: Vec<bool> = completed.iter().map(|a| a.outcome.as_deref() == Some("completed")).collect();
        let once = ends.iter().filter(|end| **end).count() == 1 && ends.last() == Some(&true);
        if (run.state == "completed") != once {
            found.push(format!("run {id} is {}, and attempts completed: {ends:?}", run.state));
        }
    }
    found
}

/// Numbered without gaps, under growing tokens, one after another in time.
fn attempts(seen: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    for (run, all) in by_run(&seen.attempts, |attempt| attempt.run) {
        for (i, attempt) in all.iter().enumerate() {
            if attempt.attempt != i as i32 + 1 {
                found.push(format!("run {run} has an attempt {} in place {}", attempt.attempt, i + 1));
            }
            match attempt.ended_at {
                None => found.push(format!("attempt {} of run {run} never ended", attempt.attempt)),
                Some(end) if end < attempt.started_at => {
                    found.push(format!("attempt {} of run {run} ended before it began", attempt.attempt));
                }
                Some(_) => {}
            }
        }
        found.extend(all.windows(2).filter_map(|pair| overlap(pair[0], pair[1])));
    }
    found
}

fn overlap(one: &Attempt, next: &Attempt) -> Option<String> {
    let run = one.run;
    if next.token <= one.token {
        return Some(format!("the token of run {run} went from {} to {}", one.token, next.token));
    }
    let overlaps = one.ended_at.is_some_and(|end| next.started_at + WAITED_AT_MOST < end);
    overlaps.then(|| format!("attempt {} of run {run} began before the former ended", next.attempt))
}

/// Numbered without gaps, by attempts that there were, never for an older holder.
fn sends(seen: &Seen) -> Vec<String> {
    let mut found = Vec::new();
    let tokens: HashMap<_, _> = seen.attempts.iter().map(|a| ((a.run, a.attempt), a.token)).collect();
    let mut by_effect: BTreeMap<&[u8], Vec<_>> = BTreeMap::new();
    for send in &seen.sends {
        by_effect.entry(&send.effect).or_default().push(send);
    }
    for effect in &seen.effects {
        let all = by_effect.remove(effect.id.as_slice()).unwrap_or_default();
        let name = &effect.identity;
        if !all.iter().map(|send| send.send).eq(1..=effect.holder_send) {
            found.push(format!("effect {name} is at send {}, and has {} sends", effect.holder_send, all.len()));
        }
        if all.windows(2).any(|pair| pair[1].token < pair[0].token) {
            found.push(format!("a send of effect {name} was made for an older holder"));
        }
        if all.iter().any(|send| tokens.get(&(send.run, send.attempt)) != Some(&send.token)) {
            found.push(format!("a send of effect {name} belongs to no attempt"));
        }
    }
    found.extend(by_effect.keys().map(|effect| format!("sends of an effect that is not there: {effect:02x?}")));
    found
}

/// One key, one request, whoever sent it and how often.
fn wire_keys(seen: &Seen) -> Vec<String> {
    let mut requests: HashMap<&str, BTreeSet<(&str, &str, &str)>> = HashMap::new();
    for arrival in &seen.keyed.arrivals {
        let request = (arrival.method.as_str(), arrival.path_and_query.as_str(), arrival.body.as_str());
        requests.entry(arrival.key.as_deref().unwrap_or_default()).or_default().insert(request);
    }
    let mut found: Vec<String> = requests
        .iter()
        .filter(|(key, all)| key.is_empty() || all.len() > 1)
        .map(|(key, all)| format!("the key {key:?} arrived with {} requests: {all:?}", all.len()))
        .collect();
    let mut marks = HashMap::new();
    for arrival in &seen.keyed.arrivals {
        let key = marks.entry(mark(&arrival.body)).or_insert(&arrival.key);
        if *key != &arrival.key {
            found.push(format!("the call {} arrived under two keys", mark(&arrival.body)));
        }
    }
    found
}

fn doubled(seen: &Seen) -> Vec<String> {
    let doubled = seen.effects.iter().filter(|effect| effect.doubled);
    doubled.map(|effect| format!("effect {} was doubled", effect.identity)).collect()
}

/// How often each call was applied and arrived, by its key, or by its mark where it has none.
struct Books {
    applied: HashMap<String, usize>,
    arrived: HashMap<String, usize>,
}

impl Books {
    fn of(seen: &Seen) -> Self {
        let mut books = Self { applied: HashMap::new(), arrived: HashMap::new() };
        let Book { arrivals, applied } = &seen.keyed;
        applied.iter().for_each(|entry| count(&mut books.applied, entry.key.clone().unwrap_or_default()));
        arrivals.iter().for_each(|arrival| count(&mut books.arrived, arrival.key.clone().unwrap_or_default()));
        let Book { arrivals, applied } = &seen.keyless;
        applied.iter().for_each(|entry| count(&mut books.applied, mark(&entry.body)));
        arrivals.iter().for_each(|arrival| count(&mut books.arrived, mark(&arrival.body)));
        books
    }

    /// A completed effect was applied once, one whose outcome nobody knows at most once, any other never.
    fn applied(&self, seen: &Seen) -> Vec<String> {
        let mut found = Vec::new();
        let mut known = BTreeSet::new();
        for effect in &seen.effects {
            let name = name(effect);
            let times = self.applied.get(name).copied().unwrap_or_default();
            let right = match effect.state.as_str() {
                "completed" => times == usize::from(effect.status.is_some_and(|status| status < 400)),
                "escaped" => times <= 1,
                _ => times == 0,
            };
            if !right {
                found.push(format!("effect {} is {} and was applied {times} times", effect.identity, effect.state));
            }
            known.insert(name);
        }
        let unknown = self.applied.keys().filter(|name| !known.contains(name.as_str()));
        found.extend(unknown.map(|name| format!("{name:?} was applied, and no effect knows of it")));
        found
    }

    /// Nothing arrived that was not claimed before.
    fn arrived(&self, seen: &Seen) -> Vec<String> {
        let sends: HashMap<&str, usize> =
            seen.effects.iter().map(|effect| (name(effect), effect.holder_send.unsigned_abs() as usize)).collect();
        let claimed = |name: &str| sends.get(name).copied().unwrap_or_default();
        let more = self.arrived.iter().filter(|(name, times)| **times > claimed(name));
        more.map(|(name, times)| format!("{name:?} arrived {times} times for {} claims", claimed(name))).collect()
    }
}

fn name(effect: &Effect) -> &str {
    effect.wire_key.as_deref().unwrap_or(&effect.identity)
}

/// What the load wrote into the body, to know the call again.
fn mark(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    body["mark"].as_str().unwrap_or_default().to_owned()
}

fn count(times: &mut HashMap<String, usize>, name: String) {
    *times.entry(name).or_default() += 1;
}

fn by_run<T>(all: &[T], run: impl Fn(&T) -> Uuid) -> BTreeMap<Uuid, Vec<&T>> {
    let mut by_run: BTreeMap<Uuid, Vec<&T>> = BTreeMap::new();
    for one in all {
        by_run.entry(run(one)).or_default().push(one);
    }
    by_run
}
