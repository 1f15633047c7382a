//! What a guest may take of the machine, and that it ends by itself: time, memory, stack, places, surroundings.

use std::time::{Duration, Instant};

use deedbox::config::Config;
use deedbox_books::Options;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::harness::{TENANT, World, config};
use crate::wat_component::{LOOP, WatComponent};

mod allocation;
mod calls;
mod cpu;
mod logs;
mod memory;
mod output;
mod requests;
mod same_run;
mod surroundings;
mod tables;
mod waits;

const WASI_GUESTS: &str = "deedbox_test_guests_wasi_http.wasm";

/// Tests that load the machine or look at the whole process run one after another.
static ALONE: Mutex<()> = Mutex::const_new(());

const MINUTE: Duration = Duration::from_secs(60);

/// What a busy machine may add to any time.
const BUSY: Duration = Duration::from_secs(5);

/// Longer than that, so that whatever waits for the end of those that spin takes too long.
const SPUN: Duration = Duration::from_secs(6);

async fn world_with(change: impl FnOnce(&mut Config)) -> World {
    let mut config = config();
    change(&mut config);
    World::with(Options { keyless: false, convention: None }, config).await
}

/// A policy of one attempt that may last so long.
fn once(start_to_close: &str) -> Value {
    json!({ "retry": { "max_attempts": 1 }, "timeouts": { "start_to_close": start_to_close } })
}

impl World {
    async fn start_many(&self, activity: &str, count: usize) -> Vec<uuid::Uuid> {
        let mut runs = Vec::with_capacity(count);
        for _ in 0..count {
            runs.push(self.start(activity, json!({})).await);
        }
        runs
    }

    /// Works as a node does, many runs at once, until all these have ended.
    async fn work_until_ended(&self, runs: &[uuid::Uuid]) {
        let shutdown = CancellationToken::new();
        let ended = async {
            for run in runs {
                self.wait_ended(*run).await;
            }
            shutdown.cancel();
        };
        tokio::join!(self.node.work(shutdown.clone()), ended);
    }

