//! Guests that make the host allocate for them: only they fail, and the host stays small.

use serde_json::{Value, json};

use super::memory::{most_resident, resident};
use super::{ALONE, WASI_GUESTS, once};
use crate::harness::World;
use crate::wat_component::WatComponent;

const MIB: u64 = 1 << 20;

/// What this process may grow by, beside a guest's own memory: other tests take some as well.
const GROWTH: u64 = 768 * MIB;

/// Runs it alone, and checks how it ended and how large this process became; gives the failure.
async fn ends_as(world: &World, activity: &str, input: Value, code: &str, memory: u64) -> Value {
    let run = world.start(activity, input).await;
    let before = resident();
    let most = most_resident(world.work()).await;
    assert_eq!(world.outcomes(run).await, [code], "{activity}: {:?}", world.run(run).await.failure);
    assert!(most <= before.map(|before| before + memory + GROWTH), "{activity}: from {before:?} to {most:?}");
    world.failure(run).await
}

async fn neighbour_works(world: &World) {
    world.deploy("noop", "stripe", json!({})).await;
    let run = world.start("noop", json!(1)).await;
    world.work().await;
    assert_eq!(world.output(run).await, json!(1));
}

/// F-F09.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_host_would_have_to_hold_for_a_guest_is_bounded() {
    let _alone = ALONE.lock().await;
    let world = World::keyed().await;
    for activity in ["take-random", "hold", "poll-many"] {
        world.deploy_from(WASI_GUESTS, activity, "stripe", once("60s")).await;
    }
    let guest = 128 * MIB;
    let random = ends_as(&world, "take-random", json!({ "bytes": 1_u64 << 40 }), "trap", guest).await;
    assert!(random["message"].as_str().unwrap().contains("exceeds limit 1048576"), "{random}");
    for what in ["pollables", "fields"] {
        let input = json!({ "what": what, "count": 10_000_000 });
        let failure = ends_as(&world, "hold", input, "out-of-resources", guest).await;
        assert!(failure["message"].as_str().unwrap().contains("host.max_resources"), "{failure}");
    }
    // Loans of one resource, which cost the guest 8 bytes each.
    ends_as(&world, "poll-many", json!({ "count": 5_000_000 }), "call-too-large", guest).await;
    neighbour_works(&world).await;
}

/// F-F09. What is within the limits works: the limits are those that the messages name.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_within_those_bounds_works() {
    let world = World::keyed().await;
    for (activity, input, output) in [
        ("take-random", json!({ "bytes": MIB }), json!(MIB)),
        ("hold", json!({ "what": "fields", "count": 9_000 }), json!(9_000)),
        ("poll-many", json!({ "count": 1_000 }), json!(1_000)),
    ] {
        world.deploy_from(WASI_GUESTS, activity, "stripe", once("60s")).await;
        let run = world.start(activity, input).await;
        world.work().await;
        assert_eq!(world.output(run).await, output, "{activity}");
    }
}

/// F-F09.
#[tokio::test(flavor = "multi_thread")]
async fn a_huge_result_ends_its_attempt_and_nothing_else() {
    let _alone = ALONE.lock().await;
    let world = World::keyed().await;
    let mut policy = once("60s");
    policy["limits"] = json!({ "memory_bytes": 500 * MIB });
    world.deploy("big-output", "stripe", policy).await;
    ends_as(&world, "big-output", json!({ "bytes": 100 * MIB }), "call-too-large", 500 * MIB).await;
    neighbour_works(&world).await;
}

/// A list whose million elements all name the same megabyte. It lies in a memory of its own, which the call is told.
const LISTS: &str = r#"
  (import "wasi:http/types@0.2.0" (instance $http
    (export "fields" (type $fields (sub resource)))
    (type $error' (variant (case "invalid-syntax") (case "forbidden") (case "immutable")))
    (export "header-error" (type $error (eq $error')))
    (export "[static]fields.from-list"
      (func (param "entries" (list (tuple string (list u8)))) (result (result (own $fields) (error $error)))))))
  (alias export $http "[static]fields.from-list" (func $from-list))
  (core module $lists
    (memory (export "memory") 400)
    (func (export "fill") (local $at i32)
      (i32.store8 (i32.const 0) (i32.const 120))
      (local.set $at (i32.const 1048576))
      (loop $on
        (i32.store (local.get $at) (i32.const 0))
        (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const 1))
        (i32.store (i32.add (local.get $at) (i32.const 8)) (i32.const 0))
        (i32.store (i32.add (local.get $at) (i32.const 12)) (i32.const 1048576))
        (local.set $at (i32.add (local.get $at) (i32.const 16)))
        (br_if $on (i32.lt_u (local.get $at) (i32.const 17048576))))))
  (core instance $lists (instantiate $lists))
  (core func $from-list (canon lower (func $from-list) (memory (core memory $lists "memory"))))
  (core instance $host (export "from-list" (func $from-list)))"#;

const IMPORTS: &str = r#"(core module $main
  (import "lists" "fill" (func $fill))
  (import "host" "from-list" (func $from-list (param i32 i32 i32)))"#;

const INSTANTIATE: &str = r#"(instantiate $main (with "lists" (instance $lists)) (with "host" (instance $host)))"#;

/// The list alone is too much.
const ALL: &str = "(call $fill) (call $from-list (i32.const 1048576) (i32.const 1000000) (i32.const 17825792))";

/// The list is not, but what it names is.
const SOME: &str = "(call $fill) (call $from-list (i32.const 1048576) (i32.const 100000) (i32.const 17825792))";

fn aliasing(run: &'static str) -> Vec<u8> {
    let component = WatComponent { names: vec!["alias"], run, outer: LISTS.to_owned(), ..WatComponent::default() };
    let text = component.text().replace("(core module $main", IMPORTS).replace("(instantiate $main)", INSTANTIATE);
    wat::parse_str(text).unwrap()
}

/// F-F09.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_names_the_same_bytes_a_million_times_is_not_copied() {
    let _alone = ALONE.lock().await;
    let world = World::keyed().await;
    for run in [ALL, SOME] {
        world.deploy_bytes("alias", aliasing(run), once("60s")).await;
        let failure = ends_as(&world, "alias", json!({}), "call-too-large", 128 * MIB).await;
        assert!(failure["message"].as_str().unwrap().contains("host.max_call_bytes"), "{failure}");
    }
    neighbour_works(&world).await;
}
