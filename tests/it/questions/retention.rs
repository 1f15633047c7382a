//! What is swept and what is kept. R-L12.

use deedbox::config::Config;
use deedbox_books::Behaviour;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::World;

/// Everything that has happened so far, happened so many days ago.
async fn days_pass(world: &World, days: u32) {
    for sql in [
        "update runs set ended_at = ended_at - $1 * interval '1 day' where ended_at is not null",
        "update effects set first_sent_at = first_sent_at - $1 * interval '1 day',
                            last_sent_at = last_sent_at - $1 * interval '1 day',
                            settled_at = settled_at - $1 * interval '1 day'",
    ] {
        sqlx::query(sql).bind(f64::from(days)).execute(&mut world.database.connect().await).await.unwrap();
    }
}

async fn count(world: &World, table: &str) -> i64 {
    let sql = sqlx::AssertSqlSafe(format!("select count(*) from {table}"));
    sqlx::query_scalar(sql).fetch_one(&mut world.database.connect().await).await.unwrap()
}

async fn sweep(world: &World) -> u64 {
    world.node.worker().sweep().await.unwrap()
}

fn call(world: &World, identity: Value) -> Value {
    json!({ "method": "POST", "url": world.charges(), "json": { "n": 1 }, "identity": identity })
}

async fn run(world: &World, profile: &str, identity: Value) -> Uuid {
    world.deploy("send", profile, json!({})).await;
    let run = world.start("send", json!({ "calls": [call(world, identity)] })).await;
    world.work().await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_run_is_kept_for_its_days_and_then_swept_with_its_effects() {
    let world = World::keyed().await;
    run(&world, "stripe", json!({ "named": "x" })).await;
    days_pass(&world, 29).await;
    assert_eq!((sweep(&world).await, count(&world, "runs").await), (0, 1), "thirty days are not over");
    days_pass(&world, 2).await;
    assert_eq!(sweep(&world).await, 1);
    for table in ["runs", "attempts", "effects", "sends", "logs", "checkpoints"] {
        assert_eq!(count(&world, table).await, 0, "{table}");
    }
}

/// Order 42 must not be charged again in a month.
#[tokio::test(flavor = "multi_thread")]
async fn a_business_effect_is_kept_and_still_suppresses_a_second_one() {
    let world = World::keyed().await;
    let order = json!({ "business": ["charge", "42"] });
    run(&world, "stripe", order.clone()).await;
    days_pass(&world, 400).await;
    assert_eq!((sweep(&world).await, count(&world, "effects").await), (1, 1));
    let again = run(&world, "stripe", order).await;
    let output = world.output(again).await;
    assert_eq!((&output[0]["source"], &output[0]["status"]), (&json!("replayed"), &json!(201)), "{output}");
    assert_eq!(output[0]["not_kept"], true, "the answer's body is gone, and that is said: {output}");
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

/// An old run must not take the answer away from under a younger one that made the effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_business_effect_that_a_younger_run_made_keeps_its_answer() {
    let world = World::keyed().await;
    let order = json!({ "business": ["charge", "43"] });
    world.script(&[Behaviour::StatusBeforeApply { status: 429, retry_after: None, body: None }]).await;
    let old = run(&world, "stripe", order.clone()).await;
    assert_eq!(world.output(old).await[0]["status"], 429);
    days_pass(&world, 31).await;
    run(&world, "stripe", order.clone()).await;
    assert_eq!(sweep(&world).await, 1, "the old run");
    let again = run(&world, "stripe", order).await;
    let output = world.output(again).await;
    assert_eq!((&output[0]["source"], &output[0]["not_kept"]), (&json!("replayed"), &json!(false)), "{output}");
}

/// F-I12, as far as effects go.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_still_needed_is_never_swept() {
    let world = World::keyless().await;
    world.deploy("send", "keyless", json!({ "on_unknown": "at-most-once", "retry": { "max_attempts": 1 } })).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let open =
        world.start("send", json!({ "calls": [call(&world, json!("positional"))], "fail_on_error": true })).await;
    world.work().await;
    assert_eq!(world.run(open).await.state, "failed");
    world.deploy("send", "keyless", json!({ "on_unknown": "ask" })).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let waiting = world.start("send", json!({ "calls": [call(&world, json!("positional"))] })).await;
    world.work().await;
    assert_eq!(world.run(waiting).await.state, "waiting");
    days_pass(&world, 400).await;
    assert_eq!(sweep(&world).await, 0, "an open question, and a run that waits for one");
    assert_eq!((count(&world, "runs").await, count(&world, "effects").await), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_kept_while_a_provider_remembers_a_key_of_it() {
    let world = World::keyed().await;
    run(&world, "stripe", json!({ "named": "x" })).await;
    world.database.execute("update effects set window_ms = 86400000 * 45::bigint").await;
    days_pass(&world, 40).await;
    assert_eq!(sweep(&world).await, 0, "the provider's window of 45 days is open");
    days_pass(&world, 6).await;
    assert_eq!(sweep(&world).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runs_are_swept_in_batches() {
    let world = World::keyed().await;
    run(&world, "stripe", json!({ "named": "x" })).await;
    world
        .database
        .execute(
            "insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, ended_at)
         select tenant, gen_random_uuid(), activity, version, 'completed', 'null', retry, 1, deedbox_now()
         from runs, generate_series(1, 1000)",
        )
        .await;
    days_pass(&world, 31).await;
    assert_eq!((sweep(&world).await, count(&world, "runs").await), (1_001, 0));
}

#[test]
fn a_retention_of_less_than_two_weeks_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("deedbox.toml");
    std::fs::write(&file, "[retention]\ndays = 13\n").unwrap();
    let refusal = Config::load(Some(&file)).unwrap_err().to_string();
    assert!(refusal.contains("retention.days") && refusal.contains("14"), "{refusal}");
}
