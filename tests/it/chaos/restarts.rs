//! A database that is restarted again and again while the engine works.

use chrono::{DateTime, TimeDelta, Utc};

use super::fleet::{self, until_ready_is};
use super::invariants;
use super::seen::{Attempt, Seen};
use super::stage::Stage;
use crate::harness::own_server::OwnServer;
use crate::harness::{seed, tell};

const RESTARTS: usize = 5;
/// Starts between two restarts.
const BETWEEN: usize = 25;
/// How long after a restart an attempt may still meet what is left of it: connections find out by themselves that they are
/// gone, and a worker that waits for a connection looks for one with growing pauses.
const FINDS_OUT: TimeDelta = TimeDelta::seconds(1);
const LOOKS_AGAIN: TimeDelta = TimeDelta::seconds(3);
/// Ends of attempts that spend nothing.
const FOR_NOTHING: [&str; 3] = ["suspended", "drained", "interrupted"];

type Window = (DateTime<Utc>, DateTime<Utc>);

/// F-I04: all runs end, no process does, and only runs that were cut have another attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_restarts_of_the_database_cost_only_the_attempts_that_they_cut() {
    let seed = seed();
    let mut server = OwnServer::start().await;
    let stage = Stage::on(server.migrated("restarts").await).await;
    let ground = stage.ground(&stage.world.database.url);
    let mut fleet = ground.fleet(1, 1).await;
    let load = stage.load(&ground.origins, seed);
    let mut windows: Vec<Window> = Vec::new();
    for round in 0..RESTARTS {
        load.goes_on(BETWEEN).await;
        let began = Utc::now();
        if round % 2 == 0 {
            server.stop().await;
        } else {
            server.kill().await;
        }
        until_ready_is(&ground.origins, 503).await;
        server.start_again().await;
        until_ready_is(&ground.origins, 200).await;
        windows.push((began, Utc::now()));
        fleet::must_live(&mut fleet);
    }
    load.goes_on(BETWEEN).await;
    let starts = load.end().await;
    stage.drained().await;
    fleet::end(fleet).await;
    let seen = stage.seen(starts).await;
    let (cut, whole) = cut_and_whole(&seen, &windows);
    tell(&format!(
        "chaos restarts: seed {seed}, {RESTARTS} restarts, {cut} attempts cut, {} outside of any restart; {}",
        whole.len(),
        seen.figures()
    ));
    assert!(whole.is_empty(), "attempts that no restart cut were made again: {whole:?}");
    assert!(seen.runs.values().filter(|run| run.attempts == 1).count() > BETWEEN, "hardly any run was left alone");
    invariants::assert_none(&seen);
    drop(stage);
    server.end().await;
}

/// How many attempts that were not the last of their runs touch a restart, and those that touch none.
fn cut_and_whole<'a>(seen: &'a Seen, windows: &[Window]) -> (usize, Vec<&'a Attempt>) {
    let again = seen.attempts.windows(2).filter(|pair| pair[0].run == pair[1].run);
    // An open question begins a run again without anybody being cut.
    let again = again.map(|pair| &pair[0]).filter(|one| one.outcome.as_deref() != Some("suspended"));
    let touches = |one: &&Attempt| {
        let spends_nothing = one.outcome.as_deref().is_some_and(|outcome| FOR_NOTHING.contains(&outcome));
        let after = if spends_nothing { LOOKS_AGAIN } else { FINDS_OUT };
        let end = one.ended_at.unwrap_or(one.started_at);
        windows.iter().any(|(from, to)| one.started_at <= *to + after && end >= *from)
    };
    let (cut, whole): (Vec<_>, Vec<_>) = again.partition(touches);
    (cut.len(), whole)
}
