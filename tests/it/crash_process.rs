//! Cells of the crash matrix with real processes, SIGKILL and SIGSTOP, and what only a process can show: a lease that
//! ends by itself, recovery in time, and a run that takes its workers down.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use deedbox::config::Config;
use deedbox::node::Node;
use deedbox::probe;
use deedbox::store::ledger;
use deedbox_books::Behaviour;
use serde_json::json;
use uuid::Uuid;

use crate::harness::cell::{
    At, Cell, Kind, PATIENCE, Then, effect, everything, everything_written, logs, unchanged, work_until_settled,
};
use crate::harness::process::Process;
use crate::harness::{World, config, long, node, skipped, work_once};

const LEASE_MS: u64 = 2_000;
const POLL_MS: u64 = 100;

/// For a busy machine.
const SLACK: TimeDelta = TimeDelta::seconds(5);

/// How every process is set.
const SETTINGS: &str = "
    worker = { lease_ms = 2000, poll_ms = 100, grace_ms = 10000 }
    gateway = { default_send_ms = 60000, max_send_ms = 60000 }
    host = { max_instances = 128, max_memory_bytes = 33554432, default_memory_bytes = 33554432 }";

macro_rules! cells {
    ($how:ident, $then:ident: $($name:ident = $kind:ident $at:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $how(Cell { at: At::$at, then: Then::$then, kind: Kind::$kind }).await;
            }
        )*
    };
}

/// R-A01, R-A04, R-E01, R-E02, R-E19, F-B01, F-B02, F-C04: SIGKILL at the point, and another worker takes over once the lease has run out.
mod killed {
    use super::*;

    cells! { kill_and_take_over, AnotherTakesOver:
        before_the_claim_keyless = Keyless BeforeClaim
        after_the_claim_keyed = Keyed AfterClaim
        after_the_claim_keyless = Keyless AfterClaim
        after_the_send_keyed = Keyed AfterSend
        after_the_send_keyless = Keyless AfterSend
        after_the_provider_applied_keyed = Keyed AfterApply
        after_the_provider_applied_keyless = Keyless AfterApply
        after_the_response_keyed = Keyed AfterResponse
        after_the_response_keyless = Keyless AfterResponse
        after_the_settlement_keyless = Keyless AfterSettle
        before_the_finish_keyed = Keyed BeforeFinish
    }
}

/// R-A05, R-D20, R-L27, F-C01: SIGSTOP at the point past the lease's end, another worker does all there is to do, SIGCONT.
mod stopped {
    use super::*;

    cells! { stop_and_wake_late, FirstWakesLate:
        before_the_claim_keyed = Keyed BeforeClaim
        after_the_claim_keyed = Keyed AfterClaim
        after_the_claim_keyless = Keyless AfterClaim
        after_the_response_keyed = Keyed AfterResponse
        after_the_response_keyless = Keyless AfterResponse
        after_the_settlement_keyless = Keyless AfterSettle
        before_the_finish_keyless = Keyless BeforeFinish
    }
}

/// F-B01, F-B02, F-C01, F-C04: the whole matrix, by SIGKILL and by SIGSTOP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_cell_survives_with_real_processes() {
    if !long() {
        return skipped("every cell of the crash matrix with real processes");
    }
    for at in At::ALL {
        for kind in [Kind::Keyed, Kind::Keyless] {
            kill_and_take_over(Cell { at, then: Then::AnotherTakesOver, kind }).await;
            stop_and_wake_late(Cell { at, then: Then::FirstWakesLate, kind }).await;
        }
    }
}

async fn kill_and_take_over(cell: Cell) {
    let (world, run) = cell.set_up(short()).await;
    hold(cell, &world).await.kill();
    let lost = world.run(run).await;
    assert_eq!(lost.state, "running");
    let second = second(&world).await;
    work_until_settled(&world, &second, run).await;
    cell.check(&world, run, true).await;
    // Not before the lease's end, and soon after it.
    let waited = world.attempts(run).await[1].started_at - lost.due_at.unwrap();
    let poll = TimeDelta::milliseconds(POLL_MS as i64);
    assert!(TimeDelta::zero() <= waited && waited <= poll + SLACK, "{waited}");
}

