//! Open questions: effects whose outcome nobody knows are asked about, or settled by a person, and never guessed.

use deedbox::store::{self, resolution};
use deedbox_books::{Behaviour, Convention, Options};
use serde_json::{Value, json};

use crate::harness::world::{TENANT, work_once};
use crate::harness::{World, config};

mod people;
mod retention;

/// A provider without keys, where an object is found by the reference that its maker gave it.
pub async fn asked() -> World {
    asked_with(|_| {}).await
}

async fn asked_with(change: impl FnOnce(&mut Convention)) -> World {
    let mut provider = Convention::own_reference();
    change(&mut provider);
    let mut config = config();
    config.gateway.max_send_ms = 400;
    config.gateway.default_send_ms = 400;
    config.gateway.max_look_up_pause_ms = 50;
    World::with(Options { keyless: false, convention: Some(provider) }, config).await
}

/// A charge with a look-up by its reference, which is the run's key.
fn charge(world: &World, settle_ms: u64) -> Value {
    let origin = world.origin();
    json!({
        "method": "POST", "url": format!("{origin}/v1/charges"), "identity": { "named": "charge" },
        "body": "{\"reference\":\"{run-key}\"}", "headers": [["content-type", "application/json"]],
        "lookup": {
            "url": format!("{origin}/v1/search?reference={{run-key}}"), "found": "/data/0/id",
            "absent": ["/data", "[]"], "settle_ms": settle_ms,
        },
    })
}

async fn effect_state(world: &World) -> String {
    let states: Vec<(String,)> =
        sqlx::query_as("select state from effects").fetch_all(&mut world.database.connect().await).await.unwrap();
    assert_eq!(states.len(), 1);
    states[0].0.clone()
}

/// R-D23 to R-D29, R-E15. The intent is committed, its outcome is unknown; the provider is asked, the run goes on with
/// what it says, and nothing is sent again.
#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_happened_is_found_and_the_run_goes_on() {
    let world = asked().await;
    world.deploy("send", "keyless", json!({})).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let run = world.start("send", json!({ "calls": [charge(&world, 0)] })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!((&output[0]["source"], &output[0]["status"]), (&json!("looked-up"), &json!(200)), "{output}");
    assert!(output[0]["body"].as_str().unwrap().contains("reference"), "{output}");
    assert_eq!(world.outcomes(run).await, ["suspended", "completed"], "waiting spends no attempt");
    let arrivals = world.books.arrivals().await.unwrap();
    assert_eq!(arrivals.iter().filter(|arrival| arrival.method == "POST").count(), 1);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
    let id = world.sends(run).await[0].effect_id.clone();
    let recorded = resolution::list(world.node.store(), TENANT, &id).await.unwrap();
    assert_eq!((recorded[0].resolved_by.as_str(), recorded[0].outcome.as_str()), ("look-up", "happened"));
    assert!(!recorded[0].note.contains('?'), "the query is not for the record: {}", recorded[0].note);
}

/// R-D25, R-D28. Absence is believed only when nothing can arrive any more; then the effect is released, and sent.
#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_did_not_happen_is_released_after_the_settling_time_and_sent() {
    let world = asked().await;
    world.deploy("send", "keyless", json!({})).await;
    world.script(&[Behaviour::CutBeforeApply]).await;
    let run = world.start("send", json!({ "calls": [charge(&world, 300)] })).await;
    work_once(&world.node).await;
    let opened = std::time::Instant::now();
    assert_eq!(effect_state(&world).await, "escaped");
    while world.run(run).await.state != "completed" {
        world.work().await;
        assert!(opened.elapsed().as_secs() < 30, "never released");
    }
    let sends = world.sends(run).await;
    assert_eq!(sends.len(), 2);
    let between = (sends[1].started_at - sends[0].started_at).num_milliseconds();
    assert!(between >= 700, "the longest send and the settling time were waited for: {between} ms");
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

