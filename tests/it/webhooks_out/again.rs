//! A node that dies, or sleeps, between the receiver's answer and the record of it.

use deedbox::probe::Point;
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