    async fn wait_ended(&self, run: uuid::Uuid) {
        let give_up = Instant::now() + 2 * MINUTE;
        while self.run(run).await.ended_at.is_none() {
            assert!(Instant::now() < give_up, "{:?}", self.run(run).await);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn lasted(&self, run: uuid::Uuid) -> Duration {
        let attempt = self.attempts(run).await.pop().unwrap();
        (attempt.ended_at.unwrap() - attempt.started_at).to_std().unwrap()
    }

    async fn deploy_bytes(&self, activity: &str, bytes: Vec<u8>, policy: Value) {
        let uploaded = self.node.registry().upload(TENANT, bytes.into()).await.unwrap();
        let policy = deedbox::policy::Policy::parse(&policy.to_string()).unwrap();
        let policy = serde_json::to_string(&policy).unwrap();
        let store = self.node.store();
        crate::harness::deploy_version(store, TENANT, activity, &uploaded.digest, activity, &policy).await.unwrap();
    }
}

/// How long pings of the database, and timers of a millisecond, took until the end was there.
async fn delays(world: &World, end: impl Future<Output = ()>) -> [Vec<Duration>; 2] {
    let (mut pings, mut timers) = (Vec::new(), Vec::new());
    let measure = async {
        loop {
            let began = Instant::now();
            world.node.store().ping().await.unwrap();
            pings.push(began.elapsed());
            let began = Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            timers.push(began.elapsed());
        }
    };
    tokio::select! {
        () = end => {}
        () = measure => {}
    }
    [pings, timers]
}

/// F-F01. As many as there are processors, and one more.
#[tokio::test(flavor = "multi_thread")]
async fn guests_that_never_end_are_ended_and_leave_room_for_others() {
    let _alone = ALONE.lock().await;
    let world = World::keyed().await;
    world.deploy("spin", "stripe", once(&format!("{}s", SPUN.as_secs()))).await;
    world.deploy("noop", "stripe", json!({})).await;
    let spinning = world.start_many("spin", std::thread::available_parallelism().unwrap().get() + 1).await;
    let shutdown = CancellationToken::new();
    let neighbours = async {
        let mut count = 0;
        while world.run(spinning[0]).await.ended_at.is_none() {
            let run = world.start("noop", json!({ "n": count })).await;
            let began = Instant::now();
            world.wait_ended(run).await;
            assert!(began.elapsed() < BUSY, "a neighbour took {:?}", began.elapsed());
            count += 1;
        }
        assert!(count > 2);
        for run in &spinning {
            world.wait_ended(*run).await;
        }
        shutdown.cancel();
    };
    let delays = delays(&world, async {
        tokio::join!(world.node.work(shutdown.clone()), neighbours);
    });
    for (mut took, what) in delays.await.into_iter().zip(["a ping", "a timer of 1 ms"]) {
        took.sort_unstable();
        let (usual, most) = (took[took.len() / 2], took[took.len() - 1]);
        assert!(usual < Duration::from_millis(500) && most < BUSY, "{what} took {usual:?}, at most {most:?}");
    }
    for run in spinning {
        assert_eq!(world.outcomes(run).await, ["timed-out"]);
        let lasted = world.lasted(run).await;
        assert!((SPUN..SPUN + BUSY).contains(&lasted), "{lasted:?}");
    }
}

/// F-F03.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_loops_when_it_is_made_is_refused_at_upload() {
    let world = world_with(|config| {
        config.host.describe_timeout_ms = 300;
        config.host.max_instances = 1;
    })
    .await;
    let start = WatComponent { start: Some(LOOP), ..WatComponent::default() }.bytes();
    let init = WatComponent { init: Some(LOOP), ..WatComponent::default() }.bytes();
    // More often than there are places for instances: each gives its place back.
    for bytes in [start, init].iter().cycle().take(6) {
        let began = Instant::now();
        let refused = world.node.registry().upload(TENANT, bytes.clone().into()).await.unwrap_err();
        assert!(refused.to_string().contains("did not end within 300 ms"), "{refused}");
        assert!(began.elapsed() < Duration::from_millis(300) + BUSY, "{:?}", began.elapsed());
    }
    world.node.registry().upload(TENANT, WatComponent::default().bytes().into()).await.unwrap();
}

/// Loops when it gets more memory than `describe` has: it passes the upload, and never becomes an instance in a run.
const LOOP_IN_A_RUN: &str = "(if (i32.ne (memory.grow (i32.const 2100)) (i32.const -1)) (then (loop $on (br $on))))";

/// F-F03.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_instance_is_never_made_is_ended() {
    let world = world_with(|config| config.host.max_instances = 1).await;
    let policy = json!({
        "retry": { "max_attempts": 2, "initial_interval": "1ms" },
        "timeouts": { "start_to_close": "300ms" },
        "limits": { "memory_bytes": 256 << 20 },
    });
    let start = WatComponent { start: Some(LOOP_IN_A_RUN), names: vec!["start"], ..WatComponent::default() };
    let init = WatComponent { init: Some(LOOP_IN_A_RUN), names: vec!["init"], ..WatComponent::default() };
    let good = WatComponent { names: vec!["good"], ..WatComponent::default() };
    for component in [start, init, good] {
        world.deploy_bytes(component.names[0], component.bytes(), policy.clone()).await;
    }
    let runs = [world.start("start", json!({})).await, world.start("init", json!({})).await];
    let good = world.start("good", json!({})).await;
    world.work_until_ended(&[runs[0], runs[1], good]).await;
    for run in runs {
        assert_eq!(world.outcomes(run).await, ["timed-out", "timed-out"]);
        assert_eq!(world.failure(run).await["code"], "timed-out");
        assert!(world.lasted(run).await < Duration::from_millis(300) + BUSY);
    }
    assert_eq!(world.output(good).await, json!("ran"));
}