async fn stop_and_wake_late(cell: Cell) {
    let (world, run) = cell.set_up(short()).await;
    let mut first = hold(cell, &world).await;
    first.stop().await;
    let second = second(&world).await;
    work_once(&second).await;
    world.books.release().await.unwrap();
    if matches!(cell.at, At::AfterSend | At::AfterApply) {
        world.books.wait_for_applied(1, PATIENCE).await.unwrap();
    }
    work_until_settled(&world, &second, run).await;
    cell.check(&world, run, false).await;
    let (written, arrivals) = (everything_written(&world).await, world.books.arrivals().await.unwrap());
    first.wake();
    if cell.kind == Kind::Keyless && cell.is_proved_late() {
        // The woken process may itself be the one that goes on with the run, which by now nobody holds.
        let ended = wait_for_end(&world, run).await;
        assert_eq!(ended, "completed");
        first.drain().await;
        assert_eq!(world.outcomes(run).await, ["worker-lost", "suspended", "completed"]);
        assert_eq!(effect(&world, run).await.state, "completed");
        assert_eq!(world.books.applied().await.unwrap().len(), 1);
    } else {
        first.drain().await;
        unchanged(&written, &everything_written(&world).await);
        cell.check(&world, run, true).await;
    }
    assert_eq!(world.books.arrivals().await.unwrap(), arrivals, "it sent something");
}

/// F-B02. The ledger's words for an effect that nobody can know about yet: not done, not absent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_worker_was_killed_is_listed_as_claimed() {
    let cell = Cell { at: At::AfterApply, then: Then::AnotherTakesOver, kind: Kind::Keyed };
    let began = Utc::now();
    let (world, run) = cell.set_up(short()).await;
    hold(cell, &world).await.kill();

    let listed = ledger::list(world.node.store(), "acme", &everything()).await.unwrap();
    assert_eq!(listed.len(), 1);
    let effect = &listed[0];
    assert_eq!((effect.state.as_str(), effect.status, effect.settled_at), ("claimed", None, None));
    assert_eq!((effect.method.as_str(), &effect.url, effect.run_id), ("POST", &world.charges(), run));
    assert_eq!(effect.wire_key, world.books.applied().await.unwrap()[0].key);
    assert_eq!((effect.provider.as_str(), effect.digest.len()), ("stripe", 32));
    assert!(began <= effect.first_sent_at && effect.first_sent_at <= Utc::now(), "{effect:?}");
    let sends = ledger::list_sends(world.node.store(), "acme", std::slice::from_ref(&effect.effect_id)).await.unwrap();
    assert_eq!(sends.len(), 1);
    assert_eq!((sends[0].send, sends[0].attempt, sends[0].run_id), (1, 1, run));
    assert_eq!((sends[0].ended_at, &sends[0].result), (None, &None));
}

/// F-C01, two take-overs in a row: of three workers only the last finishes, and the logs of the others are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_that_wake_late_change_nothing() {
    let (world, run) = two_charges("trap").await;
    let mut first = Process::start(&world, "one", Some("after-return"), SETTINGS).await;
    first.held().await;
    first.stop().await;
    let mut second = Process::start(&world, "two", Some("before-finish"), SETTINGS).await;
    second.held().await;
    second.stop().await;
    let third = node(&world.database, "three", short(), probe::none()).await;
    work_until_settled(&world, &third, run).await;
    let (written, arrivals) = (everything_written(&world).await, world.books.arrivals().await.unwrap());

    second.wake();
    first.wake();
    first.drain().await;
    second.drain().await;
    unchanged(&written, &everything_written(&world).await);
    assert_eq!(world.books.arrivals().await.unwrap(), arrivals);
    assert_eq!(world.outcomes(run).await, ["worker-lost", "worker-lost", "completed"]);
    assert_eq!(world.books.applied().await.unwrap().len(), 2);
    // The second wrote its log while it still had the lease; the first had something to say, too, but came too late.
    let kept: Vec<_> = logs(&world, run).await.into_iter().map(|log| (log.attempt, log.stream)).collect();
    assert_eq!(kept, [(2, "stderr".to_owned())]);
}

/// F-C01: the call after the one at which it was stopped is refused before it reaches the wire.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_wakes_late_starts_no_new_call() {
    let (world, run) = two_charges("return").await;
    let mut first = Process::start(&world, "one", Some("after-settle"), SETTINGS).await;
    first.held().await;
    first.stop().await;
    let second = second(&world).await;
    work_until_settled(&world, &second, run).await;
    let written = everything_written(&world).await;
    first.wake();
    first.drain().await;
    unchanged(&written, &everything_written(&world).await);
    assert_eq!(world.outcomes(run).await, ["worker-lost", "completed"]);
    let sends: Vec<_> = world.sends(run).await.into_iter().map(|send| (send.attempt, send.result)).collect();
    assert_eq!(sends, [(1, Some("answered".to_owned())), (2, Some("answered".to_owned()))]);
    assert_eq!(world.books.arrivals().await.unwrap().len(), 2);
}

