//! A node that dies, or sleeps, between the receiver's answer and the record of it, or that comes too late.

use deedbox::probe::Point;
use deedbox_books::Behaviour;
use serde_json::{Value, json};

use super::Stage;
use crate::harness::config;
use crate::harness::freeze::Victim;

/// A message that a node has delivered and not recorded; the node still holds it.
async fn held_after_the_answer() -> (Stage, String, Victim) {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let run = stage.start("noop", json!(1)).await;
    stage.api.work().await;
    let victim = Victim::start(&stage.api.world, "victim", config(), Some(Point::AfterCallback));
    victim.held().await;
    assert_eq!(stage.told().await.len(), 1);
    let under_way = stage.callback(&run).await;
    assert_eq!((&under_way["state"], &under_way["tries"]), (&json!("due"), &json!(1)), "{under_way}");
    assert_eq!(under_way["next_at"], Value::Null);
    // Nobody else takes it while its lease lasts.
    stage.try_once().await;
    assert_eq!(stage.told().await.len(), 1);
    (stage, run, victim)
}

async fn expire(stage: &Stage) {
    let sql = "update callbacks set due_at = deedbox_now() - interval '1 second' where lease is not null";
    stage.api.world.database.execute(sql).await;
}

/// At least once, and the receiver can tell.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_node_was_killed_before_the_record_goes_out_again_under_its_id() {
    let (stage, run, victim) = held_after_the_answer().await;
    victim.kill().await;
    expire(&stage).await;
    let delivered = stage.settled(&run).await;
    assert_eq!((&delivered["state"], &delivered["tries"]), (&json!("delivered"), &json!(2)), "{delivered}");
    let told = stage.told().await;
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!((&told[0].id, &told[0].body), (&told[1].id, &told[1].body));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_wakes_after_its_lease_records_nothing() {
    let (stage, run, victim) = held_after_the_answer().await;
    expire(&stage).await;
    stage.settled(&run).await;
    stage.redeliver(&run).await.expect(202);
    let due = stage.callback(&run).await;
    // What it makes its attempt with.
    stage.api.start("noop", json!(2)).await;
    victim.resume().await;
    assert_eq!(stage.callback(&run).await, due);
    assert_eq!(stage.told().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_being_sent_cannot_be_asked_for_until_that_is_over() {
    let (stage, run, victim) = held_after_the_answer().await;
    let under_way = stage.callback(&run).await;
    let message = stage.redeliver(&run).await.message(409, "version_conflict");
    assert!(message.contains("being sent"), "{message}");
    assert_eq!(stage.callback(&run).await, under_way);
    victim.kill().await;
    expire(&stage).await;
    stage.redeliver(&run).await.expect(202);
    assert_eq!(stage.settled(&run).await["state"], "delivered");
    assert_eq!(stage.told().await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_tries_are_never_recorded_is_given_up_an_hour_after_its_time() {
    let (stage, run, victim) = held_after_the_answer().await;
    victim.kill().await;
    stage.api.world.database.advance_seconds(72 * 3_600 + 1_800).await;
    let victim = Victim::start(&stage.api.world, "another", config(), Some(Point::AfterCallback));
    victim.held().await;
    victim.kill().await;
    assert_eq!(stage.told().await.len(), 2, "within the hour it is still tried");
    stage.api.world.database.advance_seconds(74 * 3_600).await;
    stage.try_once().await;
    let failed = stage.callback(&run).await;
    assert_eq!((&failed["state"], &failed["tries"]), (&json!("failed"), &json!(2)), "{failed}");
    assert_eq!(
        (&failed["last_error"], &failed["last_status"], &failed["next_at"]),
        (&json!("no try could be recorded"), &Value::Null, &Value::Null)
    );
    assert_eq!(stage.told().await.len(), 2);
    stage.redeliver(&run).await.expect(202);
    assert_eq!(stage.settled(&run).await["state"], "delivered");
    assert_eq!(stage.told().await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_waited_for_a_node_beyond_its_time_is_still_tried_once() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let run = stage.start("noop", json!(1)).await;
    stage.api.world.script(&[Behaviour::StatusBeforeApply { status: 500, retry_after: None, body: None }]).await;
    stage.api.work().await;
    assert!(stage.told().await.is_empty());
    stage.api.world.database.advance_seconds(100 * 3_600).await;
    let failed = stage.settled(&run).await;
    assert_eq!((&failed["state"], &failed["tries"]), (&json!("failed"), &json!(1)), "{failed}");
    assert_eq!(failed["last_error"], "answered 500");
    assert_eq!(stage.told().await.len(), 1);
}