/// F-F10.
#[tokio::test(flavor = "multi_thread")]
async fn a_stack_without_end_ends_the_attempt_and_nothing_else() {
    let _alone = ALONE.lock().await;
    let world = World::keyed().await;
    for activity in ["recurse", "recurse-host"] {
        world.deploy(activity, "stripe", json!({ "retry": { "max_attempts": 100, "max_interval": "1ms" } })).await;
        let run = world.start(activity, json!({})).await;
        world.work().await;
        assert_eq!(world.outcomes(run).await, vec!["stack-overflow"; 100]);
        assert_eq!(world.failure(run).await["code"], "stack-overflow");
    }
    world.deploy("noop", "stripe", json!({})).await;
    let run = world.start("noop", json!(1)).await;
    world.work().await;
    assert_eq!(world.output(run).await, json!(1));
}

/// F-F12.
#[tokio::test(flavor = "multi_thread")]
async fn runs_wait_for_a_place_and_spend_nothing_meanwhile() {
    let _alone = ALONE.lock().await;
    let world = world_with(|config| config.host.max_instances = 2).await;
    world.deploy("noop", "stripe", once("10s")).await;
    world.deploy("sleep", "stripe", once("10s")).await;
    let mut runs = world.start_many("noop", 200).await;
    for _ in 0..20 {
        runs.push(world.start("sleep", json!({ "ms": 30 })).await);
    }
    world.work_until_ended(&runs).await;
    for run in runs {
        assert_eq!(world.outcomes(run).await, ["completed"]);
    }
}

/// F-F14.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_trapped_is_never_used_again() {
    let world = World::keyed().await;
    world.deploy("trap", "stripe", once("10s")).await;
    world.deploy("noop", "stripe", once("10s")).await;
    let mut runs = Vec::new();
    for n in 0..100 {
        runs.push((world.start("trap", json!({})).await, world.start("noop", json!(n)).await));
    }
    world.work().await;
    for (n, (trap, noop)) in runs.into_iter().enumerate() {
        assert_eq!(world.outcomes(trap).await, ["trap"]);
        assert_eq!(world.output(noop).await, json!(n));
    }
}

/// F-J01.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_is_told_in_its_own_words() {
    let world = World::keyed().await;
    world.deploy("trap", "stripe", once("10s")).await;
    let run = world.start("trap", json!({})).await;
    world.work().await;
    let failure = world.failure(run).await;
    assert_eq!((&failure["code"], &failure["kind"]), (&json!("trap"), &json!("retryable")));
    assert!(failure["message"].as_str().unwrap().contains("boom-42"), "{failure}");
    let logs = deedbox::store::log::list(world.node.store(), TENANT, run, None, 1_000).await.unwrap();
    assert!(logs.iter().any(|log| log.stream == "stderr" && log.text.contains("boom-42")), "{logs:?}");
}

/// F-J02.
#[tokio::test(flavor = "multi_thread")]
async fn each_way_to_end_has_a_code_of_its_own() {
    let world = World::keyed().await;
    let cases = [
        ("spin", json!({}), "timed-out"),
        ("bomb", json!({}), "out-of-memory"),
        ("recurse", json!({}), "stack-overflow"),
        ("trap", json!({}), "trap"),
        ("fail", json!({ "code": "own-code", "message": "m", "kind": "retryable" }), "own-code"),
    ];
    for (activity, input, code) in cases {
        let mut policy = once("1s");
        policy["limits"] = json!({ "memory_bytes": 16 << 20 });
        policy["retry"]["max_attempts"] = json!(2);
        world.deploy(activity, "stripe", policy).await;
        let run = world.start(activity, input).await;
        world.work().await;
        assert_eq!(world.failure(run).await["code"], code);
        assert_eq!(world.outcomes(run).await.len(), 2, "{code} is tried again");
    }
}
