//! How soon a worker hears of a run that became due.

use std::time::{Duration, Instant};

use deedbox::node::Node;
use serde_json::json;
use sqlx::Row;

use super::{Working, until, until_ended, world_with};
use crate::harness::proxy::{Proxy, Target};
use crate::harness::{World, config, seed};

const LISTENERS: &str =
    "select pid from pg_stat_activity where datname = current_database() and query ilike 'listen%deedbox_due%'";

async fn listeners(world: &World) -> Vec<i32> {
    let rows = sqlx::query(LISTENERS).fetch_all(&mut world.database.connect().await).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

/// A worker that polls hardly ever.
async fn patient() -> World {
    let world = world_with(|config| config.worker.poll_ms = 600_000).await;
    world.deploy("noop", "stripe", json!({})).await;
    world
}

async fn begin_and_listen(world: &World, node: &Node) -> Working {
    let working = Working::begin(node);
    until("the worker listens", async || listeners(world).await.len() == 1).await;
    working
}

async fn terminate_listener(world: &World) -> i32 {
    let pid = listeners(world).await[0];
    world.database.execute(&format!("select pg_terminate_backend({pid})")).await;
    pid
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_wakes_the_worker() {
    let world = patient().await;
    let working = begin_and_listen(&world, &world.node).await;
    let run = world.start("noop", json!({})).await;
    until_ended(&world, run).await;
    working.end().await;
}

/// A run that was started while nobody listened is found as soon as somebody does.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_nobody_heard_is_not_missed() {
    // Nobody tells of this run.
    let silent = "insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, rank)
                  select tenant, gen_random_uuid(), activity, version, 'queued', input, retry, max_attempts, deedbox_now()
                  from runs limit 1";
    let world = patient().await;
    let working = begin_and_listen(&world, &world.node).await;
    let first = world.start("noop", json!({})).await;
    until_ended(&world, first).await;
    for round in 1..=5 {
        // Before, so that it is there whenever the listener comes back.
        world.database.execute(silent).await;
        terminate_listener(&world).await;
        until("the silent run has ended", async || {
            super::ask::<i64>(&world, "select count(*) from runs where ended_at is not null").await == 1 + round
        })
        .await;
        until("the worker listens again", async || listeners(&world).await.len() == 1).await;
    }
    working.end().await;
}

/// F-I07.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_listener_comes_back() {
    let world = patient().await;
    let working = begin_and_listen(&world, &world.node).await;
    for _ in 0..3 {
        let lost = terminate_listener(&world).await;
        until("another listener is there", async || matches!(listeners(&world).await[..], [pid] if pid != lost)).await;
        let run = world.start("noop", json!({})).await;
        until_ended(&world, run).await;
    }
    working.end().await;
}

/// F-I07. The poll finds what no wake-up tells.
#[tokio::test(flavor = "multi_thread")]
async fn without_wake_ups_the_poll_finds_the_run() {
    let world = world_with(|config| config.worker.poll_ms = 300).await;
    world.deploy("noop", "stripe", json!({})).await;
    let working = begin_and_listen(&world, &world.node).await;
    for _ in 0..5 {
        terminate_listener(&world).await;
        let run = world.start("noop", json!({})).await;
        let began = Instant::now();
        until_ended(&world, run).await;
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        until("the worker listens again", async || listeners(&world).await.len() == 1).await;
    }
    working.end().await;
}

/// F-I07. Behind a pooler that shares connections between transactions nobody hears anything; the node finds that out by
/// itself, and starts are served within a poll.
#[tokio::test(flavor = "multi_thread")]
async fn behind_a_pooler_that_tells_nothing_starts_are_served_within_a_poll() {
    let world = World::keyed().await;
    world.deploy("noop", "stripe", json!({})).await;
    let proxy = Proxy::start(Target::of_url(&world.database.url), seed()).await;
    proxy.deafen();
    let database = crate::harness::Database { url: proxy.url("deedbox", world.database.name()) };
    let mut config = config();
    config.worker.poll_ms = 400;
    let node = crate::harness::node(&database, "behind the pooler", config, deedbox::probe::none()).await;
    let working = Working::begin(&node);
    for n in 0..20 {
        let run = world.start("noop", json!(n)).await;
        let began = Instant::now();
        until_ended(&world, run).await;
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    }
    assert!(!node.gateway().wakes().hears());
    working.end().await;
}
