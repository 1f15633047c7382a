//! Signals as a guest meets them: polled, waited for, read once, and given again to every attempt.

use std::time::{Duration, Instant};

use deedbox::store::signal::{self, Delivered, Delivery};
use deedbox_books::{Behaviour, Options};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{World, committed, config, work_once};

mod edge;

const TENANT: &str = "acme";

/// How long a guest is kept waiting in these tests.
const WAIT_MS: u64 = 300;

async fn world() -> World {
    let mut config = config();
    config.signals.wait_ms = WAIT_MS;
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    world.deploy("listen", "stripe", json!({ "retry": { "max_attempts": 3 } })).await;
    world
}

async fn deliver(world: &World, run: Uuid, name: &str, payload: Value) -> Delivered {
    deliver_keyed(world, run, name, payload, None).await
}

async fn deliver_keyed(world: &World, run: Uuid, name: &str, payload: Value, key: Option<&str>) -> Delivered {
    let delivery =
        Delivery { name: name.to_owned(), payload: payload.to_string(), idempotency_key: key.map(str::to_owned) };
    committed(world.node.store(), async |tx| signal::deliver(tx, TENANT, run, &delivery, 100).await).await
}

fn poll(name: &str) -> Value {
    json!({ "poll": { "name": name } })
}

fn wait(name: &str, timeout_ms: Option<u64>) -> Value {
    json!({ "wait": { "name": name, "timeout_ms": timeout_ms } })
}

fn charge(world: &World, name: &str) -> Value {
    json!({ "call": { "method": "POST", "url": world.charges(), "json": { "n": 1 }, "identity": { "named": name } } })
}

/// F-D03. Delivered before anyone asked for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_came_before_the_run_began_is_given() {
    let world = world().await;
    let run = world.start("listen", json!({ "asks": [poll("go"), poll("go"), wait("other", None)] })).await;
    assert_eq!(deliver(&world, run, "go", json!({ "a": 1 })).await, Delivered::Fresh);
    assert_eq!(deliver(&world, run, "other", json!("x")).await, Delivered::Fresh);
    world.work().await;
    assert_eq!(world.output(run).await, json!([{ "a": 1 }, null, "x"]));
    assert_eq!(world.outcomes(run).await, ["completed"], "it never had to wait");
}

/// A wait that is longer than the host keeps the guest ends the attempt, spends none, and the run goes on when the signal
/// comes: its effects replay.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_wait_suspends_the_run_and_the_signal_wakes_it() {
    let world = world().await;
    let asks = [charge(&world, "before"), wait("go", None), charge(&world, "after")];
    let run = world.start("listen", json!({ "asks": asks })).await;
    world.work().await;
    let waiting = world.run(run).await;
    assert_eq!((waiting.state.as_str(), waiting.due_at), ("waiting", None));
    assert_eq!(waiting.waiting_signal.as_deref(), Some("go"));
    assert_eq!(world.outcomes(run).await, ["suspended"]);
    assert_eq!(deliver(&world, run, "unrelated", json!(0)).await, Delivered::Fresh);
    assert_eq!(world.run(run).await.state, "waiting", "another name does not wake it");
    assert_eq!(deliver(&world, run, "go", json!("now")).await, Delivered::Fresh);
    assert_eq!(world.run(run).await.state, "queued");
    world.work().await;
    let output = world.output(run).await;
    assert_eq!((&output[0]["source"], &output[1]), (&json!("replayed"), &json!("now")), "{output}");
    assert_eq!(world.outcomes(run).await, ["suspended", "completed"]);
    let spent: i32 =
        sqlx::query_scalar("select spent from runs").fetch_one(&mut world.database.connect().await).await.unwrap();
    assert_eq!(spent, 1, "waiting spends no attempt");
    assert_eq!(world.books.applied().await.unwrap().len(), 2);
}

/// A signal that comes while the guest is kept is given at once, without another attempt.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_comes_during_a_short_wait_is_given_in_the_same_attempt() {
    let mut config = config();
    config.signals.wait_ms = 20_000;
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    world.deploy("listen", "stripe", json!({})).await;
    let run = world.start("listen", json!({ "asks": [wait("go", None)] })).await;
    let shutdown = CancellationToken::new();
    let working = tokio::spawn(world.node.worker().clone().run(shutdown.clone()));
    until(async || asked(&world).await == 1).await;
    let began = Instant::now();
    assert_eq!(deliver(&world, run, "go", json!(7)).await, Delivered::Fresh);
    until(async || world.run(run).await.ended_at.is_some()).await;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    shutdown.cancel();
    working.await.unwrap();
    assert_eq!(world.output(run).await, json!([7]));
    assert_eq!(world.outcomes(run).await, ["completed"]);
}

