//! Pausing one run and letting it go on: a paused run begins no attempt, and the one that was stopped for it is not
//! spent.

use std::time::Duration;

use deedbox_books::Behaviour;
use serde_json::{Value, json};

use super::super::client::whole_list;
use super::{Api, assert_own_only, between_attempts, ended_as, order};
use crate::worker::until;

const SOON: Duration = Duration::from_secs(20);

async fn spent(api: &Api) -> i32 {
    sqlx::query_scalar("select spent from runs").fetch_one(&mut api.world.database.connect().await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_run_does_not_begin_until_it_is_resumed() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    for _ in 0..2 {
        let paused = order(&api.acme, &run, "pause").await.expect(200);
        assert_eq!((&paused["state"], &paused["paused"]), (&json!("queued"), &json!(true)), "{paused}");
        assert_eq!(paused, api.run(&run).await);
    }
    api.world.work().await;
    assert!(api.outcomes(&run).await.is_empty());
    for _ in 0..2 {
        let resumed = order(&api.acme, &run, "resume").await.expect(200);
        assert_eq!((&resumed["state"], &resumed["paused"]), (&json!("queued"), &json!(false)), "{resumed}");
    }
    api.work().await;
    assert_eq!(api.ended(&run).await["state"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_that_waits_for_a_retry_does_not_begin_again_when_the_time_comes() {
    let api = Api::idle().await;
    let run = between_attempts(&api, Behaviour::CutAfterApply).await;
    let paused = order(&api.acme, &run, "pause").await.expect(200);
    assert_eq!((&paused["state"], &paused["paused"]), (&json!("waiting"), &json!(true)), "{paused}");
    api.world.database.advance_seconds(61).await;
    api.world.work().await;
    assert_eq!(api.outcomes(&run).await, ["failed"]);
    assert_eq!(order(&api.acme, &run, "resume").await.expect(200)["paused"], false);
    api.work().await;
    assert_eq!(api.ended(&run).await["state"], "completed");
    assert_eq!(api.outcomes(&run).await, ["failed", "completed"]);
    assert_eq!(api.world.books.applied().await.unwrap().len(), 1);
}

/// Its time has not come when it is resumed: it still waits for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_resumed_before_its_retry_time_waits_for_that() {
    let api = Api::idle().await;
    let run = between_attempts(&api, Behaviour::CutAfterApply).await;
    let due = api.run(&run).await["due_at"].clone();
    order(&api.acme, &run, "pause").await.expect(200);
    let resumed = order(&api.acme, &run, "resume").await.expect(200);
    assert_eq!((&resumed["state"], &resumed["due_at"]), (&json!("waiting"), &due));
    api.world.work().await;
    assert_eq!(api.outcomes(&run).await, ["failed"]);
    api.world.database.advance_seconds(61).await;
    api.work().await;
    assert_eq!(api.ended(&run).await["state"], "completed");
}

/// The attempt is stopped, but not spent, and what it had sent is not done twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_running_run_gives_its_attempt_back_and_completes_once_it_is_resumed() {
    let api = Api::idle().await;
    let mut policy = api.policy("stripe");
    policy["retry"]["max_attempts"] = json!(1);
    api.deploy("send", policy).await;
    api.world.script(&[Behaviour::HoldAfterApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    api.begin_working();
    api.world.books.wait_for_applied(1, SOON).await.unwrap();
    assert_eq!(order(&api.acme, &run, "pause").await.expect(202)["paused"], true);
    until("the attempt was paused", async || api.outcomes(&run).await == ["paused"]).await;
    let paused = api.run(&run).await;
    assert_eq!((&paused["state"], &paused["attempts"]), (&json!("queued"), &json!(1)), "{paused}");
    assert_eq!(spent(&api).await, 0);
    // The worker has nothing else to do, and leaves it alone.
    let other = api.start("send", json!({ "calls": [api.charge("other")] })).await;
    assert_eq!(api.ended(&other).await["state"], "completed");
    assert_eq!(api.outcomes(&run).await, ["paused"]);
    order(&api.acme, &run, "resume").await.expect(200);
    let ended = api.ended(&run).await;
    assert_eq!((&ended["state"], &ended["attempts"]), (&json!("completed"), &json!(2)), "{ended}");
    assert_eq!(ended["output"][0]["status"], 201, "{ended}");
    assert_eq!(api.outcomes(&run).await, ["paused", "completed"]);
    let key = api.effects_of(&run).await[0]["wire_key"].clone();
    let applied = api.world.books.applied().await.unwrap();
    assert_eq!(applied.iter().filter(|entry| entry.key.as_deref() == key.as_str()).count(), 1);
    assert_eq!(applied.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_run_can_be_cancelled() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    order(&api.acme, &run, "pause").await.expect(200);
    assert_eq!(order(&api.acme, &run, "cancel").await.expect(200)["state"], "cancelled");
    let refused = order(&api.acme, &run, "resume").await.refused(409, "run_terminal");
    assert_eq!(refused["details"], json!({ "runStatus": "cancelled" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_ended_cannot_be_paused_or_resumed() {
    let api = Api::idle().await;
    for state in ["completed", "failed", "cancelled"] {
        let run = ended_as(&api, state).await;
        for what in ["pause", "resume"] {
            let refused = order(&api.acme, &run, what).await.refused(409, "run_terminal");
            assert_eq!(refused["details"], json!({ "runStatus": state }));
        }
        assert_eq!(api.run(&run).await["paused"], false);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_pauses_and_resumes_a_run() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    assert_own_only(&api, &run, "pause").await;
    order(&api.acme, &run, "pause").await.expect(200);
    assert_own_only(&api, &run, "resume").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paused_runs_are_listed_apart() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let (paused, free) = (api.start("noop", json!(1)).await, api.start("noop", json!(2)).await);
    order(&api.acme, &paused, "pause").await.expect(200);
    for (query, expected) in [("paused=true", &paused), ("paused=false", &free)] {
        let listed = whole_list(&api.acme.get(&format!("/v1/runs?{query}")).await);
        let ids: Vec<&Value> = listed.iter().map(|run| &run["run_id"]).collect();
        assert_eq!(ids, [&json!(expected)], "{query}");
    }
    assert_eq!(whole_list(&api.acme.get("/v1/runs").await).len(), 2);
    for query in ["paused=", "paused=1", "paused=yes"] {
        api.acme.get(&format!("/v1/runs?{query}")).await.refused(400, "validation_error");
    }
}
