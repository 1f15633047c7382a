//! What a key must be: the same in every attempt of one operation, another for another operation, and joined to a write
//! that it decides. With half of that, the twins double, or lose what should happen.

use deedbox_books::Behaviour;
use serde_json::{Value, json};
use uuid::Uuid;

use super::case::{Case, Crash};
use super::naive::Stand;
use super::snapshot;
use crate::harness::cell::{PATIENCE, work_until_settled};

/// R-D03: a stable name that the table does not look at, and a table that looks at a name which is not stable.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_without_a_condition_and_a_condition_without_a_key_both_double() {
    let case = Case::of("insert_row");
    for half in ["key_without_condition", "condition_without_key"] {
        let stand = Stand::with(&case).await;
        stand.books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
        let first = stand.start(half, &case.input);
        stand.books.wait_for_applied(1, PATIENCE).await.unwrap();
        first.kill().await;
        assert!(stand.run(half, &case.input).await);
        let rows = snapshot::of(&stand.books).await["tables"]["orders"].clone();
        assert_eq!(rows.as_array().unwrap().len(), 2, "{half}: {rows}");
    }
    let world = case.world().await;
    case.run_and_crash(&world, Crash::InProcess).await;
    assert_eq!(snapshot::of(&world.books).await["tables"]["orders"], json!([case.input]));
}

/// R-D14, R-D03: one key for all sends of a charge, another for the charge of another order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_is_stable_over_attempts_and_never_that_of_another_operation() {
    let case = Case::of("charge_card");
    let other = Case::of("charge_card").with_input(json!({ "order": 1043, "amount_cents": 4200 }));
    let world = case.world().await;
    case.run_and_crash(&world, Crash::InProcess).await;
    let second = other.start_as(&world, Uuid::now_v7()).await;
    work_until_settled(&world, &world.node, second).await;
    assert_eq!(world.output(second).await, json!({ "id": "ch_2" }));
    let arrivals = world.books.arrivals().await.unwrap();
    let keys: Vec<_> = arrivals.iter().map(|arrival| arrival.key.as_deref().unwrap()).collect();
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0], keys[1]);
    assert_ne!(keys[0], keys[2]);
    assert_eq!(orders(&snapshot::of(&world.books).await), [1042, 1043]);

    // One key for both: the second customer is never charged.
    let stand = Stand::with(&case).await;
    assert!(stand.run("charge_under_one_key", &case.input).await);
    assert!(!stand.run("charge_under_one_key", &other.input).await);
    assert_eq!(orders(&snapshot::of(&stand.books).await), [1042]);
}

/// R-D12: it is the run's own randomness that makes a key from the body safe. With fresh numbers and trust in them, the
/// same activity doubles; with fresh numbers that nobody trusts, the host's key stands in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_made_in_the_body_is_safe_unless_fresh_randomness_is_asked_for_and_trusted() {
    for (randomness, guest_keys, charges) in
        [("stable", "trust", 1), ("stable", "replace", 1), ("fresh", "replace", 1), ("fresh", "trust", 2)]
    {
        let policy = json!({ "randomness": randomness, "guest_keys": guest_keys });
        let case = Case::of("own_uuid").with_policy(policy);
        let world = case.world().await;
        case.run_and_crash(&world, Crash::InProcess).await;
        let made = orders(&snapshot::of(&world.books).await);
        assert_eq!(made, vec![1042; charges], "{randomness} numbers, and {guest_keys}");
    }
}

/// The orders that were charged.
fn orders(world: &Value) -> Vec<u64> {
    world["made"].as_array().unwrap().iter().map(|charge| charge["body"]["order"].as_u64().unwrap()).collect()
}
