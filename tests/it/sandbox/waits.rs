//! Guests that wait in the host for what never comes.

use std::time::{Duration, Instant};

use deedbox::store::control::{self, Changed};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{BUSY, MINUTE, WASI_GUESTS, once};
use crate::harness::{TENANT, World, committed};

const HOUR_MS: u64 = 3_600_000;

/// Starts one run of each way to wait for more than an hour.
async fn waiting(world: &World, start_to_close: &str) -> Vec<Uuid> {
    world.deploy("sleep", "stripe", once(start_to_close)).await;
    world.deploy_from(WASI_GUESTS, "wait-forever", "stripe", once(start_to_close)).await;
    let ways: [(&str, Value); 3] = [
        ("sleep", json!({ "ms": HOUR_MS })),
        ("wait-forever", json!({ "how": "block" })),
        ("wait-forever", json!({ "how": "poll" })),
    ];
    let mut runs = Vec::new();
    for (activity, input) in ways {
        runs.push(world.start(activity, input).await);
    }
    runs
}

/// F-F05.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_waits_in_the_host_is_ended_at_its_deadline() {
    let world = World::keyed().await;
    let runs = waiting(&world, "500ms").await;
    world.work_until_ended(&runs).await;
    for run in runs {
        assert_eq!(world.outcomes(run).await, ["timed-out"]);
        let lasted = world.lasted(run).await;
        assert!((Duration::from_millis(500)..Duration::from_secs(1) + BUSY).contains(&lasted), "{lasted:?}");
    }
}

/// F-F05.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_waits_in_the_host_can_be_cancelled() {
    let world = World::keyed().await;
    let runs = waiting(&world, "1h").await;
    let shutdown = CancellationToken::new();
    let owner = async {
        let give_up = Instant::now() + MINUTE;
        for run in &runs {
            while world.run(*run).await.state != "running" {
                assert!(Instant::now() < give_up, "it does not begin: {:?}", world.run(*run).await);
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        let asked = Instant::now();
        for run in &runs {
            let changed = committed(world.node.store(), async |tx| control::cancel(tx, TENANT, *run, None).await).await;
            assert_eq!(changed, Changed::Requested);
        }
        for run in &runs {
            world.wait_ended(*run).await;
        }
        assert!(asked.elapsed() < Duration::from_secs(1) + BUSY, "{:?}", asked.elapsed());
        shutdown.cancel();
    };
    tokio::join!(world.node.work(shutdown.clone()), owner);
    for run in runs {
        assert_eq!(world.outcomes(run).await, ["cancelled"]);
        assert_eq!(world.run(run).await.state, "cancelled");
    }
}
