//! How many runs are under way at once.

use deedbox::store::tenant::{Limits, set_limits};
use deedbox_books::Behaviour;

use super::*;

/// However many workers ask at once, a tenant never has more runs under way than its limit, and gets to its limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tenants_limit_holds_however_many_workers_ask() {
    let world = two_tenants().await;
    let store = world.node.store();
    let at_once = |max_running| Limits { max_running, ..Limits::default() };
    set_limits(store, ACME, &at_once(Some(5))).await.unwrap();
    fill(&world, ACME, 200).await;
    fill(&world, BETA, 200).await;
    let mut leased = Vec::new();
    for _ in 0..5 {
        let asking = (0..12).map(|number| {
            let store = store.clone();
            tokio::spawn(async move { lease(&store, &format!("w{number}"), 3, 60_000).await })
        });
        for asked in asking.collect::<Vec<_>>() {
            leased.extend(asked.await.unwrap());
        }
        let running: i64 = running(&world, ACME).await;
        assert!(running <= 5, "{running}");
    }
    assert_eq!(by_tenant(&leased)[ACME], 5);
    assert!(by_tenant(&leased)[BETA] > 20, "a neighbour is not held back");
    // A place that becomes free is given again.
    let done = leased.iter().find(|run| run.tenant == ACME).unwrap();
    complete(store, done).await;
    assert_eq!(by_tenant(&lease(store, "w", 50, 60_000).await)[ACME], 1);
    set_limits(store, ACME, &at_once(Some(0))).await.unwrap();
    assert!(!by_tenant(&lease(store, "w", 50, 60_000).await).contains_key(ACME));
    set_limits(store, ACME, &at_once(None)).await.unwrap();
    assert!(by_tenant(&lease(store, "w", 50, 60_000).await)[ACME] > 5);
}

async fn running(world: &World, tenant: &str) -> i64 {
    sqlx::query_scalar("select count(*) from runs where state = 'running' and tenant = $1")
        .bind(tenant)
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap()
}

async fn complete(store: &Store, run: &Leased) {
    let finish = store::lease::Finish {
        lease: store::lease::Lease { tenant: run.tenant.clone(), run_id: run.run_id, token: run.token },
        outcome: "completed".to_owned(),
        failure: None,
        used: store::lease::Used::default(),
        next: store::lease::Next::Complete { output: "null".to_owned() },
    };
    assert!(store::lease::finish(store, finish).await.unwrap());
}

/// The deployment's own limit, on all nodes together; and work goes on by itself when a place becomes free.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_activitys_limit_holds_on_all_nodes_and_its_queue_goes_on() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({ "limits": { "max_running": 2 } })).await;
    world.script(&vec![Behaviour::SlowAfterApply { ms: 60 }; 12]).await;
    let mut runs = Vec::new();
    for _ in 0..12 {
        let call = json!({ "method": "POST", "url": world.charges(), "json": {} });
        runs.push(world.start("send", json!({ "calls": [call] })).await);
    }
    let second = world.second("two", deedbox::probe::none()).await;
    let workers = [worker_of(&world.node), worker_of(&second)];
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let running = running(&world, ACME).await;
        assert!(running <= 2, "{running}");
        let open: i64 = sqlx::query_scalar("select count(*) from runs where ended_at is null")
            .fetch_one(&mut world.database.connect().await)
            .await
            .unwrap();
        if open == 0 {
            break;
        }
        assert!(std::time::Instant::now() < give_up, "{open} are open still");
    }
    workers.iter().for_each(|worker| worker.cancel());
    assert_eq!(world.books.applied().await.unwrap().len(), 12);
}
