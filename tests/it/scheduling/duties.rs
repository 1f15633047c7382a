//! Maintenance: many at once, in batches, by any node, and never what is still needed.

use std::time::{Duration, Instant};

use deedbox::store::duty;

use super::*;
use crate::harness::{committed, rescue};

/// F-I11. Seventy thousand runs whose workers are gone come back, in batches, and each has its lost attempt on record.
#[tokio::test(flavor = "multi_thread")]
async fn seventy_thousand_lost_runs_are_taken_back() {
    let world = two_tenants().await;
    let lost = "with lost as (
          insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, attempts, spent, token, due_at)
          select 'acme', gen_random_uuid(), 'noop', 1, 'running', 'null', '{}', case when n % 7 = 0 then 1 else 3 end, 1, 1, 1,
                 deedbox_now() - n * interval '1 millisecond'
          from generate_series(1, 70000) n returning run_id)
        insert into attempts (tenant, run_id, attempt, token, worker) select 'acme', run_id, 1, 1, 'gone' from lost";
    world.database.execute(lost).await;
    let began = Instant::now();
    // Two nodes at once: a batch is never taken twice.
    let other = world.second("two", deedbox::probe::none()).await;
    let nodes = [world.node.store().clone(), other.store().clone()];
    let rescuing = nodes.map(|store| tokio::spawn(async move { rescue_all(&store).await }));
    let mut all = (0, 0);
    for done in rescuing {
        let (requeued, ended) = done.await.unwrap();
        all = (all.0 + requeued, all.1 + ended);
    }
    assert_eq!(all, (60_000, 10_000));
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let open: i64 = sqlx::query_scalar("select count(*) from attempts where outcome is distinct from 'worker-lost'")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(open, 0);
    assert_eq!(lease(world.node.store(), "w", 16, 60_000).await.len(), 16);
}

async fn rescue_all(store: &Store) -> (usize, usize) {
    let mut all = (0, 0);
    loop {
        let batch = duty::rescue(store, 5_000, "{}", "{}").await.unwrap();
        if batch.total() == 0 {
            return all;
        }
        all = (all.0 + batch.requeued, all.1 + batch.ended);
    }
}

/// F-C05 A run whose cancelling was asked for while its worker was gone is cancelled, not run again; a paused one waits.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_wished_of_a_lost_run_is_done() {
    let world = two_tenants().await;
    let store = world.node.store();
    let runs = queue(store, ACME, 3).await;
    assert_eq!(lease(store, "gone", 3, 60_000).await.len(), 3);
    assert_eq!(
        committed(store, async |tx| control::cancel(tx, ACME, runs[0], None).await).await,
        control::Changed::Requested
    );
    assert_eq!(committed(store, async |tx| control::pause(tx, ACME, runs[1]).await).await, control::Changed::Requested);
    world.expire_leases().await;
    let rescued = rescue(store).await;
    assert_eq!((rescued.requeued, rescued.ended), (2, 1));
    assert_eq!(world.run(runs[0]).await.state, "cancelled");
    assert_eq!(ids(&lease(store, "w", 9, 60_000).await), [runs[2]]);
    committed(store, async |tx| control::resume(tx, ACME, runs[1]).await).await;
    assert_eq!(ids(&lease(store, "w", 9, 60_000).await), [runs[1]]);
}

/// F-I12. Long after their time would be over, what is alive is there: running, waiting for a signal, for a time, paused.
#[tokio::test(flavor = "multi_thread")]
async fn retention_never_takes_what_is_alive() {
    let world = two_tenants().await;
    let store = world.node.store();
    let running = queue(store, ACME, 1).await;
    lease(store, "w", 1, 1_000_000_000_000).await;
    let delayed = queue_with(store, ACME, 1, |run| NewRun { start: StartAt::AfterMs(200 * 86_400_000), ..run }).await;
    let paused = queue(store, ACME, 1).await;
    committed(store, async |tx| control::pause(tx, ACME, paused[0]).await).await;
    let waiting = queue(store, ACME, 1).await;
    world
        .database
        .execute(&format!(
            "update runs set state = 'waiting', rank = null, waiting_signal = 'go' where run_id = '{}'",
            waiting[0]
        ))
        .await;
    let named = queue_with(store, ACME, 1, |run| NewRun {
        name: Some(store::start::Named { run_name: "order-1".to_owned(), reuse: store::start::Reuse::Reject }),
        labels: [("a".to_owned(), "b".to_owned())].into(),
        ..run
    })
    .await;
    committed(store, async |tx| control::cancel(tx, ACME, named[0], None).await).await;
    world.database.advance_seconds(100 * 86_400).await;
    assert_eq!(world.node.worker().sweep().await.unwrap(), 1, "the one that has ended");
    for run in [running[0], delayed[0], paused[0], waiting[0]] {
        assert!(world.run(run).await.ended_at.is_none());
    }
    assert!(store::run::find(store, ACME, named[0]).await.unwrap().is_none());
    let left: i64 = sqlx::query_scalar("select (select count(*) from run_names) + (select count(*) from run_labels)")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(left, 0, "its name is free again");
}
