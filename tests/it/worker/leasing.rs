//! Which worker gets which run.

use std::collections::HashSet;

use deedbox::{probe, store};
use serde_json::json;

use super::{Working, until_ended};
use crate::harness::{World, deploy_version, lease};

async fn noop_world() -> World {
    let world = World::keyed().await;
    world.deploy("noop", "stripe", json!({})).await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_never_run_the_same_attempt() {
    let world = noop_world().await;
    let second = world.second("two", probe::none()).await;
    let mut runs = Vec::new();
    for n in 0..60 {
        runs.push(world.start("noop", json!(n)).await);
    }
    let working = [Working::begin(&world.node), Working::begin(&second)];
    for run in &runs {
        until_ended(&world, *run).await;
    }
    for worker in working {
        worker.end().await;
    }
    for run in runs {
        assert_eq!(world.outcomes(run).await, ["completed"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_leased_once_however_many_ask() {
    let world = noop_world().await;
    let mut started = HashSet::new();
    for n in 0..40 {
        started.insert(world.start("noop", json!(n)).await);
    }
    let asking = (0..16).map(|number| {
        let store = world.node.store().clone();
        tokio::spawn(async move { lease(&store, &format!("w{number}"), 5, 60_000).await })
    });
    let mut leased = Vec::new();
    for asked in asking.collect::<Vec<_>>() {
        leased.extend(asked.await.unwrap().into_iter().map(|leased| leased.run_id));
    }
    // Rows that another was just looking at are passed over: what is left is there for the next.
    while let Some(left) = lease(world.node.store(), "last", 1, 60_000).await.pop() {
        leased.push(left.run_id);
    }
    assert_eq!(leased.len(), 40);
    assert_eq!(leased.into_iter().collect::<HashSet<_>>(), started);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_lease_has_a_greater_token_and_the_older_one_is_nothing() {
    let world = noop_world().await;
    let run = world.start("noop", json!({})).await;
    let store = world.node.store();
    let mut older: Vec<store::lease::Lease> = Vec::new();
    for number in 1..=3 {
        let leased = lease(store, "w", 1, 60_000).await.remove(0);
        assert_eq!((leased.token, leased.attempt, leased.spent), (number, number as i32, number as i32));
        let held = store::lease::Lease { tenant: leased.tenant, run_id: run, token: leased.token };
        let all: Vec<_> = older.iter().chain([&held]).cloned().collect();
        assert_eq!(renewed(store, &all).await, all[older.len()..]);
        for lease in &older {
            let stale = store::lease::Finish {
                lease: lease.clone(),
                outcome: "completed".to_owned(),
                failure: None,
                used: store::lease::Used::default(),
                next: store::lease::Next::Complete { output: "\"stale\"".to_owned() },
            };
            assert!(!store::lease::finish(store, stale).await.unwrap());
        }
        assert_eq!(world.run(run).await.state, "running");
        older.push(held);
        world.expire_leases().await;
        assert!(renewed(store, &older).await.is_empty(), "a lease that is over stays over");
    }
    assert_eq!(world.outcomes(run).await, ["worker-lost", "worker-lost", "-"]);
    assert!(lease(store, "w", 1, 60_000).await.is_empty(), "three attempts are all it has");
}

async fn renewed(store: &store::Store, leases: &[store::lease::Lease]) -> Vec<store::lease::Lease> {
    let renewed = store::lease::renew(store, leases, 60_000).await.unwrap();
    renewed.into_iter().map(|renewed| renewed.lease).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_run_is_leased_first() {
    let world = noop_world().await;
    let mut runs = Vec::new();
    for n in 0..5 {
        runs.push(world.start("noop", json!(n)).await);
    }
    // The third has waited longest, whatever its number.
    let older = format!("update runs set rank = rank - interval '1 hour' where run_id = '{}'", runs[2]);
    world.database.execute(&older).await;
    let mut order = Vec::new();
    while let Some(leased) = lease(world.node.store(), "w", 1, 60_000).await.pop() {
        order.push(leased.run_id);
    }
    assert_eq!(order, [runs[2], runs[0], runs[1], runs[3], runs[4]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_keeps_the_version_that_it_began_with() {
    let world = World::keyed().await;
    world.deploy("fail-until", "stripe", json!({ "retry": { "initial_interval": "1ms" } })).await;
    let old = world.start("fail-until", json!({ "attempt": 2 })).await;
    assert!(world.node.worker().run_once().await.unwrap());
    assert_eq!(world.run(old).await.state, "waiting");
    let version = store::activity::find_latest(world.node.store(), "acme", "fail-until").await.unwrap().unwrap();
    deploy_version(world.node.store(), "acme", "fail-until", &version.digest, "noop", &version.policy).await.unwrap();
    let new = world.start("fail-until", json!({ "attempt": 2 })).await;
    world.work().await;
    assert_eq!((world.run(old).await.version, world.run(new).await.version), (1, 2));
    assert_eq!(world.output(old).await, json!(2));
    assert_eq!(world.output(new).await, json!({ "attempt": 2 }), "the new version is another activity of the module");
}
