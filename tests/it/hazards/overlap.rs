//! Looking first and acting then, in two attempts at once: both look before either acts. The look protects nothing; the
//! claim does.

use deedbox::probe::{self, Point};
use deedbox_books::Behaviour;
use serde_json::{Value, json};
use uuid::Uuid;

use super::case::{Case, settings};
use super::naive::Stand;
use super::snapshot;
use crate::harness::cell::{PATIENCE, effect, work_until_settled};
use crate::harness::freeze::Victim;
use crate::harness::{World, node};

const TWO_HELD: [Behaviour; 2] = [Behaviour::HoldBeforeApply, Behaviour::HoldBeforeApply];

/// R-D19, R-D20: read, read, write, write. Both attempts have looked and found nothing, and both are at the provider.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_attempts_that_both_found_nothing_ship_once() {
    let case = Case::of("ship_once");
    let world = case.world().await;
    world.script(&TWO_HELD).await;
    let run = case.start(&world).await;
    let first = Victim::start(&world, "one", settings(), None);
    world.books.wait_for_arrivals(2, PATIENCE).await.unwrap();
    world.expire_leases().await;
    let second = Victim::start(&world, "two", settings(), None);
    world.books.wait_for_arrivals(4, PATIENCE).await.unwrap();
    assert_eq!(methods(&world).await, ["GET", "POST", "GET", "POST"]);
    assert!(world.books.applied().await.unwrap().is_empty(), "one had acted before the other looked");
    world.books.release().await.unwrap();
    first.resume().await;
    second.resume().await;
    work_until_settled(&world, &node(&world.database, "three", settings(), probe::none()).await, run).await;
    assert_shipped_once(&world, run).await;

    assert_eq!(twins_that_both_found_nothing(&case).await.as_array().unwrap().len(), 2);
}

/// R-D19, R-D20: the one that looked first comes to act when the run is long another's. It may not even claim.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_looked_and_then_lost_its_lease_cannot_act() {
    let case = Case::of("ship_once");
    let world = case.world().await;
    let run = case.start(&world).await;
    let first = Victim::start(&world, "one", settings(), Some(Point::BeforeClaim));
    first.held().await;
    world.expire_leases().await;
    let second = Victim::start(&world, "two", settings(), Some(Point::BeforeClaim));
    second.held().await;
    assert_eq!(methods(&world).await, ["GET", "GET"]);
    first.resume().await;
    assert_eq!(methods(&world).await, ["GET", "GET"], "the first was let through");
    second.resume().await;
    work_until_settled(&world, &node(&world.database, "three", settings(), probe::none()).await, run).await;
    assert_eq!(methods(&world).await, ["GET", "GET", "POST"]);
    assert_shipped_once(&world, run).await;
}

/// R-D22: the look in front saves a later run the way to the provider.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_run_that_looks_finds_the_shipment_and_sends_nothing() {
    let case = Case::of("ship_once");
    let world = case.world().await;
    let first = case.run_once(&world).await;
    let second = case.start_as(&world, Uuid::now_v7()).await;
    work_until_settled(&world, &world.node, second).await;
    assert_eq!(world.output(second).await, world.output(first).await);
    assert_eq!(methods(&world).await, ["GET", "POST", "GET"]);
    assert!(world.sends(second).await.is_empty());
}

/// The table of shipments after two twins overlapped in the same way.
async fn twins_that_both_found_nothing(case: &Case) -> Value {
    let stand = Stand::with(case).await;
    stand.books.script(&TWO_HELD).await.unwrap();
    let twins = [stand.start("ship_once", &case.input), stand.start("ship_once", &case.input)];
    stand.books.wait_for_arrivals(4, PATIENCE).await.unwrap();
    stand.books.release().await.unwrap();
    for twin in twins {
        assert!(twin.end().await);
    }
    snapshot::of(&stand.books).await["tables"]["shipments"].clone()
}

async fn assert_shipped_once(world: &World, run: Uuid) {
    let shipments = snapshot::of(&world.books).await["tables"]["shipments"].clone();
    assert_eq!(shipments, json!([{ "order": 1042 }]));
    assert_eq!(world.output(run).await, json!({ "id": 1 }));
    let effect = effect(world, run).await;
    assert_eq!((effect.state.as_str(), effect.doubled), ("completed", false));
}

async fn methods(world: &World) -> Vec<String> {
    world.books.arrivals().await.unwrap().into_iter().map(|arrival| arrival.method).collect()
}
