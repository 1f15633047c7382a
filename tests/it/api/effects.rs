//! `/v1/effects`: the ledger for its owner.

use deedbox_books::Behaviour;
use serde_json::{Value, json};

use super::client::{assert_members, whole_list};
use super::{Api, no_hash, no_run};

const EFFECT: [&str; 20] = [
    "effect_id",
    "keying",
    "identity",
    "state",
    "provider",
    "account",
    "method",
    "url",
    "wire_key",
    "run_id",
    "on_unknown",
    "source",
    "status",
    "doubled",
    "first_sent_at",
    "last_sent_at",
    "settled_at",
    "asks_provider",
    "looks",
    "sends",
];

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_is_shown_with_each_of_its_sends() {
    let api = Api::idle().await;
    api.deploy("send", api.policy("stripe")).await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let mut call = api.charge("the-charge");
    call["repeat"] = json!(1);
    let run = api.start("send", json!({ "calls": [call] })).await;
    api.work().await;
    let effect = api.effects_of(&run).await.remove(0);
    assert_members(&effect, &EFFECT);
    let expected = json!({
        "keying": "activity-recipe", "state": "completed", "provider": "stripe", "method": "POST",
        "url": api.world.charges(), "run_id": run, "source": "original", "status": 201, "doubled": false,
    });
    expected.as_object().unwrap().iter().for_each(|(name, value)| assert_eq!(&effect[name], value, "{name}: {effect}"));
    assert!(effect["identity"].as_str().unwrap().contains("the-charge"), "{effect}");
    let id = effect["effect_id"].as_str().unwrap();
    assert_eq!(id.len(), 64);
    let sends = effect["sends"].as_array().unwrap();
    sends.iter().for_each(|send| {
        assert_members(send, &["send", "run_id", "attempt", "started_at", "ended_at", "result", "status"]);
    });
    let told: Vec<_> = sends.iter().map(|s| (s["send"].as_i64(), s["result"].as_str(), s["status"].as_i64())).collect();
    assert_eq!(told, [(Some(1), Some("unknown"), None), (Some(2), Some("answered"), Some(201))]);
    assert_eq!((&effect["first_sent_at"], &effect["last_sent_at"]), (&sends[0]["started_at"], &sends[1]["started_at"]));
    assert_eq!(api.acme.get(&format!("/v1/effects/{id}")).await.expect(200), effect);
    assert_eq!(whole_list(&api.acme.get("/v1/effects").await), [effect]);
}

#[tokio::test(flavor = "multi_thread")]
async fn effects_are_listed_oldest_first_by_state_provider_and_run() {
    let api = Api::keyless().await;
    let nobody = format!("http://{}", std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let mut policy = api.policy("keyless");
    policy["egress"]["allow"].as_array_mut().unwrap().push(json!(nobody));
    policy["providers"][&nobody] = json!("stripe");
    api.deploy("send", policy).await;
    api.world.script(&[Behaviour::Normal, Behaviour::CutAfterApply]).await;
    let unreachable =
        json!({ "method": "POST", "url": format!("{nobody}/x"), "json": {}, "identity": { "named": "b" } });
    let first = api.start("send", json!({ "calls": [api.charge("a"), unreachable, api.charge("c")] })).await;
    api.work().await;
    let second = api.start("send", json!({ "calls": [api.charge("d")] })).await;
    api.work().await;
    let list = |query: String| {
        let (acme, path) = (api.acme.clone(), format!("/v1/effects{query}"));
        async move {
            let identity = |effect: &Value| effect["identity"].as_str().unwrap().chars().last().unwrap();
            whole_list(&acme.get(&path).await).iter().map(identity).collect::<String>()
        }
    };
    assert_eq!(list(String::new()).await, "abcd");
    assert_eq!(list("?state=completed".into()).await, "ad");
    assert_eq!(list("?state=released".into()).await, "b");
    assert_eq!(list("?state=escaped".into()).await, "c");
    assert_eq!(list("?provider=stripe".into()).await, "b");
    assert_eq!(list(format!("?run={first}")).await, "abc");
    assert_eq!(list(format!("?run={second}&state=completed")).await, "d");
    assert_eq!(list(format!("?run={}", no_run())).await, "");
    assert_eq!(api.effects_of(&second).await.len(), 1);
    for query in ["state=done", "run=x", "provider=a%20b", "limit=0", "other=1"] {
        api.acme.get(&format!("/v1/effects?{query}")).await.refused(400, "validation_error");
    }
    api.acme.get(&format!("/v1/effects/{}", no_hash())).await.refused(404, "not_found");
}

/// A business effect belongs to the run that claimed it; a run that only looked at it made no send.
#[tokio::test(flavor = "multi_thread")]
async fn a_shared_effect_is_listed_with_the_run_that_sent_it() {
    let api = Api::idle().await;
    api.deploy("send", api.policy("stripe")).await;
    let call =
        json!({ "method": "POST", "url": api.world.charges(), "json": {}, "identity": { "business": ["pay", "7"] } });
    let first = api.start("send", json!({ "calls": [call] })).await;
    api.work().await;
    let second = api.start("send", json!({ "calls": [call] })).await;
    api.work().await;
    let effects = api.effects_of(&first).await;
    assert_eq!((effects.len(), &effects[0]["keying"]), (1, &json!("business-identity")));
    let output = &api.ended(&second).await["output"][0];
    assert_eq!((&output["source"], &output["effect_id"]), (&json!("replayed"), &effects[0]["effect_id"]));
    assert_eq!(api.acme.get(&format!("/runs/acme~2F{second}/effects")).await.expect(200)["effects"], json!([]));
}
