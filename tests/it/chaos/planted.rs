//! Every breach that the checks are for, planted into what a healthy system writes down: each must be seen, and the healthy
//! one must pass.

use chrono::{DateTime, TimeDelta, Utc};
use deedbox_books::{Arrival, Entry};
use uuid::Uuid;

use super::invariants::breaches;
use super::load::Starts;
use super::seen::{Attempt, Book, Effect, Run, Seen, Send};

const CHARGED: Uuid = Uuid::from_u128(1);
const ASKED: Uuid = Uuid::from_u128(2);

/// A run that charged once although its first worker was lost, and one that waits for an answer.
fn healthy() -> Seen {
    let run = |state: &str, attempts| Run {
        state: state.to_owned(),
        attempts,
        spent: attempts,
        max_attempts: 3,
        token: attempts.into(),
        ended: state == "completed",
    };
    Seen {
        starts: Starts {
            acknowledged: vec![CHARGED, ASKED],
            told: [(CHARGED, "completed".to_owned())].into(),
            ..Starts::default()
        },
        runs: [(CHARGED, run("completed", 2)), (ASKED, run("waiting", 1))].into(),
        attempts: vec![
            attempt(CHARGED, 1, "worker-lost"),
            attempt(CHARGED, 2, "completed"),
            attempt(ASKED, 1, "suspended"),
        ],
        effects: vec![effect(1, CHARGED, "completed"), effect(2, ASKED, "escaped")],
        sends: vec![send(1, CHARGED, 1), send(1, CHARGED, 2), send(2, ASKED, 1)],
        keyed: Book { arrivals: vec![arrival("1"), arrival("1")], applied: vec![entry("1")] },
        keyless: Book { arrivals: vec![arrival("2")], applied: vec![entry("2")] },
    }
}

fn at(second: i32) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::seconds(second.into())
}

fn attempt(run: Uuid, number: i32, outcome: &str) -> Attempt {
    Attempt {
        run,
        attempt: number,
        token: number.into(),
        worker: "w".to_owned(),
        started_at: at(10 * number),
        ended_at: Some(at(10 * number + 10)),
        outcome: Some(outcome.to_owned()),
        failure: None,
    }
}

fn effect(number: u8, run: Uuid, state: &str) -> Effect {
    let keyed = number == 1;
    Effect {
        id: vec![number],
        run,
        identity: number.to_string(),
        state: state.to_owned(),
        wire_key: keyed.then(|| format!("key-{number}")),
        doubled: false,
        holder_send: if keyed { 2 } else { 1 },
        status: (state == "completed").then_some(201),
    }
}

fn send(effect: u8, run: Uuid, number: i32) -> Send {
    Send { effect: vec![effect], send: number, run, attempt: number, token: number.into(), course: String::new() }
}

fn body(mark: &str) -> String {
    format!("{{\"mark\":\"{mark}\"}}")
}

fn arrival(mark: &str) -> Arrival {
    Arrival {
        number: 1,
        method: "POST".to_owned(),
        path_and_query: "/v1/charges".to_owned(),
        key: (mark != "2").then(|| format!("key-{mark}")),
        headers: Vec::new(),
        body: body(mark),
        at: at(0),
    }
}

fn entry(mark: &str) -> Entry {
    Entry {
        number: 1,
        key: (mark != "2").then(|| format!("key-{mark}")),
        method: "POST".to_owned(),
        path: "/v1/charges".to_owned(),
        body_blake3: String::new(),
        body: body(mark),
        headers: Vec::new(),
        at: at(0),
    }
}

type Plant = (&'static str, fn(&mut Seen));

const OF_RUNS: [Plant; 9] = [
    ("was confirmed and is lost", |seen| seen.starts.acknowledged.push(Uuid::from_u128(3))),
    ("was told to be failed", |seen| drop(seen.starts.told.insert(CHARGED, "failed".to_owned()))),
    ("a start was answered", |seen| seen.starts.odd.push("a start was answered with 500".to_owned())),
    ("neither ends nor waits", |seen| {
        let run = seen.runs.get_mut(&CHARGED).unwrap();
        (run.state, run.ended) = ("running".to_owned(), false);
    }),
    ("neither ends nor waits", |seen| seen.effects[1].state = "completed".to_owned()),
    ("has spent 4 of 3", |seen| seen.runs.get_mut(&CHARGED).unwrap().spent = 4),
    ("counts 3 attempts", |seen| seen.runs.get_mut(&CHARGED).unwrap().attempts = 3),
    ("with an unsettled effect", |seen| seen.effects[0].state = "claimed".to_owned()),
    ("attempts completed: [true, true]", |seen| seen.attempts[0].outcome = Some("completed".to_owned())),
];

const OF_ATTEMPTS: [Plant; 6] = [
    ("has an attempt 3 in place 2", |seen| seen.attempts[1].attempt = 3),
    ("never ended", |seen| seen.attempts[1].ended_at = None),
    ("ended before it began", |seen| seen.attempts[1].ended_at = Some(at(1))),
    ("went from 2 to 2", |seen| seen.attempts[0].token = 2),
    ("began before the former ended", |seen| seen.attempts[1].started_at = at(19)),
    ("counts 2 attempts", |seen| drop(seen.attempts.remove(1))),
];

const OF_EFFECTS: [Plant; 7] = [
    ("is at send 2, and has 1 sends", |seen| drop(seen.sends.remove(0))),
    ("for an older holder", |seen| seen.sends[0].token = 3),
    ("belongs to no attempt", |seen| seen.sends[1].token = 3),
    ("an effect that is not there", |seen| seen.sends.push(send(9, CHARGED, 1))),
    ("was doubled", |seen| seen.effects[0].doubled = true),
    ("arrived 3 times for 2 claims", |seen| seen.keyed.arrivals.push(arrival("1"))),
    ("arrived 2 times for 1 claims", |seen| seen.keyless.arrivals.push(arrival("2"))),
];

const OF_BOOKS: [Plant; 9] = [
    ("is completed and was applied 2 times", |seen| seen.keyed.applied.push(entry("1"))),
    ("is completed and was applied 0 times", |seen| seen.keyed.applied.clear()),
    ("is escaped and was applied 2 times", |seen| seen.keyless.applied.push(entry("2"))),
    ("is released and was applied 1 times", |seen| seen.effects[0].state = "released".to_owned()),
    ("no effect knows of it", |seen| seen.keyed.applied.push(entry("7"))),
    ("no effect knows of it", |seen| seen.keyless.applied[0].body = body("8")),
    ("arrived with 2 requests", |seen| seen.keyed.arrivals[1].body = body("other")),
    ("arrived under two keys", |seen| seen.keyed.arrivals[1].key = Some("key-other".to_owned())),
    ("the key \"\" arrived", |seen| seen.keyed.arrivals[1].key = None),
];

#[test]
fn every_planted_breach_is_seen() {
    assert_eq!(breaches(&healthy()), Vec::<String>::new());
    for (said, plant) in [&OF_RUNS[..], &OF_ATTEMPTS, &OF_EFFECTS, &OF_BOOKS].concat() {
        let mut seen = healthy();
        plant(&mut seen);
        let found = breaches(&seen);
        assert!(found.iter().any(|line| line.contains(said)), "{said:?} was not seen: {found:?}");
    }
}

/// An escaped effect may or may not have been applied.
#[test]
fn what_nobody_can_know_is_no_breach() {
    let mut seen = healthy();
    seen.keyless.applied.clear();
    assert_eq!(breaches(&seen), Vec::<String>::new());
}
