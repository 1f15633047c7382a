//! Why an activity runs a second time: its worker is lost, its time is over, or it is handed out again while it still
//! runs. Each with a charge, and each with its naive twin.

use deedbox::probe;
use deedbox_books::Behaviour;
use serde_json::{Value, json};
use uuid::Uuid;

use super::case::{Case, process_settings, settings};
use super::naive::Stand;
use super::snapshot;
use crate::harness::cell::{PATIENCE, effect, work_until_settled};
use crate::harness::freeze::Victim;
use crate::harness::process::Process;
use crate::harness::{World, node};

/// R-D02, R-A11: SIGKILL after the provider has charged, before anything of it is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_whose_worker_is_killed_is_made_once() {
    let case = Case::of("charge_card");
    let (world, run) = held_after_the_charge(&case).await;
    let first = Process::start(&world, "one", None, &process_settings()).await;
    world.books.wait_for_applied(1, PATIENCE).await.unwrap();
    first.kill();
    go_on(&world, run).await;
    assert_charged_once(&world, run, "worker-lost").await;

    let stand = Stand::with(&case).await;
    stand.books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
    let first = stand.start("charge_card", &case.input);
    stand.books.wait_for_applied(1, PATIENCE).await.unwrap();
    first.kill().await;
    assert!(stand.run("charge_card", &case.input).await);
    assert_eq!(charges(&stand).await, 2);
}

/// R-D02: the attempt's time is over while the provider, which has charged, keeps it waiting.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_whose_time_is_over_is_made_once() {
    let case = Case::of("charge_card").with_policy(json!({ "timeouts": { "start_to_close": "1s" } }));
    let (world, run) = held_after_the_charge(&case).await;
    work_until_settled(&world, &world.node, run).await;
    assert_charged_once(&world, run, "timed-out").await;

    // The loop gives up waiting, and starts another beside the first.
    let stand = Stand::with(&case).await;
    stand.books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
    let first = stand.start("charge_card", &case.input);
    stand.books.wait_for_applied(1, PATIENCE).await.unwrap();
    assert!(stand.run("charge_card", &case.input).await);
    stand.books.release().await.unwrap();
    assert!(first.end().await);
    assert_eq!(charges(&stand).await, 2);
}

/// R-D02: the run is handed to a second worker while the first still waits for its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_charge_that_is_handed_to_two_workers_is_made_once() {
    let case = Case::of("charge_card");
    let (world, run) = held_after_the_charge(&case).await;
    let first = Victim::start(&world, "one", settings(), None);
    world.books.wait_for_applied(1, PATIENCE).await.unwrap();
    world.expire_leases().await;
    let second = node(&world.database, "two", settings(), probe::none()).await;
    assert!(second.worker().run_once().await.unwrap(), "the second works while the first waits");
    assert_eq!(world.books.arrivals().await.unwrap().len(), 2, "both are at the provider");
    world.books.release().await.unwrap();
    first.resume().await;
    work_until_settled(&world, &second, run).await;
    assert_charged_once(&world, run, "worker-lost").await;

    // The first ends well, but its message is not acknowledged and comes again.
    let stand = Stand::with(&case).await;
    assert!(stand.run("charge_card", &case.input).await);
    assert!(stand.run("charge_card", &case.input).await);
    assert_eq!(charges(&stand).await, 2);
}

/// A run that is due, at a provider that charges and then says nothing.
async fn held_after_the_charge(case: &Case) -> (World, Uuid) {
    let world = case.world().await;
    world.script(&[Behaviour::HoldAfterApply]).await;
    let run = case.start(&world).await;
    (world, run)
}

async fn go_on(world: &World, run: Uuid) {
    work_until_settled(world, &node(&world.database, "two", settings(), probe::none()).await, run).await;
}

/// One charge, one key however often it was sent, and a run that knows which charge it was.
async fn assert_charged_once(world: &World, run: Uuid, first: &str) {
    let made = snapshot::of(&world.books).await["made"].clone();
    assert_eq!(made, json!([{ "path": "/v1/charges", "body": Case::of("charge_card").input }]));
    assert_eq!(world.output(run).await, json!({ "id": "ch_1" }));
    let outcomes = world.outcomes(run).await;
    assert_eq!((outcomes[0].as_str(), outcomes.last().unwrap().as_str()), (first, "completed"), "{outcomes:?}");
    let arrivals = world.books.arrivals().await.unwrap();
    assert!(arrivals.len() >= 2, "nothing was sent again");
    assert!(arrivals.iter().all(|arrival| arrival.key.is_some() && arrival.key == arrivals[0].key), "{arrivals:?}");
    let effect = effect(world, run).await;
    assert_eq!((effect.state.as_str(), effect.doubled), ("completed", false));
}

async fn charges(stand: &Stand) -> usize {
    let made: Value = snapshot::of(&stand.books).await["made"].clone();
    made.as_array().unwrap().len()
}
