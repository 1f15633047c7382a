//! One key for all sends of an effect, whoever sends and whatever has changed since its first claim; and an answer goes
//! to the effect that it belongs to.

use std::path::Path;

use deedbox::config::Config;
use deedbox::probe;
use deedbox_books::{Behaviour, Options};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{keys, named, post};
use crate::harness::{World, config, node, work_once};

async fn statuses(world: &World, run: Uuid) -> Vec<Value> {
    world.output(run).await.as_array().unwrap().iter().map(|call| call["status"].clone()).collect()
}

/// F-B04, R-A03, R-A04, R-A07, R-K02, R-L02, R-L04. Four attempts meet a provider that fails, the fifth does not; two workers take turns.
#[tokio::test(flavor = "multi_thread")]
async fn all_sends_of_an_effect_carry_one_key_and_no_other_effect_has_it() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({ "retry": { "max_attempts": 5 } })).await;
    // Each attempt calls twice.
    world.script(&vec![Behaviour::StatusBeforeApply { status: 500, retry_after: None, body: None }; 8]).await;
    let calls = [named(&world.charges(), "first"), post(&world.charges(), json!({ "n": 2 }))];
    let then = ["fail", "fail", "fail", "fail", "return"];
    let run = world.start("send", json!({ "calls": calls, "then": then })).await;
    let second = world.second("two", probe::none()).await;
    for worker in [&world.node, &second, &world.node, &second, &world.node] {
        work_once(worker).await;
    }
    assert_eq!(statuses(&world, run).await, [201, 201]);
    let workers: Vec<_> = world.attempts(run).await.into_iter().map(|attempt| attempt.worker).collect();
    assert_eq!(workers, ["one", "two", "one", "two", "one"]);
    let keys = keys(&world).await;
    assert_eq!(keys.len(), 10);
    assert!(keys.chunks(2).all(|of_attempt| of_attempt == &keys[..2]), "{keys:?}");
    assert_ne!(keys[0], keys[1], "two calls of a run are two effects");
    assert_eq!(world.books.applied().await.unwrap().len(), 2);

    let other = world.start("send", json!({ "calls": calls })).await;
    work_once(&second).await;
    assert_eq!(statuses(&world, other).await, [201, 201]);
    let of_other = &self::keys(&world).await[10..];
    assert!(of_other.len() == 2 && of_other.iter().all(|key| !keys.contains(key)), "{of_other:?}");
}

fn write_profile(dir: &Path, version: &str, header: &str, rendering: &str) {
    let text = format!(
        "name = \"edited\"\nversion = \"{version}\"\nsource = \"this test\"\n\
         [[operation]]\n[operation.key]\ncarrier = {{ header = \"{header}\" }}\nrendering = \"{rendering}\"\nretention = \"24h\"\n"
    );
    std::fs::write(dir.join("edited.toml"), text).unwrap();
}

fn with_profiles(dir: &Path) -> Config {
    let mut config = config();
    config.gateway.profiles_dir = Some(dir.to_owned());
    config
}

/// F-B04: what the first claim pinned is what every later send carries, whatever the profile says by then.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_edited_between_two_attempts_does_not_change_an_effect_s_key_or_its_header() {
    let profiles = tempfile::tempdir().unwrap();
    write_profile(profiles.path(), "1", "Idempotency-Key", "uuid");
    let world = World::with(Options { keyless: false, convention: None }, with_profiles(profiles.path())).await;
    world.deploy("send", "edited", json!({})).await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let calls = json!([named(&world.charges(), "pinned")]);
    let run = world.start("send", json!({ "calls": calls, "then": ["fail", "return"] })).await;
    work_once(&world.node).await;

    write_profile(profiles.path(), "2", "X-Other-Key", "hex");
    let second = node(&world.database, "two", with_profiles(profiles.path()), probe::none()).await;
    work_once(&second).await;
    assert_eq!(statuses(&world, run).await, [201]);
    let arrivals = world.books.arrivals().await.unwrap();
    assert_eq!(arrivals.len(), 2);
    for arrival in &arrivals {
        assert_eq!(arrival.header("idempotency-key"), world.sends(run).await[0].wire_key.as_deref());
        assert_eq!(arrival.header("x-other-key"), None);
    }
    assert_eq!(world.books.applied().await.unwrap().len(), 1);

    // A new effect goes by the new profile.
    let other = world.start("send", json!({ "calls": calls })).await;
    work_once(&second).await;
    assert_eq!(statuses(&world, other).await, [201]);
    let arrival = &world.books.arrivals().await.unwrap()[2];
    assert_eq!(arrival.header("idempotency-key"), None);
    assert_eq!(arrival.header("x-other-key").unwrap().len(), 32);
}

/// F-B12. The next attempt calls in another order.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_never_given_to_the_call_that_has_its_place() {
    let world = World::keyed().await;
    world.deploy("call-order", "stripe", json!({})).await;
    let (a, b) = (world.charges(), format!("{}/v1/declined", world.origin()));
    let input = json!({ "urls_by_attempt": [[a], [b, a]], "then": ["trap", "return"] });
    let run = world.start("call-order", input).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["trap", "completed"]);
    let output = world.output(run).await;
    let told = |call: &Value| (call["source"].clone(), call["status"].clone());
    assert_eq!(told(&output[0]), (json!("sent"), json!(402)), "{output}");
    assert_eq!(told(&output[1]), (json!("replayed"), json!(201)), "{output}");
    let paths: Vec<_> = world.books.arrivals().await.unwrap().into_iter().map(|a| a.path_and_query).collect();
    assert_eq!(paths, ["/v1/charges", "/v1/declined"]);
}
