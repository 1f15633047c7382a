//! Questions that a person settles, through the API and on the command line's terms.

use deedbox_books::Behaviour;
use serde_json::{Value, json};

use crate::api::Api;
use crate::harness::config;

/// A run that waits for a person: what it wants to do, its run and its effect.
async fn open_question(api: &Api, behaviour: Behaviour) -> (String, String) {
    api.deploy("send", api.policy("keyless")).await;
    api.world.script(&[behaviour]).await;
    let run = api.start("send", json!({ "calls": [api.charge("the-charge")] })).await;
    api.work().await;
    let effect = api.effects_of(&run).await.remove(0);
    assert_eq!(effect["state"], "escaped", "{effect}");
    (run, effect["effect_id"].as_str().unwrap().to_owned())
}

async fn resolve(api: &Api, effect: &str, body: Value) -> crate::api::client::Answer {
    api.acme.post(&format!("/v1/effects/{effect}/resolve"), &body).await
}

/// No send may arrive any more.
async fn long_ago(api: &Api) {
    api.world.database.execute("update effects set settled_at = settled_at - interval '1 hour'").await;
}

/// R-D26, R-D27, R-D30.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_says_that_it_happened_and_the_run_goes_on_with_the_answer() {
    let api = Api::keyless().await;
    let (run, effect) = open_question(&api, Behaviour::CutAfterApply).await;
    let listed = api.acme.get("/v1/effects?state=escaped").await.expect(200);
    assert_eq!(listed["items"][0]["effect_id"], effect.as_str(), "{listed}");
    let response = json!({ "status": 201, "headers": [["Location", "/v1/charges/ch_9"]], "body": { "id": "ch_9" } });
    let said = json!({ "outcome": "happened", "response": response, "note": "seen in the dashboard", "by": "ada" });
    let shown = resolve(&api, &effect, said).await.expect(200);
    assert_eq!(
        (&shown["state"], &shown["source"], &shown["status"]),
        (&json!("completed"), &json!("supplied"), &json!(201))
    );
    let resolution = &shown["resolutions"][0];
    assert_eq!((&resolution["outcome"], &resolution["note"]), (&json!("happened"), &json!("seen in the dashboard")));
    assert!(resolution["by"].as_str().unwrap().starts_with("ada (token "), "{resolution}");
    api.work().await;
    let output = api.acme.get(&format!("/v1/runs/{run}")).await.expect(200)["output"][0].clone();
    assert_eq!((&output["source"], &output["status"]), (&json!("supplied"), &json!(201)), "{output}");
    assert_eq!(output["body"].as_str().unwrap().replace(' ', ""), r#"{"id":"ch_9"}"#);
    assert_eq!(api.world.books.arrivals().await.unwrap().len(), 1, "nothing is sent again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_says_that_it_did_not_happen_and_the_run_sends_it() {
    let api = Api::keyless().await;
    let (run, effect) = open_question(&api, Behaviour::CutBeforeApply).await;
    let said = json!({ "outcome": "did-not-happen", "note": "not in the dashboard" });
    let early = resolve(&api, &effect, said.clone()).await;
    assert_eq!(early.status, 409, "the send may still arrive: {early:?}");
    assert_eq!(api.acme.get(&format!("/v1/effects/{effect}")).await.expect(200)["state"], "escaped");
    long_ago(&api).await;
    assert_eq!(resolve(&api, &effect, said).await.expect(200)["state"], "released");
    api.work().await;
    assert_eq!(api.acme.get(&format!("/v1/runs/{run}")).await.expect(200)["state"], "completed");
    assert_eq!(api.world.books.applied().await.unwrap().len(), 1);
}

/// The leave is for one send: the next unknown outcome is a question again.
#[tokio::test(flavor = "multi_thread")]
async fn a_person_says_to_send_it_again_once() {
    let api = Api::keyless().await;
    let (run, effect) = open_question(&api, Behaviour::CutAfterApply).await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let said = json!({ "outcome": "send-again", "note": "a double is cheaper than a gap" });
    assert_eq!(resolve(&api, &effect, said.clone()).await.expect(200)["state"], "claimed");
    api.work().await;
    assert_eq!(api.acme.get(&format!("/v1/effects/{effect}")).await.expect(200)["state"], "escaped");
    assert_eq!(api.world.books.arrivals().await.unwrap().len(), 2);
    assert_eq!(resolve(&api, &effect, said).await.expect(200)["state"], "claimed");
    api.work().await;
    assert_eq!(api.acme.get(&format!("/v1/runs/{run}")).await.expect(200)["state"], "completed");
    let shown = api.acme.get(&format!("/v1/effects/{effect}")).await.expect(200);
    assert_eq!(shown["resolutions"].as_array().unwrap().len(), 2, "each decision is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_open_question_cannot_be_settled() {
    let api = Api::idle().await;
    api.deploy("send", api.policy("stripe")).await;
    let run = api.start("send", json!({ "calls": [api.charge("done")] })).await;
    api.work().await;
    let effect = api.effects_of(&run).await.remove(0)["effect_id"].as_str().unwrap().to_owned();
    let answer = resolve(&api, &effect, json!({ "outcome": "did-not-happen", "note": "x" })).await;
    assert_eq!(answer.status, 409, "{answer:?}");
    assert_eq!(resolve(&api, &"0".repeat(64), json!({ "outcome": "happened", "note": "x" })).await.status, 404);
    for wrong in [
        json!({ "outcome": "maybe", "note": "x" }),
        json!({ "outcome": "happened" }),
        json!({ "outcome": "happened", "note": "  " }),
        json!({ "outcome": "did-not-happen", "note": "x", "response": { "status": 200 } }),
        json!({ "outcome": "happened", "note": "x", "response": { "status": 500 } }),
        json!({ "outcome": "happened", "note": "x", "colour": 1 }),
    ] {
        let answer = resolve(&api, &effect, wrong.clone()).await;
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
    }
}

/// Who decided what, and why, is never changed or lost.
#[tokio::test(flavor = "multi_thread")]
async fn resolutions_can_only_be_added() {
    let api = Api::keyless().await;
    let (_, effect) = open_question(&api, Behaviour::CutAfterApply).await;
    resolve(&api, &effect, json!({ "outcome": "happened", "note": "x" })).await.expect(200);
    let mut connection = api.world.database.connect().await;
    for sql in ["update resolutions set note = 'y'", "delete from resolutions"] {
        let error = sqlx::query(sql).execute(&mut connection).await.unwrap_err();
        assert!(error.to_string().contains("append-only"), "{error}");
    }
}

/// A run that ended, or was stopped, leaves its question open; it is settled all the same.
#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_an_ended_run_stays_open_and_can_be_settled() {
    let api = Api::keyless().await;
    let mut policy = api.policy("keyless");
    (policy["on_unknown"], policy["retry"]["max_attempts"]) = (json!("at-most-once"), json!(1));
    api.deploy("send", policy).await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("x")], "fail_on_error": true })).await;
    api.work().await;
    let failed = api.acme.get(&format!("/v1/runs/{run}")).await.expect(200);
    assert_eq!(
        (&failed["state"], &failed["failure"]["code"]),
        (&json!("failed"), &json!("outcome-unknown")),
        "{failed}"
    );
    let effect = api.effects_of(&run).await.remove(0);
    assert_eq!(effect["state"], "escaped");
    let id = effect["effect_id"].as_str().unwrap();
    assert_eq!(
        resolve(&api, id, json!({ "outcome": "happened", "note": "seen" })).await.expect(200)["state"],
        "completed"
    );
}

/// R-D43. With the setting, what is recorded is sealed with the tenant's key, and comes out whole.
#[tokio::test(flavor = "multi_thread")]
async fn sealed_answers_are_unreadable_in_the_database_and_replayed_whole() {
    let mut sealing = config();
    sealing.gateway.seal_answers = true;
    let options = deedbox_books::Options { keyless: false, convention: None };
    let world = crate::harness::World::with(options, sealing).await;
    world.deploy("send", "stripe", json!({})).await;
    let call = json!({ "method": "POST", "url": world.charges(), "json": { "canary": "a-long-canary" }, "identity": { "named": "x" } });
    let run = world.start("send", json!({ "calls": [call, call] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!((&output[0]["source"], &output[1]["source"]), (&json!("sent"), &json!("replayed")));
    assert_eq!(output[0]["body"], output[1]["body"]);
    let rows: Vec<(Vec<u8>, String)> = sqlx::query_as("select body, headers from effects")
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap();
    assert!(!String::from_utf8_lossy(&rows[0].0).contains("a-long-canary") && !rows[0].1.contains("content-type"));
}
