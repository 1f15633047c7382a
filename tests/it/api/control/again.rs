//! Beginning a failed run again: the same run, with all that it has done. Its effects keep their keys; what is not safe
//! to send again is not sent.

use std::time::Duration;

use deedbox::store::start::{self as starting, Named, NewRun, Reuse};
use deedbox_books::Behaviour;
use serde_json::{Value, json};
use uuid::Uuid;

use super::super::client::whole_list;
use super::{Api, assert_own_only, ended_as, order, run_of, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_run_begins_again_and_what_it_has_done_is_replayed() {
    let api = Api::idle().await;
    let mut policy = api.policy("stripe");
    policy["retry"]["max_attempts"] = json!(1);
    api.deploy("send", policy).await;
    let run =
        api.start("send", json!({ "calls": [api.charge("a"), api.charge("b")], "then": ["fail", "return"] })).await;
    api.work().await;
    let failed = api.run(&run).await;
    assert_eq!((&failed["state"], &failed["failure"]["code"]), (&json!("failed"), &json!("asked-to-fail")));
    let begun = order(&api.acme, &run, "retry").await.expect(200);
    assert_eq!((&begun["run_id"], &begun["state"]), (&json!(run), &json!("queued")));
    assert_eq!((&begun["failure"], &begun["ended_at"], &begun["attempts"]), (&Value::Null, &Value::Null, &json!(1)));
    api.work().await;
    let ended = api.ended(&run).await;
    assert_eq!((&ended["state"], &ended["attempts"]), (&json!("completed"), &json!(2)), "{ended}");
    for call in [0, 1_usize] {
        assert_eq!(
            (&ended["output"][call]["source"], &ended["output"][call]["status"]),
            (&json!("replayed"), &json!(201))
        );
    }
    assert_eq!(api.world.books.arrivals().await.unwrap().len(), 2);
    let attempts = whole_list(&api.acme.get(&format!("/v1/runs/{run}/attempts")).await);
    let told: Vec<_> = attempts.iter().map(|a| (a["attempt"].as_i64(), a["outcome"].as_str())).collect();
    assert_eq!(told, [(Some(1), Some("failed")), (Some(2), Some("completed"))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_begun_again_has_all_its_attempts_again() {
    let api = Api::idle().await;
    api.deploy("fail", json!({ "retry": { "max_attempts": 2, "initial_interval": "1ms", "jitter": "none" } })).await;
    let run = api.start("fail", json!({ "code": "later", "message": "m", "kind": "retryable" })).await;
    api.work().await;
    assert_eq!(api.outcomes(&run).await, ["failed"; 2]);
    order(&api.acme, &run, "retry").await.expect(200);
    api.work().await;
    assert_eq!(api.outcomes(&run).await, ["failed"; 4]);
    let ended = api.ended(&run).await;
    assert_eq!((&ended["state"], &ended["attempts"], &ended["max_attempts"]), (&json!("failed"), &json!(4), &json!(2)));
}

/// The provider takes both sends for one: the key is the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_ended_open_is_sent_again_under_its_key() {
    let api = Api::idle().await;
    let mut policy = api.policy("stripe");
    policy["retry"]["max_attempts"] = json!(1);
    api.deploy("send", policy).await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")], "fail_on_error": true })).await;
    api.work().await;
    let open = api.effects_of(&run).await.remove(0);
    assert_eq!((&open["state"], &api.run(&run).await["state"]), (&json!("escaped"), &json!("failed")), "{open}");
    order(&api.acme, &run, "retry").await.expect(200);
    api.work().await;
    let ended = api.ended(&run).await;
    assert_eq!((&ended["state"], &ended["output"][0]["status"]), (&json!("completed"), &json!(201)), "{ended}");
    let arrivals = api.world.books.arrivals().await.unwrap();
    let keys: Vec<_> = arrivals.iter().map(|arrival| arrival.key.as_deref()).collect();
    assert_eq!(keys, [open["wire_key"].as_str(); 2]);
    assert_eq!(api.world.books.applied().await.unwrap().len(), 1);
    let path = format!("/v1/effects/{}", open["effect_id"].as_str().unwrap());
    let settled = api.acme.get(&path).await.expect(200);
    assert_eq!((&settled["state"], &settled["doubled"]), (&json!("completed"), &json!(false)), "{settled}");
    let resolutions = settled["resolutions"].as_array().unwrap();
    assert_eq!((resolutions.len(), &resolutions[0]["outcome"]), (1, &json!("send-again")));
    assert!(resolutions[0]["by"].as_str().unwrap().starts_with("token "), "{settled}");
}

/// Without a key, a second send is no repeat: nothing is sent, and the guest is told the same again.
#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_not_safe_to_send_again_stays_a_question() {
    let api = Api::keyless().await;
    let mut policy = api.policy("keyless");
    policy["retry"]["max_attempts"] = json!(1);
    api.deploy("send", policy).await;
    api.world.script(&[Behaviour::Normal, Behaviour::CutAfterApply]).await;
    let mut call = api.charge("b");
    call["on_unknown"] = json!("at-most-once");
    let run = api.start("send", json!({ "calls": [api.charge("a"), call], "fail_on_error": true })).await;
    api.work().await;
    assert_eq!(api.run(&run).await["failure"]["code"], "outcome-unknown");
    order(&api.acme, &run, "retry").await.expect(200);
    api.work().await;
    assert_eq!(api.run(&run).await["failure"]["code"], "outcome-unknown");
    let states: Vec<Value> = api.effects_of(&run).await.iter().map(|effect| effect["state"].clone()).collect();
    assert_eq!(states, ["completed", "escaped"]);
    assert_eq!(api.world.books.arrivals().await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_failed_run_can_be_begun_again() {
    let api = Api::idle().await;
    let mut runs =
        vec![("completed", ended_as(&api, "completed").await), ("cancelled", ended_as(&api, "cancelled").await)];
    api.deploy("listen", json!({})).await;
    runs.push(("waiting", api.start("listen", json!({ "asks": [{ "wait": { "name": "go" } }] })).await));
    api.work().await;
    runs.push(("queued", api.start("noop", json!(1)).await));
    for (state, run) in runs {
        let before = api.run(&run).await;
        let refused = order(&api.acme, &run, "retry").await.refused(409, "run_state_conflict");
        assert_eq!(refused["details"], json!({ "runStatus": state }));
        assert_eq!(api.run(&run).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_begins_a_run_again() {
    let api = Api::idle().await;
    let run = ended_as(&api, "failed").await;
    assert_own_only(&api, &run, "retry").await;
}

/// A start of its name that came first is seen, although it had not committed when the order began.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_not_begun_again_beside_one_that_takes_its_name_just_then() {
    let api = Api::idle().await;
    api.deploy("fail", json!({})).await;
    let body = json!({ "input": { "code": "no", "message": "m", "kind": "permanent" }, "run_name": "order-42" });
    let run = run_of(&start(&api.acme, "fail", &body).await);
    api.work().await;
    assert_eq!(api.run(&run).await["state"], "failed");

    let store = api.world.node.store();
    let named = Named { run_name: "order-42".to_owned(), reuse: Reuse::RejectAlive };
    let new = NewRun { name: Some(named), ..NewRun::plain(Uuid::now_v7(), "fail", 1, "null") };
    let mut tx = store.transaction().await.unwrap();
    starting::start(&mut tx, "acme", &new, 100).await.unwrap();
    let (acme, id) = (api.acme.clone(), run.clone());
    let retrying = tokio::spawn(async move { order(&acme, &id, "retry").await });
    let held =
        "select count(*) > 0 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let mut connection = api.world.database.connect().await;
    for _ in 0..500 {
        if sqlx::query_scalar::<_, bool>(held).fetch_one(&mut connection).await.unwrap() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tx.commit().await.unwrap();
    retrying.await.unwrap().refused(409, "run_state_conflict");
    assert_eq!(api.run(&run).await["state"], "failed");
}
