//! Processes that are killed, stopped and woken, and asked to end, while others go on.

use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use deedbox_books::Behaviour;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::fleet::{self, Member, Part};
use super::invariants;
use super::stage::Stage;
use super::until;
use crate::harness::{long, seed, tell};

/// The fleet's lease and poll.
const LEASE: TimeDelta = TimeDelta::milliseconds(2_100);
/// For a busy machine.
const SLACK: TimeDelta = TimeDelta::seconds(6);

/// What was done to one process.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    killed: usize,
    stopped: usize,
    drained: usize,
}

async fn torment(mut member: Member, mut dice: StdRng, over: Instant) -> (Member, Done) {
    let mut done = Done::default();
    while Instant::now() < over {
        tokio::time::sleep(Duration::from_millis(dice.random_range(200..1_200))).await;
        match dice.random_range(0..3) {
            0 => {
                member.kill_and_start_again().await;
                done.killed += 1;
            }
            1 => {
                // Some shorter than a lease, some longer.
                member.stand_still(Duration::from_millis(dice.random_range(300..3_500))).await;
                done.stopped += 1;
            }
            _ => {
                member.drain_and_start_again().await;
                done.drained += 1;
            }
        }
    }
    (member, done)
}

/// R-A04, R-A05, F-C01, F-C04, F-C06.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_processes_killed_and_stopped_at_random_lose_nothing_and_double_nothing() {
    let seed = seed();
    tell(&format!("chaos kills: seed {seed}"));
    let mut dice = StdRng::seed_from_u64(seed);
    let stage = Stage::fresh().await;
    stage.unsettle(&mut dice).await;
    let ground = stage.ground(&stage.world.database.url);
    let fleet = ground.fleet(2, 2).await;
    let load = stage.load(&ground.origins, seed);
    load.goes_on(5).await;

    let lasts = Duration::from_secs(if long() { 150 } else { 20 });
    let over = Instant::now() + lasts;
    let mut tormented = JoinSet::new();
    for (i, member) in fleet.into_iter().enumerate() {
        tormented.spawn(torment(member, StdRng::seed_from_u64(seed.wrapping_add(i as u64 + 1)), over));
    }
    let (mut fleet, mut all) = (Vec::new(), Done::default());
    while let Some(one) = tormented.join_next().await {
        let (member, done) = one.unwrap();
        fleet.push(member);
        all = Done {
            killed: all.killed + done.killed,
            stopped: all.stopped + done.stopped,
            drained: all.drained + done.drained,
        };
    }
    let starts = load.end().await;
    stage.drained().await;
    fleet::end(fleet).await;
    let seen = stage.seen(starts).await;
    let Done { killed, stopped, drained } = all;
    tell(&format!(
        "chaos kills: seed {seed}, {killed} killed, {stopped} stopped and woken, {drained} drained in {} s; {}",
        lasts.as_secs(),
        seen.figures()
    ));
    assert!(killed > 0 && stopped > 0 && drained > 0 && seen.starts.acknowledged.len() > 15, "{all:?}");
    invariants::assert_none(&seen);
}

const AT_THE_PROVIDER: usize = 8;
const OTHERS: usize = 4;

/// F-K04: runs that were queued, running, or waiting for their retry go on under a process that has nothing of the first
/// but the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_under_another_name_goes_on_with_the_runs_of_a_killed_one() {
    let stage = Stage::fresh().await;
    let world = &stage.world;
    world.script(&vec![Behaviour::HoldAfterApply; AT_THE_PROVIDER]).await;
    let late = json!({ "retry": { "initial_interval": "3s", "max_attempts": 3 } });
    world.deploy("fail-until", "stripe", late).await;
    let ground = stage.ground(&world.database.url);
    let mut first = Member::start(ground.clone(), Part::Worker, 0).await;
    let mut runs: Vec<Uuid> = Vec::new();
    for number in 0..AT_THE_PROVIDER {
        runs.push(world.start("send", stage.calls().charge(number)).await);
    }
    for _ in 0..OTHERS {
        runs.push(world.start("fail-until", json!({ "attempt": 2 })).await);
    }
    world.books.wait_for_applied(AT_THE_PROVIDER as u64, Duration::from_secs(30)).await.unwrap();
    until("the others wait for their retry", async || {
        let mut all = Vec::new();
        for run in &runs[AT_THE_PROVIDER..] {
            all.push(world.run(*run).await.state);
        }
        all.iter().all(|state| state == "waiting")
    })
    .await;
    first.kill().await;
    let killed = Utc::now();
    for _ in 0..OTHERS {
        runs.push(world.start("noop", json!({})).await);
    }

    let second = Member::start(ground, Part::Worker, 1).await;
    let name = second.name();
    for run in &runs {
        until("the run has ended", async || world.run(*run).await.ended_at.is_some()).await;
        let attempts = world.attempts(*run).await;
        let last = attempts.last().unwrap();
        assert_eq!((world.run(*run).await.state.as_str(), last.worker.as_str()), ("completed", name.as_str()));
        let waited = last.started_at - killed;
        // The pause of a retry is longer than a lease.
        assert!(waited <= LEASE + TimeDelta::seconds(3) + SLACK, "{waited}");
    }
    second.end().await;
    let starts = super::load::Starts { acknowledged: runs, ..super::load::Starts::default() };
    let seen = stage.seen(starts).await;
    assert!(seen.attempts.iter().any(|attempt| attempt.worker != name));
    tell(&format!("chaos new name: {}", seen.figures()));
    invariants::assert_none(&seen);
}
