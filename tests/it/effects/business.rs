//! One business operation, named by several runs.

use deedbox::probe;
use deedbox_books::Behaviour;
use serde_json::{Value, json};

use crate::harness::World;

fn charge(world: &World, body: Value) -> Value {
    let identity = json!({ "business": ["charge", "order-42"] });
    json!({ "method": "POST", "url": world.charges(), "json": body, "identity": identity })
}

/// R-L05, R-L07, R-E16, R-D14: two runs at the same moment on two workers make one effect; the second waits and replays.
#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_one_moment_on_two_workers_make_one_effect() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[Behaviour::HoldAfterApply]).await;
    let call = charge(&world, json!({ "n": 1 }));
    let runs =
        [world.start("send", json!({ "calls": [call] })).await, world.start("send", json!({ "calls": [call] })).await];
    let second = world.second("two", probe::none()).await;
    let (one, two) = (world.node.worker().clone(), second.worker().clone());
    let working =
        [tokio::spawn(async move { one.run_once().await }), tokio::spawn(async move { two.run_once().await })];
    world.books.wait_for_applied(1, std::time::Duration::from_secs(10)).await.unwrap();
    world.books.release().await.unwrap();
    for work in working {
        work.await.unwrap().unwrap();
    }
    world.work().await;
    let mut sources = Vec::new();
    for run in runs {
        let output = world.output(run).await;
        assert_eq!(output[0]["status"], 201, "{output}");
        sources.push(output[0]["source"].as_str().unwrap().to_owned());
    }
    sources.sort();
    assert_eq!(sources, ["replayed", "sent"]);
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1);
}

/// The second run waits within a bound, and is told `in-flight` then; another attempt of it replays.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_too_long_for_another_is_told_in_flight() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[Behaviour::HoldAfterApply]).await;
    let call = charge(&world, json!({ "n": 1 }));
    let first = world.start("send", json!({ "calls": [call] })).await;
    let worker = world.node.worker().clone();
    let working = tokio::spawn(async move { worker.run_once().await });
    world.books.wait_for_applied(1, std::time::Duration::from_secs(10)).await.unwrap();
    let second = world.start("send", json!({ "calls": [call] })).await;
    let other = world.second("two", probe::none()).await;
    assert!(other.worker().run_once().await.unwrap());
    assert_eq!(world.output(second).await[0]["error"], "in-flight");
    world.books.release().await.unwrap();
    working.await.unwrap().unwrap();
    assert_eq!(world.output(first).await[0]["status"], 201);
}

/// R-D14: the same operation with another request is a bug that must be seen.
#[tokio::test(flavor = "multi_thread")]
async fn another_request_under_one_business_key_is_refused() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    let first = world.start("send", json!({ "calls": [charge(&world, json!({ "n": 1 }))] })).await;
    world.work().await;
    let second = world.start("send", json!({ "calls": [charge(&world, json!({ "n": 2 }))] })).await;
    world.work().await;
    assert_eq!(world.output(first).await[0]["status"], 201);
    let refused = world.output(second).await;
    assert_eq!(refused[0]["error"], "effect-mismatch", "{refused}");
    assert!(refused[0]["message"].as_str().unwrap().contains("charge order-42"), "{refused}");
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1);
}

/// R-L05: the identity has no run and no activity in it, so another entry point meets the same effect.
#[tokio::test(flavor = "multi_thread")]
async fn another_activity_meets_the_same_effect() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.start("send", json!({ "calls": [charge(&world, json!({ "n": 1 }))] })).await;
    world.work().await;
    let digest: (Vec<u8>, String) = sqlx::query_as("select digest, policy from activity_versions")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    let module: [u8; 32] = digest.0.try_into().unwrap();
    crate::harness::deploy_version(world.node.store(), "acme", "other", &module, "send", &digest.1).await.unwrap();
    let run = world.start("other", json!({ "calls": [charge(&world, json!({ "n": 1 }))] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["source"], "replayed");
}
