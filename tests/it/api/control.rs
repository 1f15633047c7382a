//! What owners do to their runs: when and under which name they start, and how they are paused, cancelled and begun
//! again. Whatever is refused leaves the run as it was.

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Answer, Client};
use super::{Api, no_run};

mod again;
mod bulk;
mod cancel;
mod labels;
mod names;
mod pause;
mod times;
mod whole;

/// Does something to a run, without a body.
async fn order(client: &Client, run: &str, what: &str) -> Answer {
    client.send(client.request(Method::POST, &format!("/v1/runs/{run}/{what}"))).await
}

/// Starts a run with all that a start can say.
async fn start(client: &Client, activity: &str, body: &Value) -> Answer {
    client.post(&format!("/v1/activities/{activity}/runs"), body).await
}

/// The run that an answer names.
#[track_caller]
fn run_of(answer: &Answer) -> String {
    answer.json()["run_id"].as_str().unwrap().to_owned()
}

/// A run that has ended in this state, of an activity of its own.
async fn ended_as(api: &Api, state: &str) -> String {
    let failing = json!({ "code": "no", "message": "m", "kind": "permanent" });
    let (activity, input) = if state == "failed" { ("fail", failing) } else { ("noop", json!(1)) };
    api.deploy(activity, json!({})).await;
    let run = api.start(activity, input).await;
    if state == "cancelled" {
        order(&api.acme, &run, "cancel").await.expect(200);
    }
    api.work().await;
    assert_eq!(api.run(&run).await["state"], state);
    run
}

/// Asserts that an order of this kind finds only runs of the caller's own.
async fn assert_own_only(api: &Api, run: &str, what: &str) {
    let other = api.tenant("other").await;
    let before = api.run(run).await;
    let (foreign, unknown) = (order(&other, run, what).await, order(&other, &no_run(), what).await);
    assert_eq!(foreign.refused(404, "not_found"), unknown.refused(404, "not_found"));
    for id in ["x", &run.to_uppercase()] {
        order(&api.acme, id, what).await.refused(404, "not_found");
    }
    api.nobody()
        .send(api.nobody().request(Method::POST, &format!("/v1/runs/{run}/{what}")))
        .await
        .refused(401, "unauthenticated");
    assert_eq!(api.run(run).await, before);
}

/// A run that has failed an attempt with its effect claimed, and waits a minute for the next.
async fn between_attempts(api: &Api, behaviour: deedbox_books::Behaviour) -> String {
    let mut policy = api.policy("stripe");
    policy["retry"]["initial_interval"] = json!("60s");
    api.deploy("send", policy).await;
    api.world.script(&[behaviour]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")], "fail_on_error": true })).await;
    assert!(api.world.node.worker().run_once().await.unwrap());
    let effect = api.effects_of(&run).await.remove(0);
    assert_eq!((&effect["state"], &api.run(&run).await["state"]), (&json!("claimed"), &json!("waiting")), "{effect}");
    run
}
