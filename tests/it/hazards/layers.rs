//! Doing it again, and doing it once, are two layers. The first alone doubles, the second alone loses; both together give
//! one effect and a run that ends. And what is left when the provider does not help.

use deedbox::probe;
use deedbox_books::Behaviour;
use serde_json::json;

use super::case::{Case, settings};
use super::naive::Stand;
use super::snapshot;
use crate::harness::cell::{PATIENCE, effect, work_until_settled};
use crate::harness::freeze::Victim;
use crate::harness::node;

/// Where the first is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lost {
    BeforeTheCharge,
    AfterTheCharge,
}

impl Lost {
    const ALL: [Self; 2] = [Self::BeforeTheCharge, Self::AfterTheCharge];

    fn behaviour(self) -> Behaviour {
        match self {
            Self::BeforeTheCharge => Behaviour::HoldBeforeApply,
            Self::AfterTheCharge => Behaviour::HoldAfterApply,
        }
    }

    fn charged(self) -> u64 {
        u64::from(self == Self::AfterTheCharge)
    }
}

/// R-E03, both layers; R-A11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_both_layers_there_is_one_charge_and_a_run_that_ends() {
    for lost in Lost::ALL {
        let case = Case::of("charge_card");
        let world = case.world().await;
        world.script(&[lost.behaviour()]).await;
        let run = case.start(&world).await;
        let first = Victim::start(&world, "one", settings(), None);
        world.books.wait_for_arrivals(1, PATIENCE).await.unwrap();
        world.books.wait_for_applied(lost.charged(), PATIENCE).await.unwrap();
        first.kill().await;
        world.expire_leases().await;
        work_until_settled(&world, &node(&world.database, "two", settings(), probe::none()).await, run).await;
        assert_eq!(world.output(run).await, json!({ "id": "ch_1" }), "{lost:?}");
        assert_eq!(world.books.applied().await.unwrap().len(), 1, "{lost:?}");
        assert_eq!(effect(&world, run).await.state, "completed");
    }
}

/// R-E03, the first layer alone: it is done again until it is done, and so it is done twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_retries_alone_a_charge_is_made_twice() {
    for lost in Lost::ALL {
        let stand = lose_the_first("charge_card", lost).await;
        assert!(stand.at_least_once("charge_card", &Case::of("charge_card").input, 3).await);
        assert_eq!(stand.books.applied().await.unwrap().len() as u64, 1 + lost.charged(), "{lost:?}");
    }
}

/// R-E03, the second layer alone: a stable key, and nobody who tries again. What was lost stays lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_key_alone_a_charge_is_lost() {
    let stand = lose_the_first("charge_by_order", Lost::BeforeTheCharge).await;
    assert!(stand.books.applied().await.unwrap().is_empty());

    // It was the retry that was missing: with one, the key does its work in either place.
    for lost in Lost::ALL {
        let stand = lose_the_first("charge_by_order", lost).await;
        assert!(stand.at_least_once("charge_by_order", &Case::of("charge_card").input, 100).await);
        assert_eq!(stand.books.applied().await.unwrap().len(), 1, "{lost:?}");
    }
}

/// R-A12: a provider that takes no keys charges twice for the twin, whose key it does not look at. Here the run waits, with
/// one charge, for somebody who knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_provider_s_help_the_twin_charges_twice_and_a_run_waits() {
    let case = Case::of("charge_card").at("keyless");
    let stand = Stand::with(&case).await;
    stand.books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
    let first = stand.start("charge_by_order", &case.input);
    stand.books.wait_for_applied(1, PATIENCE).await.unwrap();
    first.kill().await;
    assert!(stand.run("charge_by_order", &case.input).await);
    let twice = snapshot::of(&stand.books).await;
    assert_eq!(twice["made"].as_array().unwrap().len(), 2);

    let world = case.world().await;
    world.script(&[Behaviour::HoldAfterApply]).await;
    let run = case.start(&world).await;
    let first = Victim::start(&world, "one", settings(), None);
    world.books.wait_for_applied(1, PATIENCE).await.unwrap();
    first.kill().await;
    world.expire_leases().await;
    work_until_settled(&world, &node(&world.database, "two", settings(), probe::none()).await, run).await;
    let effect = effect(&world, run).await;
    let waiting = world.run(run).await;
    assert_eq!((waiting.state.as_str(), waiting.waiting_effect), ("waiting", Some(effect.effect_id)));
    assert_eq!((effect.state.as_str(), effect.doubled), ("escaped", false));
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1, "it was sent again");
}

/// A twin that was killed at the provider, and the provider.
async fn lose_the_first(hazard: &str, lost: Lost) -> Stand {
    let case = Case::of("charge_card");
    let stand = Stand::with(&case).await;
    stand.books.script(&[lost.behaviour()]).await.unwrap();
    let first = stand.start(hazard, &case.input);
    stand.books.wait_for_arrivals(1, PATIENCE).await.unwrap();
    stand.books.wait_for_applied(lost.charged(), PATIENCE).await.unwrap();
    first.kill().await;
    stand
}
