//! What is the same in every attempt of a run: its keys, its random numbers, its note to itself.

use deedbox::probe;
use deedbox::store;
use serde_json::{Value, json};

use super::world_with;
use crate::harness::{TENANT, World, work};

/// The outputs of two attempts of one run, the second on another node. A run ends with its first output: to see both, the
/// run is put back into the queue by hand.
pub async fn outputs_of_two_attempts(world: &World, run: uuid::Uuid) -> [Value; 2] {
    work(&world.node).await;
    let first = world.output(run).await;
    world
        .database
        .execute("update runs set state = 'queued', ended_at = null, output = null, rank = deedbox_now()")
        .await;
    work(&world.second("two", probe::none()).await).await;
    let second = world.output(run).await;
    assert_eq!(world.attempts(run).await.len(), 2);
    [first, second]
}

#[tokio::test(flavor = "multi_thread")]
async fn random_numbers_are_the_same_in_every_attempt_and_in_no_other_run() {
    let world = World::keyed().await;
    world.deploy("random", "stripe", json!({})).await;
    let run = world.start("random", json!({})).await;
    let [first, second] = outputs_of_two_attempts(&world, run).await;
    assert_eq!(first, second);
    assert_ne!(first["uuid"], first["second_uuid"]);
    let other = world.start("random", json!({})).await;
    world.work().await;
    let other = world.output(other).await;
    for place in ["uuid", "second_uuid", "hash"] {
        assert_ne!(first[place], other[place], "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_can_ask_for_fresh_random_numbers() {
    let world = World::keyed().await;
    world.deploy("random", "stripe", json!({ "randomness": "fresh" })).await;
    let run = world.start("random", json!({})).await;
    let [first, second] = outputs_of_two_attempts(&world, run).await;
    for place in ["uuid", "second_uuid", "hash"] {
        assert_ne!(first[place], second[place], "{place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_the_same_in_every_attempt_and_in_no_other_run() {
    let world = World::keyed().await;
    world.deploy("keys", "stripe", json!({})).await;
    let input = json!({ "names": ["a", "b", "a", "ü", "x".repeat(256)] });
    let run = world.start("keys", input.clone()).await;
    let [first, second] = outputs_of_two_attempts(&world, run).await;
    assert_eq!(first, second);
    assert_eq!(first["run_key"], first["again"]["run_key"]);
    assert_eq!(first["subkeys"], first["again"]["subkeys"]);
    let subkeys = texts(&first["subkeys"]);
    assert_eq!(subkeys[0], subkeys[2]);
    let run_key = first["run_key"].as_str().unwrap().to_owned();
    let mut all = [&[run_key][..], &subkeys].concat();
    all.iter().for_each(|key| assert_key(key));
    let other = world.start("keys", input).await;
    world.work().await;
    let other = world.output(other).await;
    all.push(other["run_key"].as_str().unwrap().to_owned());
    all.extend(texts(&other["subkeys"]));
    all.sort();
    all.dedup();
    assert_eq!(all.len(), 2 * 5, "another run or another name has another key");
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// A lower-case hyphenated UUID of version 8.
fn assert_key(key: &str) {
    let uuid: uuid::Uuid = key.parse().unwrap();
    assert_eq!((uuid.hyphenated().to_string().as_str(), uuid.get_version_num()), (key, 8));
    assert_eq!(uuid.get_variant(), uuid::Variant::RFC4122);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_no_subkeys_is_an_error_and_never_a_trap() {
    let world = World::keyed().await;
    world.deploy("keys", "stripe", json!({})).await;
    let names = ["".to_owned(), "x".repeat(257), "ü".repeat(129)];
    let run = world.start("keys", json!({ "names": names })).await;
    world.work().await;
    let output = world.output(run).await;
    for refused in output["subkeys"].as_array().unwrap() {
        assert_eq!(*refused, json!({ "error": "invalid-name" }));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_knows_its_run() {
    let world = World::keyed().await;
    let policy = json!({ "retry": { "max_attempts": 7 }, "timeouts": { "start_to_close": "9s" } });
    world.deploy("run-info", "stripe", policy).await;
    let run = world.start("run-info", json!({})).await;
    let [first, second] = outputs_of_two_attempts(&world, run).await;
    for (info, attempt) in [(first, 1), (second, 2)] {
        let remaining = info["remaining_ms"].as_u64().unwrap();
        assert!((1..=9_000).contains(&remaining), "{remaining}");
        let expected = json!({
            "tenant": TENANT, "run_id": run.to_string(), "activity": "run-info", "attempt": attempt,
            "max_attempts": 7, "remaining_ms": remaining, "cancelled": false,
        });
        assert_eq!(info, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_goes_from_one_attempt_to_the_next() {
    let world = World::keyed().await;
    world.deploy("remember", "stripe", json!({})).await;
    let run = world.start("remember", json!({ "value": { "n": 1 }, "then": ["fail", "trap", "return"] })).await;
    let other = world.start("remember", json!({ "value": 2 })).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["failed", "trap", "completed"]);
    assert_eq!(world.output(run).await, json!({ "before": { "n": 1 } }));
    assert_eq!(world.output(other).await, json!({ "before": null }), "another run has its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_too_large_is_refused_with_a_value() {
    let world = world_with(|config| config.host.max_checkpoint_bytes = 1_000).await;
    world.deploy("checkpoint-size", "stripe", json!({})).await;
    let fits = world.start("checkpoint-size", json!({ "bytes": 1_000 })).await;
    let beyond = world.start("checkpoint-size", json!({ "bytes": 1_001 })).await;
    world.work().await;
    assert_eq!(world.output(fits).await, json!({ "error": null, "loaded_bytes": 1_000 }));
    assert_eq!(world.output(beyond).await, json!({ "error": "checkpoint-too-large", "loaded_bytes": null }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_lease_cannot_save_a_checkpoint() {
    let world = World::keyed().await;
    world.deploy("noop", "stripe", json!({})).await;
    let run = world.start("noop", json!({})).await;
    let store = world.node.store();
    let stale = crate::harness::lease(store, "one", 1, 60_000).await.remove(0).token;
    assert!(store::checkpoint::save(store, TENANT, run, stale, b"first").await.unwrap());
    world.expire_leases().await;
    assert!(!store::checkpoint::save(store, TENANT, run, stale, b"over").await.unwrap());
    let fresh = crate::harness::lease(store, "two", 1, 60_000).await.remove(0).token;
    assert!(!store::checkpoint::save(store, TENANT, run, stale, b"stale").await.unwrap());
    assert_eq!(store::checkpoint::load(store, TENANT, run).await.unwrap().unwrap(), b"first");
    assert!(store::checkpoint::save(store, TENANT, run, fresh, b"second").await.unwrap());
    assert_eq!(store::checkpoint::load(store, TENANT, run).await.unwrap().unwrap(), b"second");
}
