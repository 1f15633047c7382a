//! Replicas whose clocks differ by minutes, one of which is set back while it works. Nothing about a lease or a retry may
//! depend on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use chrono::TimeDelta;
use deedbox::clock::{Clock, SystemClock};
use deedbox::node::{Node, NodeSettings};
use deedbox::probe;
use deedbox_books::Behaviour;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::stage::Stage;
use super::{SOON, invariants, until};
use crate::harness::{World, config, shared, tell};

const APART_MS: i64 = 600_000;
/// Longer than a reading of any of these clocks.
const START_MS: i64 = 10 * APART_MS;
const PAUSE: TimeDelta = TimeDelta::seconds(1);
const OFF_BY_AT_MOST: TimeDelta = TimeDelta::seconds(2);
const HELD: usize = 6;
const RETRIED: usize = 6;

/// The machine's clock, off by some minutes. The count of time begins elsewhere and never goes back; the time of day may.
#[derive(Debug)]
struct Skewed {
    by_ms: i64,
    set_back_ms: AtomicI64,
}

impl Skewed {
    fn by(by_ms: i64) -> Arc<Self> {
        Arc::new(Self { by_ms, set_back_ms: AtomicI64::new(0) })
    }
}

impl Clock for Skewed {
    fn elapsed(&self) -> Duration {
        SystemClock.elapsed() + Duration::from_millis((START_MS + self.by_ms).unsigned_abs())
    }

    fn now(&self) -> SystemTime {
        let ahead = START_MS + self.by_ms - self.set_back_ms.load(Ordering::SeqCst);
        SystemClock.now() + Duration::from_millis(ahead.unsigned_abs()) - Duration::from_millis(START_MS.unsigned_abs())
    }
}

struct Working {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Working {
    async fn begin(world: &World, name: &str, clock: Arc<Skewed>) -> Self {
        let mut config = config();
        config.worker.lease_ms = 1_500;
        config.gateway.default_send_ms = 60_000;
        config.gateway.max_send_ms = 60_000;
        let settings = NodeSettings {
            database_url: world.database.url.clone(),
            master_keys: shared::master_keys(),
            cache_dir: shared::cache_dir(),
            config,
            name: name.to_owned(),
        };
        let node = Node::open_with(settings, clock, probe::none()).await.unwrap();
        let stop = CancellationToken::new();
        let ended = stop.clone();
        Self { task: tokio::spawn(async move { node.work(ended).await }), stop }
    }

    async fn end(self) {
        self.stop.cancel();
        tokio::time::timeout(SOON, self.task).await.unwrap().unwrap();
    }
}

/// Whether the lease of each of these runs has been renewed beyond this moment.
async fn renewed_beyond(world: &World, runs: &[Uuid], end: chrono::DateTime<chrono::Utc>) -> bool {
    for run in runs {
        if world.run(*run).await.due_at.is_none_or(|due| due <= end) {
            return false;
        }
    }
    true
}

/// F-C08: one clock is ten minutes ahead, one ten minutes behind, and the one ahead is set back by twenty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_that_differ_by_minutes_take_no_live_lease_and_shift_no_retry() {
    let stage = Stage::fresh().await;
    let world = &stage.world;
    world.script(&vec![Behaviour::HoldAfterApply; HELD]).await;
    let pause = json!({ "retry": { "initial_interval": "1s", "backoff_coefficient": 1.0, "max_attempts": 5 } });
    world.deploy("fail-until", "stripe", pause).await;
    let (ahead, behind) = (Skewed::by(APART_MS), Skewed::by(-APART_MS));
    let nodes = [Working::begin(world, "ahead", ahead.clone()).await, Working::begin(world, "behind", behind).await];
    let mut held = Vec::new();
    for number in 0..HELD {
        held.push(world.start("send", stage.calls().charge(number)).await);
    }
    let mut retried = Vec::new();
    for _ in 0..RETRIED {
        retried.push(world.start("fail-until", json!({ "attempt": 3 })).await);
    }
    world.books.wait_for_applied(HELD as u64, SOON).await.unwrap();
    let leased = world.run(held[0]).await.due_at.unwrap();
    ahead.set_back_ms.store(2 * APART_MS, Ordering::SeqCst);
    // Two more leases, with both nodes looking for what is due.
    until("the leases are renewed again and again", async || {
        renewed_beyond(world, &held, leased + TimeDelta::seconds(3)).await
    })
    .await;
    world.books.release().await.unwrap();
    let all = [held.clone(), retried.clone()].concat();
    for run in &all {
        until("the run has ended", async || world.run(*run).await.ended_at.is_some()).await;
    }
    for node in nodes {
        node.end().await;
    }
    for run in &held {
        assert_eq!(world.outcomes(*run).await, ["completed"], "a live lease was taken");
    }
    let mut latest = TimeDelta::zero();
    for run in &retried {
        let attempts = world.attempts(*run).await;
        assert_eq!(attempts.len(), 3);
        for pair in attempts.windows(2) {
            let off = (pair[1].started_at - pair[0].ended_at.unwrap()) - PAUSE;
            assert!(off >= TimeDelta::zero() && off < OFF_BY_AT_MOST, "{off}");
            latest = latest.max(off);
        }
    }
    let seen = stage.seen(super::load::Starts { acknowledged: all, ..super::load::Starts::default() }).await;
    tell(&format!(
        "chaos clocks: 10 min apart, latest retry {} ms late; {}",
        latest.num_milliseconds(),
        seen.figures()
    ));
    invariants::assert_none(&seen);
}
