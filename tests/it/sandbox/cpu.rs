//! CPU time: what a guest computes is counted, told and bounded; what it waits for is not.

use deedbox::store::run::Attempt;
use deedbox::store::tenant::{Limits, set_limits};
use serde_json::{Value, json};

use super::{ALONE, BUSY, MINUTE, once, world_with};
use crate::harness::{TENANT, World, committed};

/// What a guest may compute beyond its limit before that is seen, on a busy machine.
const UNSEEN_MS: i64 = 200;

fn with_cpu(cpu_ms: u64) -> Value {
    let mut policy = once("60s");
    policy["limits"] = json!({ "cpu_ms": cpu_ms });
    policy
}

async fn attempt(world: &World, run: uuid::Uuid) -> Attempt {
    world.attempts(run).await.pop().unwrap()
}

/// F-F01.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_computes_beyond_its_cpu_time_is_ended_before_its_deadline() {
    let _alone = ALONE.lock().await;
    let world = World::keyed().await;
    world.deploy("spin", "stripe", with_cpu(300)).await;
    let run = world.start("spin", json!({})).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["out-of-fuel"]);
    let failure = world.failure(run).await;
    assert_eq!((&failure["code"], &failure["kind"]), (&json!("out-of-fuel"), &json!("retryable")));
    let words = failure["message"].as_str().unwrap();
    assert!(words.contains("300 ms") && words.contains("policy.limits.cpu_ms"), "{words}");
    let used = attempt(&world, run).await.cpu_ms.unwrap();
    assert!((300..300 + UNSEEN_MS).contains(&used), "{used}");
    assert!(world.lasted(run).await < MINUTE - BUSY);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_waits_uses_no_cpu_time() {
    let world = World::keyed().await;
    world.deploy("sleep", "stripe", with_cpu(500)).await;
    let run = world.start("sleep", json!({ "ms": 1_500 })).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["completed"]);
    let attempt = attempt(&world, run).await;
    assert!((1..500).contains(&attempt.cpu_ms.unwrap()), "{attempt:?}");
    assert!((1..1_000).contains(&attempt.host_calls.unwrap()), "{attempt:?}");
}

/// Neither the host's ceiling nor the tenant's limit can be lifted by a policy, and the tenant's holds for versions that were
/// there before it.
#[tokio::test(flavor = "multi_thread")]
async fn the_least_of_policy_tenant_and_host_is_the_limit() {
    let _alone = ALONE.lock().await;
    let world = world_with(|config| {
        config.host.default_cpu_ms = 200;
        config.host.max_cpu_ms = 400;
    })
    .await;
    for (activity_says, used) in [(json!({}), 200), (json!({ "cpu_ms": 60_000 }), 400)] {
        let mut policy = once("60s");
        policy["limits"] = activity_says;
        world.deploy("spin", "stripe", policy).await;
        let run = world.start("spin", json!({})).await;
        world.work().await;
        assert_eq!(world.outcomes(run).await, ["out-of-fuel"]);
        assert!(attempt(&world, run).await.cpu_ms.unwrap() >= used);
        assert!(world.failure(run).await["message"].as_str().unwrap().contains(&format!("{used} ms")));
    }
    let limits = Limits { max_cpu_ms: Some(100), ..Limits::default() };
    committed(world.node.store(), async |tx| set_limits(&mut *tx, TENANT, &limits).await).await;
    let node = world.second("fresh", deedbox::probe::none()).await;
    let run = world.start("spin", json!({})).await;
    crate::harness::work(&node).await;
    assert!(world.failure(run).await["message"].as_str().unwrap().contains("its 100 ms"));
}