/// F-C04, R-L28: everything that a killed worker was at is taken up at once, and nothing is applied again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_runs_of_a_killed_worker_recover_in_time() {
    let count = if long() { 100 } else { 40 };
    let world = World::with(deedbox_books::Options { keyless: false, convention: None }, short()).await;
    world.script(&vec![Behaviour::HoldAfterApply; count]).await;
    world.deploy("send", "stripe", json!({ "retry": { "max_attempts": 100, "initial_interval": "20ms" } })).await;
    let call = json!({ "method": "POST", "url": world.charges(), "json": {} });
    let mut runs = Vec::new();
    for _ in 0..count {
        runs.push(world.start("send", json!({ "calls": [call], "fail_on_error": true })).await);
    }
    let first = Process::start(&world, "one", None, SETTINGS).await;
    world.books.wait_for_applied(count as u64, PATIENCE).await.unwrap();
    first.kill();
    let mut lease_ends = Vec::new();
    for run in &runs {
        lease_ends.push(world.run(*run).await.due_at.unwrap());
    }
    let second = Process::start(&world, "two", None, SETTINGS).await;
    for (run, lease_end) in runs.into_iter().zip(lease_ends) {
        assert_eq!(wait_for_end(&world, run).await, "completed");
        let attempts = world.attempts(run).await;
        assert_eq!((attempts[0].outcome.as_deref(), attempts[1].worker.as_str()), (Some("worker-lost"), "two"));
        let waited = attempts[1].started_at - lease_end;
        assert!(waited <= TimeDelta::milliseconds(POLL_MS as i64) + SLACK, "{waited}");
    }
    second.drain().await;
    assert_eq!(world.books.applied().await.unwrap().len(), count);
}

/// F-C05: a run that takes its worker down in each attempt fails at `max_attempts`; others go on beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_kills_its_workers_fails_as_worker_lost() {
    let world = World::with(deedbox_books::Options { keyless: false, convention: None }, short()).await;
    world.deploy("send", "stripe", json!({ "retry": { "max_attempts": 3 } })).await;
    world.deploy("noop", "stripe", json!({})).await;
    let call = json!({ "method": "POST", "url": world.charges(), "json": {} });
    let poison = world.start("send", json!({ "calls": [call] })).await;
    for attempt in 1..=3 {
        let mut worker = Process::start(&world, &format!("worker-{attempt}"), Some("after-claim"), SETTINGS).await;
        worker.held().await;
        let other = world.start("noop", json!(attempt)).await;
        assert_eq!(wait_for_end(&world, other).await, "completed");
        worker.kill();
        assert_eq!(world.run(poison).await.attempts, attempt);
    }
    let healthy = second(&world).await;
    let other = world.start("noop", json!("last")).await;
    work_until_settled(&world, &healthy, poison).await;
    assert_eq!(world.failure(poison).await["code"], "worker-lost");
    assert_eq!(world.outcomes(poison).await, ["worker-lost"; 3]);
    assert_eq!(world.output(other).await, json!("last"));
    // The question stays open for all to see, though nothing ever left.
    assert_eq!(effect(&world, poison).await.state, "escaped");
    assert!(world.books.arrivals().await.unwrap().is_empty());
}

/// A first worker, alive, at the cell's point.
async fn hold(cell: Cell, world: &World) -> Process {
    let point = cell.at.point().map(|_| point_word(cell.at));
    let mut first = Process::start(world, "one", point, SETTINGS).await;
    match point {
        Some(_) => first.held().await,
        None => cell.held_by_provider(world).await,
    }
    first
}

fn point_word(at: At) -> &'static str {
    match at {
        At::BeforeClaim => "before-claim",
        At::AfterClaim => "after-claim",
        At::AfterResponse => "after-response",
        At::AfterSettle => "after-settle",
        At::AfterReturn => "after-return",
        At::BeforeFinish => "before-finish",
        At::AfterSend | At::AfterApply => unreachable!("the provider holds it"),
    }
}

/// Two effects; the first two attempts end as told, the third returns.
async fn two_charges(first_attempts: &str) -> (World, Uuid) {
    let world = World::with(deedbox_books::Options { keyless: false, convention: None }, short()).await;
    world.deploy("send", "stripe", json!({ "retry": { "max_attempts": 5 } })).await;
    let call =
        |name: &str| json!({ "method": "POST", "url": world.charges(), "json": {}, "identity": { "named": name } });
    let then = [first_attempts, first_attempts, "return"];
    let run = world.start("send", json!({ "calls": [call("a"), call("b")], "then": then })).await;
    (world, run)
}

async fn second(world: &World) -> Node {
    node(&world.database, "two", short(), probe::none()).await
}

async fn wait_for_end(world: &World, run: Uuid) -> String {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let run = world.run(run).await;
        if run.ended_at.is_some() {
            return run.state;
        }
        assert!(Instant::now() < give_up, "{run:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn short() -> Config {
    let mut config = config();
    config.worker.lease_ms = LEASE_MS;
    config.worker.poll_ms = POLL_MS;
    config
}
