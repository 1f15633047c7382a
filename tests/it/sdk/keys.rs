//! The keys that an activity sees are those that the host derives.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::stage::Samples;
use crate::harness::TENANT;
use crate::harness::cell::Kind;

const NAMES: [&str; 5] = ["email", "account", "ä ö", "a/b", "0"];

pub async fn are_the_hosts(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let run = stage.run("keys", json!({ "names": NAMES })).await;
    assert_eq!(stage.world.output(run).await, derived(run, &NAMES));

    let longest = "n".repeat(256);
    let run = stage.run("keys", json!({ "names": [longest] })).await;
    assert_eq!(stage.world.output(run).await, derived(run, &[&longest]));
    for refused in [String::new(), "n".repeat(257)] {
        let run = stage.run("keys", json!({ "names": [refused] })).await;
        let failure = stage.world.failure(run).await;
        assert_eq!((&failure["code"], &failure["kind"]), (&json!("invalid-name"), &json!("permanent")), "{failure}");
    }
    vectors_hold();
}

fn derived(run: Uuid, names: &[&str]) -> Value {
    let key = deedbox::key::run_key(TENANT, run);
    let subkey = |name: &&str| ((*name).to_owned(), json!(deedbox::key::subkey(&key, name).unwrap().text()));
    json!({ "run": key.text(), "subkeys": names.iter().map(subkey).collect::<Map<String, Value>>() })
}

/// What the host derives is held to the vectors that every SDK is held to.
fn vectors_hold() {
    let vectors: Value = serde_json::from_str(include_str!("../../../guest-sdk/key-vectors.json")).unwrap();
    let text = |case: &Value, name: &str| case[name].as_str().unwrap().to_owned();
    let cases = vectors["subkeys"].as_array().unwrap();
    assert!(cases.len() >= 3);
    for case in cases {
        let run = text(case, "run_id").parse().unwrap();
        let key = deedbox::key::run_key(&text(case, "tenant"), run);
        assert_eq!(deedbox::key::subkey(&key, &text(case, "name")).unwrap().text(), text(case, "text"));
    }
}
