//! A worker that is told to stop.

use deedbox::probe;
use deedbox_books::Behaviour;
use serde_json::json;

use super::{SOON, Working, post, until_ended, world_with};
use crate::harness::{World, work};

async fn waiting_for_the_provider(world: &World, behaviour: Behaviour) -> (uuid::Uuid, Working) {
    world.deploy("send", "stripe", json!({ "retry": { "max_attempts": 1 } })).await;
    world.script(&[behaviour]).await;
    let run = world.start("send", post(world)).await;
    let working = Working::begin(&world.node);
    world.books.wait_for_arrivals(1, SOON).await.unwrap();
    (run, working)
}

/// F-C06.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_lets_an_attempt_finish_within_the_grace() {
    let world = world_with(|config| config.worker.grace_ms = 20_000).await;
    let (run, working) = waiting_for_the_provider(&world, Behaviour::HoldBeforeApply).await;
    working.shutdown.cancel();
    let late = world.start("send", post(&world)).await;
    let mut draining = std::pin::pin!(working.end());
    let still = tokio::time::timeout(std::time::Duration::from_millis(500), &mut draining).await;
    assert!(still.is_err(), "the drain waits for the attempt");
    world.books.release().await.unwrap();
    draining.await;
    assert_eq!(world.outcomes(run).await, ["completed"]);
    assert_eq!(world.run(late).await.state, "queued", "a draining worker takes no new run");
}

/// F-C06. Its only attempt was cut, and yet it has one left.
#[tokio::test(flavor = "multi_thread")]
async fn a_drain_gives_back_what_does_not_finish_within_the_grace() {
    let world = world_with(|config| config.worker.grace_ms = 50).await;
    let (run, working) = waiting_for_the_provider(&world, Behaviour::HoldAfterApply).await;
    world.books.wait_for_applied(1, SOON).await.unwrap();
    working.end().await;
    assert_eq!(world.outcomes(run).await, ["drained"]);
    assert_eq!(super::ask::<i32>(&world, "select spent from runs").await, 0);
    let released = world.run(run).await;
    assert_eq!(released.state, "queued");
    assert!(released.due_at.unwrap() <= world.attempts(run).await[0].ended_at.unwrap(), "due at once");
    let second = world.second("two", probe::none()).await;
    work(&second).await;
    assert_eq!(world.outcomes(run).await, ["drained", "completed"]);
    let attempts = world.attempts(run).await;
    assert_eq!((attempts[0].worker.as_str(), attempts[1].worker.as_str()), ("one", "two"));
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
    let sends = world.sends(run).await;
    assert!(sends.iter().all(|send| send.state == "completed" && send.ended_at.is_some()), "{sends:?}");
}

/// Many times: the guest looks at the clock by itself, and must not take the drain for the end of its time.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_spins_is_stopped_by_the_drain() {
    let world = world_with(|config| config.worker.grace_ms = 10).await;
    world.deploy("spin", "stripe", json!({ "timeouts": { "start_to_close": "60s" } })).await;
    let run = world.start("spin", json!({})).await;
    for round in 1..=10 {
        let working = Working::begin(&world.node);
        super::until_running(&world, run).await;
        working.end().await;
        assert_eq!(world.outcomes(run).await, vec!["drained"; round]);
        assert_eq!(super::ask::<i32>(&world, "select spent from runs").await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_asks_can_end_by_itself() {
    let world = world_with(|config| config.worker.grace_ms = 50).await;
    world.deploy("wait-cancelled", "stripe", json!({ "retry": { "max_attempts": 1 } })).await;
    let run = world.start("wait-cancelled", json!({})).await;
    let working = Working::begin(&world.node);
    super::until_running(&world, run).await;
    working.end().await;
    assert_eq!(world.outcomes(run).await, ["completed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_without_work_drains_at_once() {
    let world = world_with(|config| config.worker.grace_ms = 60_000).await;
    world.deploy("noop", "stripe", json!({})).await;
    let run = world.start("noop", json!({})).await;
    let working = Working::begin(&world.node);
    until_ended(&world, run).await;
    working.end().await;
}