async fn asked(world: &World) -> i64 {
    sqlx::query_scalar("select count(*) from signal_reads")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap()
}

async fn until(is_so: impl AsyncFn() -> bool) {
    let give_up = Instant::now() + Duration::from_secs(20);
    while !is_so().await {
        assert!(Instant::now() < give_up);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// What an attempt was given, every later attempt is given, also when other signals are there by then; and what was read
/// is not read again.
#[tokio::test(flavor = "multi_thread")]
async fn every_attempt_is_given_what_the_first_was() {
    let world = world().await;
    let asks = [poll("a"), poll("a"), wait("b", Some(0)), poll("a"), charge(&world, "c")];
    let run = world.start("listen", json!({ "asks": asks, "then": ["fail", "trap", "return"] })).await;
    deliver(&world, run, "a", json!(1)).await;
    work_once(&world.node).await;
    for later in [json!(2), json!(3)] {
        deliver(&world, run, "a", later.clone()).await;
        deliver(&world, run, "b", later).await;
        work_once(&world.node).await;
    }
    let output = world.output(run).await;
    assert_eq!(output.as_array().unwrap()[..4], [json!(1), json!(null), json!(null), json!(null)], "{output}");
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
    let unread: i64 = sqlx::query_scalar("select count(*) from signals where not read")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(unread, 4, "what came later is kept, unread");
}

/// A worker dies after a signal was read and an effect made on its word: the next attempt goes the same way.
#[tokio::test(flavor = "multi_thread")]
async fn a_takeover_is_given_the_signal_that_the_lost_attempt_read() {
    let world = world().await;
    let run = world
        .start("listen", json!({ "asks": [poll("go"), charge(&world, "charge")], "then": ["trap", "return"] }))
        .await;
    deliver(&world, run, "go", json!("yes")).await;
    world.script(&[Behaviour::Normal]).await;
    work_once(&world.node).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!((&output[0], &output[1]["source"]), (&json!("yes"), &json!("replayed")));
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

/// Signals of one name are read in the order in which they were delivered.
#[tokio::test(flavor = "multi_thread")]
async fn signals_of_one_name_are_read_in_their_order() {
    let world = world().await;
    world.deploy("read-all", "stripe", json!({})).await;
    let run = world.start("read-all", json!({ "name": "n", "signals": 50 })).await;
    for n in 0..50 {
        deliver(&world, run, "n", json!(n)).await;
    }
    world.work().await;
    assert_eq!(world.output(run).await, json!((0..50).collect::<Vec<_>>()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_name_and_too_many_calls_are_values_for_the_guest() {
    let mut config = config();
    config.signals.max_calls = 3;
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    world.deploy("listen", "stripe", json!({})).await;
    let long = "x".repeat(129);
    let asks =
        [poll(""), poll("a b"), poll(&long), poll("a"), poll("a"), wait("a", Some(1)), poll("a"), wait("b", None)];
    let run = world.start("listen", json!({ "asks": asks })).await;
    world.work().await;
    let (name, calls) = (json!({ "error": "signal-invalid-name" }), json!({ "error": "signal-too-many-calls" }));
    let none = Value::Null;
    assert_eq!(world.output(run).await, json!([name, name, name, none, none, none, calls, calls]));
}

/// A worker whose lease was taken reads nothing any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_stale_lease_reads_no_signal() {
    let world = world().await;
    let run = world.start("listen", json!({ "asks": [poll("go")] })).await;
    let store = world.node.store();
    let stale = crate::harness::lease(store, "one", 1, 60_000).await.remove(0).token;
    world.expire_leases().await;
    let fresh = crate::harness::lease(store, "two", 1, 60_000).await.remove(0).token;
    deliver(&world, run, "go", json!(1)).await;
    let ask = |token| signal::Ask {
        lease: deedbox::store::lease::Lease { tenant: TENANT.to_owned(), run_id: run, token },
        kind: signal::Kind::Poll,
        name: "go".to_owned(),
        ordinal: 0,
        timeout_ms: None,
    };
    assert!(matches!(signal::ask(store, &ask(stale)).await.unwrap(), signal::Answer::LeaseOver));
    let given = signal::ask(store, &ask(fresh)).await.unwrap();
    assert!(matches!(given, signal::Answer::Signal { sequence: 1, .. }), "{given:?}");
}
