//! A lease is renewed for as long as its attempt lasts; a worker that cannot renew has stopped before another may begin.

use std::pin::Pin;
use std::sync::Arc;

use deedbox::node::Node;
use deedbox::probe::{Point, Probe};
use deedbox::store;
use deedbox_books::Behaviour;
use serde_json::json;
use sqlx::Connection;
use tokio::sync::Notify;
use uuid::Uuid;

use super::{SOON, Working, ask, changed, post, until, until_running, world_with};
use crate::harness::{World, node};

/// Tells when a guest is gone.
#[derive(Debug, Default)]
struct Gone(Notify);

impl Gone {
    async fn wait(&self) {
        tokio::time::timeout(SOON, self.0.notified()).await.expect("the guest is stopped");
    }
}

impl Probe for Gone {
    fn reach(&self, point: Point) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        if point == Point::AfterReturn {
            self.0.notify_one();
        }
        Box::pin(std::future::ready(()))
    }
}

/// A guest that never ends, on a worker with leases of two seconds.
struct Spinning {
    world: World,
    _node: Node,
    working: Working,
    gone: Arc<Gone>,
    run: Uuid,
}

impl Spinning {
    async fn begin() -> Self {
        let world = World::keyed().await;
        world.deploy("spin", "stripe", json!({ "timeouts": { "start_to_close": "60s" } })).await;
        let run = world.start("spin", json!({})).await;
        let gone = Arc::new(Gone::default());
        let config = changed(|config| {
            (config.worker.lease_ms, config.worker.grace_ms) = (2_000, 1);
            // With no other place the worker cannot lease its own run again while its guest is there.
            config.host.max_instances = 1;
        });
        let node = node(&world.database, "two", config, gone.clone()).await;
        let working = Working::begin(&node);
        until_running(&world, run).await;
        Self { world, _node: node, working, gone, run }
    }
}

/// F-C03.
#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_renewed_while_the_guest_waits() {
    let world = world_with(|config| config.worker.lease_ms = 1_000).await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[Behaviour::HoldBeforeApply]).await;
    let run = world.start("send", post(&world)).await;
    let working = Working::begin(&world.node);
    world.books.wait_for_arrivals(1, SOON).await.unwrap();
    let began = world.run(run).await.due_at.unwrap();
    // Two and a half leases.
    let later = began + chrono::TimeDelta::milliseconds(2_500);
    until("the lease ends later", async || world.run(run).await.due_at.unwrap() > later).await;
    world.books.release().await.unwrap();
    super::until_ended(&world, run).await;
    working.end().await;
    assert_eq!(world.outcomes(run).await, ["completed"]);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

/// The database refuses the renewal.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_fails_to_renew_stops_its_guest_before_the_lease_ends() {
    let spinning = Spinning::begin().await;
    spinning.world.database.execute("alter table runs rename to runs_away").await;
    spinning.gone.wait().await;
    let held: bool = ask(&spinning.world, "select due_at > deedbox_now() from runs_away").await;
    spinning.world.database.execute("alter table runs_away rename to runs").await;
    assert!(held, "the guest outlived its lease");
    spinning.working.end().await;
}

/// The database does not answer the renewal at all.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_waits_for_its_renewal_stops_its_guest_before_the_lease_ends() {
    let spinning = Spinning::begin().await;
    let mut connection = spinning.world.database.connect().await;
    let mut locked = connection.begin().await.unwrap();
    sqlx::raw_sql("lock table runs in access exclusive mode").execute(&mut *locked).await.unwrap();
    spinning.gone.wait().await;
    let held = sqlx::query_scalar::<_, bool>("select due_at > deedbox_now() from runs").fetch_one(&mut *locked).await;
    locked.commit().await.unwrap();
    assert!(held.unwrap(), "the guest outlived its lease");
    spinning.working.end().await;
}

/// A worker that learns that another has taken its run stops its guest, and what it did counts as lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_lease_was_taken_stops_its_guest() {
    let spinning = Spinning::begin().await;
    let (world, run) = (&spinning.world, spinning.run);
    let taken = take(world).await;
    spinning.gone.wait().await;
    assert_eq!(world.outcomes(run).await, ["worker-lost", "-"]);
    let lease = [store::lease::Lease { tenant: taken.tenant, run_id: run, token: taken.token }];
    let renewed = store::lease::renew(world.node.store(), &lease, 60_000).await.unwrap();
    assert_eq!(renewed.into_iter().map(|renewed| renewed.lease).collect::<Vec<_>>(), lease);
    spinning.working.end().await;
    assert_eq!(world.outcomes(run).await, ["worker-lost", "-"]);
}

/// Ends the lease and takes the run.
async fn take(world: &World) -> store::lease::Leased {
    world.expire_leases().await;
    crate::harness::lease(world.node.store(), "thief", 1, 60_000).await.pop().expect("the run is due")
}