/// R-D30. What the provider cannot tell stays open, however often it is asked.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_that_cannot_tell_leaves_the_question_open() {
    let world = asked().await;
    world.deploy("send", "keyless", json!({ "on_unknown": "at-least-once" })).await;
    world.script(&[Behaviour::CutBeforeApply]).await;
    let mut call = charge(&world, 0);
    call["lookup"]["absent"] = json!(["/data", "never"]);
    let run = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    assert_eq!((world.run(run).await.state.as_str(), effect_state(&world).await.as_str()), ("waiting", "escaped"));
    let looks: Vec<(i32,)> =
        sqlx::query_as("select looks from effects").fetch_all(&mut world.database.connect().await).await.unwrap();
    assert!(looks[0].0 >= 2, "it is asked again: {looks:?}");
    assert!(world.books.applied().await.unwrap().is_empty(), "and never sent on a guess");
}

/// A provider that shows what it has only after a while is not believed when it says that there is nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_shows_it_late_is_not_taken_for_one_that_has_nothing() {
    let world = asked_with(|provider| provider.look_up_lag_ms = 700).await;
    world.deploy("send", "keyless", json!({})).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let run = world.start("send", json!({ "calls": [charge(&world, 1_500)] })).await;
    let begun = std::time::Instant::now();
    while world.run(run).await.state != "completed" {
        world.work().await;
        assert!(begun.elapsed().as_secs() < 30);
    }
    assert_eq!(world.output(run).await[0]["source"], "looked-up");
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

/// The look-up of a profile that asks by fields which two effects share can name neither.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_by_shared_fields_is_not_believed_when_two_effects_have_them() {
    let mut config = config();
    config.gateway.max_look_up_pause_ms = 50;
    let options = Options { keyless: false, convention: Some(Convention::twilio()) };
    let world = World::with(options, config).await;
    world.deploy("send", "twilio", json!({})).await;
    let call = json!({
        "method": "POST", "url": format!("{}/2010-04-01/Accounts/AC1/Messages.json", world.origin()),
        "body": "To=%2B1555&From=%2B1666&Body=hello", "headers": [["content-type", "application/x-www-form-urlencoded"]],
    });
    world.script(&[Behaviour::CutAfterApply, Behaviour::CutBeforeApply]).await;
    let first = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    assert_eq!(world.output(first).await[0]["source"], "looked-up", "one message, one effect");
    // Another request, but the look-up asks in the same words.
    let mut other = call.clone();
    other["body"] = json!("To=%2B1555&From=%2B1666&Body=hello&StatusCallback=https%3A%2F%2Fx.test%2F2");
    let second = world.start("send", json!({ "calls": [other] })).await;
    world.work().await;
    assert_eq!(world.run(second).await.state, "waiting", "whose message it is cannot be told");
}

/// A look-up must not become a way out: it is authorised, and it is a read.
#[tokio::test(flavor = "multi_thread")]
async fn a_look_up_goes_only_where_the_policy_allows_and_only_reads() {
    let world = asked().await;
    world.deploy("send", "keyless", json!({})).await;
    let mut call = charge(&world, 0);
    call["lookup"]["url"] = json!("http://127.0.0.1:1/elsewhere");
    let run = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["error"], "denied");
    assert!(world.sends(run).await.is_empty());
}

/// A resolution of another tenant's effect finds nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_settled_by_its_own_tenant_only() {
    let world = World::keyless().await;
    world.deploy("send", "keyless", json!({})).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let call = json!({ "method": "POST", "url": world.charges(), "json": {} });
    let run = world.start("send", json!({ "calls": [call] })).await;
    world.work().await;
    let effect_id: [u8; 32] = world.sends(run).await[0].effect_id.clone().try_into().unwrap();
    let said = resolution::Resolution {
        effect_id,
        outcome: resolution::Outcome::Happened,
        by: "x".to_owned(),
        note: "x".to_owned(),
        answer: None,
        in_flight_ms: 0,
    };
    store::tenant::create(world.node.store(), "other").await.unwrap();
    let resolved = resolution::resolve(world.node.store(), "other", &said).await.unwrap();
    assert_eq!(resolved, resolution::Resolved::Unknown);
    assert_eq!(effect_state(&world).await, "escaped");
}
