//! Linear memory: the cap of the host, the cap of a deployment, and that a guest at its cap harms nobody.

use serde_json::json;

use super::{ALONE, once, world_with};
use crate::harness::World;

const MIB: u64 = 1 << 20;
const DEFAULT_MEMORY: u64 = 128 * MIB;

/// Resident memory of this process, in bytes; none where the system does not tell it in a file.
#[cfg(target_os = "linux")]
pub(super) fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Some(line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap() << 10)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn resident() -> Option<u64> {
    None
}

/// The most resident memory while the work goes on.
pub(super) async fn most_resident(work: impl Future<Output = ()>) -> Option<u64> {
    let mut most = resident();
    let watch = async {
        loop {
            most = most.max(resident());
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::select! {
        () = work => {}
        () = watch => {}
    }
    most.max(resident())
}

async fn peak(world: &World, run: uuid::Uuid) -> u64 {
    let attempt = world.attempts(run).await.pop().unwrap();
    attempt.peak_memory_bytes.unwrap().try_into().unwrap()
}

/// F-F06.
#[tokio::test(flavor = "multi_thread")]
async fn a_memory_bomb_ends_at_the_cap() {
    let _alone = ALONE.lock().await;
    let world = World::keyed().await;
    world.deploy("bomb", "stripe", once("30s")).await;
    let run = world.start("bomb", json!({})).await;
    let before = resident();
    let most = most_resident(world.work()).await;
    assert_eq!(world.outcomes(run).await, ["out-of-memory"]);
    assert_eq!(world.failure(run).await["code"], "out-of-memory");
    let peak = peak(&world, run).await;
    assert!((DEFAULT_MEMORY / 2..=DEFAULT_MEMORY).contains(&peak), "{peak}");
    // Other tests of this process take memory as well.
    assert!(most <= before.map(|before| before + DEFAULT_MEMORY + 768 * MIB), "from {before:?} to {most:?}");
}

/// F-F06.
#[tokio::test(flavor = "multi_thread")]
async fn fifty_memory_bombs_at_once_harm_nobody() {
    const LIMIT: u64 = 16 * MIB;
    let _alone = ALONE.lock().await;
    let world = world_with(|config| config.host.max_instances = 51).await;
    let mut policy = once("60s");
    policy["limits"] = json!({ "memory_bytes": LIMIT });
    world.deploy("bomb", "stripe", policy.clone()).await;
    world.deploy("grow-to", "stripe", policy).await;
    let mut runs = world.start_many("bomb", 50).await;
    let neighbour = world.start("grow-to", json!({ "bytes": MIB })).await;
    runs.push(neighbour);
    let before = resident();
    let most = most_resident(world.work_until_ended(&runs)).await;
    assert_eq!(world.output(neighbour).await, json!(MIB));
    for run in &runs[..50] {
        assert_eq!(world.outcomes(*run).await, ["out-of-memory"]);
        assert!(peak(&world, *run).await <= LIMIT);
    }
    assert!(most <= before.map(|before| before + 50 * LIMIT + 768 * MIB), "from {before:?} to {most:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_within_the_limit_can_be_used() {
    let world = World::keyed().await;
    world.deploy("grow-to", "stripe", once("30s")).await;
    let fits = world.start("grow-to", json!({ "bytes": 100 * MIB })).await;
    let beyond = world.start("grow-to", json!({ "bytes": DEFAULT_MEMORY })).await;
    world.work().await;
    assert_eq!(world.output(fits).await, json!(100 * MIB));
    assert!((100 * MIB..=DEFAULT_MEMORY).contains(&peak(&world, fits).await));
    assert_eq!(world.outcomes(beyond).await, ["out-of-memory"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_sets_its_own_limit_within_the_hosts() {
    let world = world_with(|config| config.host.max_memory_bytes = 256 * MIB).await;
    let cases = [(32, 20, "completed"), (32, 40, "out-of-memory"), (200, 150, "completed")];
    for (limit, bytes, outcome) in cases {
        let mut policy = once("30s");
        policy["limits"] = json!({ "memory_bytes": limit * MIB });
        world.deploy("grow-to", "stripe", policy).await;
        let run = world.start("grow-to", json!({ "bytes": bytes * MIB })).await;
        world.work().await;
        assert_eq!(world.outcomes(run).await, [outcome], "limit {limit}, asked for {bytes}");
    }
}

/// A deployment cannot lift the host's ceiling.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_above_the_hosts_is_the_hosts() {
    let world = world_with(|config| config.host.max_memory_bytes = 160 * MIB).await;
    let mut policy = once("30s");
    policy["limits"] = json!({ "memory_bytes": 1024 * MIB });
    world.deploy("grow-to", "stripe", policy).await;
    let fits = world.start("grow-to", json!({ "bytes": 140 * MIB })).await;
    let beyond = world.start("grow-to", json!({ "bytes": 180 * MIB })).await;
    world.work().await;
    assert_eq!(world.outcomes(fits).await, ["completed"]);
    assert_eq!(world.outcomes(beyond).await, ["out-of-memory"]);
}
