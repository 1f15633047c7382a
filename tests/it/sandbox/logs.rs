//! Floods of prints: what is kept is bounded, marked, and no more in the database than that.

use std::time::Duration;

use deedbox::store::{self, log::Log};
use serde_json::{Value, json};

use super::{BUSY, once};
use crate::harness::{TENANT, World, long};

const CAP: usize = 256 << 10;

async fn logs(world: &World, run: uuid::Uuid) -> Vec<Log> {
    store::log::list(world.node.store(), TENANT, run, None, 1_000).await.unwrap()
}

fn with(start_to_close: &str, limits: Value) -> Value {
    let mut policy = once(start_to_close);
    policy["limits"] = limits;
    policy
}

/// F-F11.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_prints_without_end_is_ended_in_time_and_its_log_is_capped() {
    let world = World::keyed().await;
    world.deploy("print", "stripe", once("2s")).await;
    let run = world.start("print", json!({ "lines": u32::MAX, "bytes": 63 })).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["timed-out"]);
    assert!(world.lasted(run).await < Duration::from_secs(2) + BUSY);
    let kept = logs(&world, run).await;
    assert_eq!((kept.len(), kept[0].text.len(), kept[0].truncated), (1, CAP, true));
    assert!(kept[0].text.starts_with(&"x".repeat(63)), "the beginning is kept");
}

/// F-F11.
#[tokio::test(flavor = "multi_thread")]
async fn one_huge_line_and_very_many_records_are_capped_alike() {
    let world = World::keyed().await;
    let limits = json!({ "memory_bytes": 512 << 20, "host_calls_per_s": 1_000_000, "cpu_ms": 600_000 });
    world.deploy("print", "stripe", with("10m", limits)).await;
    let records = if long() { 1_000_000 } else { 100_000 };
    for (lines, bytes) in [(1, 100 << 20), (records, 120)] {
        let run = world.start("print", json!({ "lines": lines, "bytes": bytes })).await;
        world.work().await;
        assert_eq!(world.output(run).await, json!(lines), "every line could be written");
        let kept = logs(&world, run).await;
        assert_eq!((kept.len(), kept[0].text.len(), kept[0].truncated), (1, CAP, true));
    }
}

/// F-F11.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_may_keep_less_of_its_prints_and_not_more() {
    let world = World::keyed().await;
    for (asked, kept) in [(1_000, 1_000), (CAP * 2, CAP)] {
        world.deploy("print", "stripe", with("60s", json!({ "log_bytes": asked }))).await;
        let run = world.start("print", json!({ "lines": 6_000, "bytes": 99 })).await;
        world.work().await;
        let log = &logs(&world, run).await[0];
        assert_eq!((log.text.len(), log.truncated), (kept, true));
    }
}
