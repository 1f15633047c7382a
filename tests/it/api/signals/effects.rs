//! Signals that settle an open effect of their run: a webhook tells what became of it, and the run goes on with what
//! the webhook says. Both are one change: neither is ever there without the other.

use deedbox_books::{Behaviour, Options};
use serde_json::{Value, json};

use super::super::client::Answer;
use super::super::no_hash;
use super::{Api, KEY, OTHER_KEY, deliver, idle, of, signals_of};

const THREE_DAYS: u32 = 3 * 24 * 3_600;

async fn keyless() -> Api {
    of(Options { keyless: true, convention: None }, |_| {}).await
}

/// A run that waits for the answer to its only effect, and the effect's id.
async fn open_question(api: &Api, name: &str, behaviour: Behaviour) -> (String, String) {
    api.deploy("send", api.policy("keyless")).await;
    api.world.script(&[behaviour]).await;
    let run = api.start("send", json!({ "calls": [api.charge(name)] })).await;
    api.work().await;
    let effect = api.effects_of(&run).await.remove(0);
    assert_eq!((&effect["state"], &api.run(&run).await["state"]), (&json!("escaped"), &json!("waiting")), "{effect}");
    (run, text(&effect["effect_id"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// Delivers `answer` under a key, with a query.
async fn answer(api: &Api, run: &str, key: &str, query: &str, payload: Value) -> Answer {
    deliver(&api.acme, run, &format!("answer?{query}"), Some(key), &payload).await
}

async fn effect(api: &Api, id: &str) -> Value {
    api.acme.get(&format!("/v1/effects/{id}")).await.expect(200)
}

fn settled(delivered: bool, resolved: bool) -> Value {
    json!({ "signal_delivered": delivered, "effect_resolved": resolved })
}

/// No send may arrive any more.
async fn long_ago(api: &Api) {
    api.world.database.execute("update effects set settled_at = settled_at - interval '1 hour'").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_names_an_escaped_effect_is_its_answer() {
    for outcome in ["", "&outcome=happened"] {
        let api = keyless().await;
        let (run, id) = open_question(&api, "a", Behaviour::CutAfterApply).await;
        let query = format!("resolves={id}{outcome}");
        let payload = json!({ "id": "ch_9" });
        assert_eq!(answer(&api, &run, KEY, &query, payload.clone()).await.expect(202), settled(true, true));
        assert_eq!(answer(&api, &run, KEY, &query, payload).await.expect(202), json!({ "signal_delivered": false }));
        let shown = effect(&api, &id).await;
        assert_eq!((&shown["state"], &shown["source"]), (&json!("completed"), &json!("supplied")), "{shown}");
        let resolutions = shown["resolutions"].as_array().unwrap();
        assert_eq!((resolutions.len(), &resolutions[0]["outcome"]), (1, &json!("happened")));
        assert!(text(&resolutions[0]["by"]).starts_with("signal answer (token "), "{shown}");
        assert_eq!(api.run(&run).await["state"], "queued");
        api.work().await;
        let output = api.ended(&run).await["output"][0].clone();
        assert_eq!((&output["source"], &output["status"]), (&json!("supplied"), &json!(200)), "{output}");
        assert_eq!(output["body"], r#"{"id":"ch_9"}"#);
        assert_eq!(output["headers"], json!([["content-type", "application/json"]]));
        assert_eq!(api.world.books.arrivals().await.unwrap().len(), 1, "nothing is sent again");
        let signals = signals_of(&api, &run).await;
        assert_eq!((signals.len(), &signals[0]["name"]), (1, &json!("answer")), "it is a signal as well");
    }
}

/// The provider has the key for a day. After that it stays open, and the provider's webhook names it by what it got.
#[tokio::test(flavor = "multi_thread")]
async fn an_escaped_effect_is_named_by_its_wire_key() {
    let api = idle().await;
    api.deploy("send", api.policy("stripe")).await;
    api.world.script(&[Behaviour::CutBeforeApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")], "fail_on_error": true })).await;
    assert!(api.world.node.worker().run_once().await.unwrap());
    api.world.database.advance_seconds(THREE_DAYS).await;
    api.work().await;
    let open = api.effects_of(&run).await.remove(0);
    assert_eq!(open["state"], "escaped", "{open}");
    let query = format!("resolves={}", text(&open["wire_key"]));
    assert_eq!(answer(&api, &run, KEY, &query, json!({ "id": "ch_1" })).await.expect(202), settled(true, true));
    api.work().await;
    let ended = api.ended(&run).await;
    assert_eq!((&ended["state"], &ended["output"][0]["source"]), (&json!("completed"), &json!("supplied")), "{ended}");
    assert_eq!(ended["output"][0]["body"], r#"{"id":"ch_1"}"#);
    let arrivals = api.world.books.arrivals().await.unwrap();
    assert_eq!((arrivals.len(), arrivals[0].key.as_deref()), (1, open["wire_key"].as_str()));
}

/// The provider's own word goes before another send: a claimed effect whose outcome is unknown is settled as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_effect_is_settled_by_a_signal_before_it_is_sent_again() {
    let api = idle().await;
    let mut policy = api.policy("stripe");
    policy["retry"]["initial_interval"] = json!("60s");
    api.deploy("send", policy).await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")], "fail_on_error": true })).await;
    assert!(api.world.node.worker().run_once().await.unwrap());
    let claimed = api.effects_of(&run).await.remove(0);
    assert_eq!((&claimed["state"], &api.run(&run).await["state"]), (&json!("claimed"), &json!("waiting")), "{claimed}");
    let query = format!("resolves={}", text(&claimed["effect_id"]));
    assert_eq!(answer(&api, &run, KEY, &query, json!("seen")).await.expect(202), settled(true, true));
    api.world.database.advance_seconds(61).await;
    api.work().await;
    let ended = api.ended(&run).await;
    assert_eq!((&ended["output"][0]["source"], &ended["output"][0]["body"]), (&json!("supplied"), &json!("\"seen\"")));
    assert_eq!(api.world.books.arrivals().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_of_another_run_cannot_be_settled_and_nothing_is_delivered() {
    let api = keyless().await;
    let (first, _) = open_question(&api, "a", Behaviour::CutAfterApply).await;
    let (_, foreign) = open_question(&api, "b", Behaviour::CutAfterApply).await;
    for named in [foreign.as_str(), &no_hash(), "not-a-key", ""] {
        let refused = answer(&api, &first, KEY, &format!("resolves={named}"), json!(1)).await;
        assert!(refused.message(404, "not_found").contains("effect"), "{named}: {refused:?}");
    }
    assert!(signals_of(&api, &first).await.is_empty());
    assert_eq!(effect(&api, &foreign).await["state"], "escaped");
    assert_eq!(api.run(&first).await["state"], "waiting");
}

/// An effect whose outcome is known keeps it; the signal is delivered all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_names_a_settled_effect_is_delivered_and_settles_nothing() {
    let api = idle().await;
    api.deploy("listen", api.policy("stripe")).await;
    let asks = [json!({ "call": api.charge("a") }), json!({ "wait": { "name": "answer" } })];
    let run = api.start("listen", json!({ "asks": asks })).await;
    api.work().await;
    let before = api.effects_of(&run).await.remove(0);
    assert_eq!((&before["state"], &api.run(&run).await["state"]), (&json!("completed"), &json!("waiting")));
    let id = text(&before["effect_id"]);
    let said = answer(&api, &run, KEY, &format!("resolves={id}&outcome=did-not-happen"), json!("x")).await;
    assert_eq!(said.expect(202), settled(true, false));
    assert_eq!(api.effects_of(&run).await, [before]);
    api.work().await;
    let output = api.ended(&run).await["output"].clone();
    assert_eq!((&output[0]["source"], &output[1]), (&json!("replayed"), &json!("x")), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_is_called_undone_only_when_nothing_can_arrive_any_more() {
    let api = keyless().await;
    let (run, id) = open_question(&api, "a", Behaviour::CutBeforeApply).await;
    let query = format!("resolves={id}&outcome=did-not-happen");
    let early = answer(&api, &run, KEY, &query, json!(1)).await;
    assert!(early.message(409, "version_conflict").contains("may still arrive"), "{early:?}");
    assert!(signals_of(&api, &run).await.is_empty());
    assert_eq!(
        (&effect(&api, &id).await["state"], &api.run(&run).await["state"]),
        (&json!("escaped"), &json!("waiting"))
    );
    long_ago(&api).await;
    // What was refused has left no key behind.
    assert_eq!(answer(&api, &run, KEY, &query, json!(1)).await.expect(202), settled(true, true));
    assert_eq!(effect(&api, &id).await["state"], "released");
    api.work().await;
    assert_eq!(api.ended(&run).await["output"][0]["source"], "sent");
    assert_eq!(api.world.books.applied().await.unwrap().len(), 1);
}

/// Of many webhooks that name one effect, one settles it.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_does_not_change_the_first() {
    let api = keyless().await;
    let (run, id) = open_question(&api, "a", Behaviour::CutAfterApply).await;
    let query = format!("resolves={id}");
    assert_eq!(answer(&api, &run, KEY, &query, json!("first")).await.expect(202), settled(true, true));
    assert_eq!(answer(&api, &run, OTHER_KEY, &query, json!("second")).await.expect(202), settled(true, false));
    api.work().await;
    assert_eq!(api.ended(&run).await["output"][0]["body"], "\"first\"");
    assert_eq!(effect(&api, &id).await["resolutions"].as_array().unwrap().len(), 1);
}

/// A webhook of one tenant finds no effect of another, whatever it knows of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_tenants_effect_is_no_effect() {
    let api = keyless().await;
    let (_, id) = open_question(&api, "a", Behaviour::CutAfterApply).await;
    let other = api.tenant("other").await;
    let module = other.upload(crate::harness::component(super::super::GUESTS)).await.expect(201)["digest"].clone();
    other.put("/v1/activities/listen", &json!({ "module": module })).await.expect(201);
    let body = json!({ "input": super::waits_for(&["answer"]) });
    let theirs = text(&other.post("/v1/activities/listen/runs", &body).await.expect(201)["run_id"]);
    let said = deliver(&other, &theirs, &format!("answer?resolves={id}"), Some(KEY), &json!(1)).await;
    said.refused(404, "not_found");
    assert_eq!(effect(&api, &id).await["state"], "escaped");
}
