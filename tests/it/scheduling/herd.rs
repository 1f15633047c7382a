//! Many idle workers and few runs: each run is served soon, and not by asking once for every worker.

use std::time::{Duration, Instant};

use super::*;

const WORKERS: usize = 12;
const RUNS: usize = 60;

/// Statements that look for work, as the database counts them.
async fn looks(world: &World) -> i64 {
    // Every look counts the lanes in a scan of the index of ready runs.
    sqlx::query_scalar("select idx_scan from pg_stat_user_indexes where indexrelname = 'runs_leases'")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_crowd_of_idle_workers_does_not_ask_for_every_run() {
    let mut config = crate::harness::config();
    // Nothing but wake-ups makes them look, and no renewal counts.
    (config.worker.poll_ms, config.worker.lease_ms, config.database.max_connections) = (600_000, 600_000, 4);
    let world = World::with(deedbox_books::Options { keyless: false, convention: None }, config.clone()).await;
    world.deploy("noop", "stripe", json!({})).await;
    let mut nodes: Vec<Node> = Vec::new();
    for number in 0..WORKERS {
        let name = format!("w{number}");
        nodes.push(crate::harness::node(&world.database, &name, config.clone(), deedbox::probe::none()).await);
    }
    let workers: Vec<_> = nodes.iter().map(worker_of).collect();
    let hearing = Instant::now() + Duration::from_secs(20);
    while !nodes.iter().all(|node| node.gateway().wakes().hears()) {
        assert!(Instant::now() < hearing);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    tokio::time::sleep(Duration::from_millis(600)).await;
    let before = looks(&world).await;
    let mut waits = Vec::new();
    let began_all = Instant::now();
    for n in 0..RUNS {
        let run = world.start("noop", json!(n)).await;
        let began = Instant::now();
        while world.run(run).await.ended_at.is_none() {
            assert!(began.elapsed() < Duration::from_secs(10), "it is not served");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        waits.push(began.elapsed());
    }
    let took = began_all.elapsed();
    workers.iter().for_each(|worker| worker.cancel());
    // The database tells of its counts when a session rests.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let asked = looks(&world).await - before;
    waits.sort();
    let median = waits[RUNS / 2];
    assert!(median < Duration::from_millis(1_000), "{median:?}");
    // A worker that finds nothing soon asks ten times a second at most on the average; one that serves a run asks for the
    // next at once, and goes through four short pauses when another was quicker. All of them for every run would be far more,
    // unless the machine is so busy that a run takes longer than a pause.
    let pauses = WORKERS as f64 * took.as_secs_f64() * 10.0;
    let most = pauses * 1.5 + (4 * RUNS) as f64;
    eprintln!("{asked} looks, at most {most:.0}, for {RUNS} runs by {WORKERS} workers in {took:?}");
    assert!(
        (asked as f64) < most,
        "{asked} looks, at most {most:.0}, for {RUNS} runs by {WORKERS} workers in {took:?}"
    );
}

/// More lanes than one look compares, and none of them may begin: the worker goes round once in a poll, and not for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_finds_every_lane_paused_rests() {
    let mut config = crate::harness::config();
    config.worker.poll_ms = 500;
    let world = World::with(deedbox_books::Options { keyless: false, convention: None }, config).await;
    world.deploy("noop", "stripe", json!({})).await;
    for number in 0..80 {
        tenant(&world, &format!("t{number:03}")).await;
    }
    let fill = "insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, rank)
                select tenant, gen_random_uuid(), 'noop', 1, 'queued', 'null', '{}', 3, deedbox_now()
                from tenants where tenant like 't%'";
    world.database.execute("update tenants set paused_at = deedbox_now()").await;
    world.database.execute(fill).await;
    let before = looks(&world).await;
    let working = worker_of(&world.node);
    tokio::time::sleep(Duration::from_secs(3)).await;
    working.cancel();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let asked = looks(&world).await - before;
    // Two looks in a round, a round in a poll, and the rescuer as often.
    assert!((2..60).contains(&asked), "{asked} looks in three seconds");
    world.database.execute("update tenants set paused_at = null").await;
    let working = worker_of(&world.node);
    let give_up = Instant::now() + Duration::from_secs(20);
    while sqlx::query_scalar::<_, i64>("select count(*) from runs where ended_at is null")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap()
        > 0
    {
        assert!(Instant::now() < give_up, "every lane is served");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    working.cancel();
}
