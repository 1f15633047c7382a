//! The keys that a test context shows are those that a host derives: both are held to the same vectors.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on must stop there")]

use deedbox_guest::testing::FakeContext;
use serde_json::Value;

const VECTORS: &str = include_str!("../../key-vectors.json");

/// The tenant of every test context.
const TENANT: &str = "test";

#[test]
fn run_keys_are_those_of_the_vectors_in_every_attempt() {
    for case in cases("run_keys") {
        let fake = FakeContext::for_run(text(&case, "run_id")).unwrap();
        for attempt in [1, 2, 3] {
            fake.set_attempt(attempt);
            assert_eq!(fake.idempotency_key().to_string(), text(&case, "text"), "{case}");
        }
    }
}

#[test]
fn subkeys_are_those_of_the_vectors_in_every_attempt() {
    for case in cases("subkeys") {
        let fake = FakeContext::for_run(text(&case, "run_id")).unwrap();
        for attempt in [1, 2, 3] {
            fake.set_attempt(attempt);
            assert_eq!(fake.subkey(text(&case, "name")).unwrap().to_string(), text(&case, "text"), "{case}");
        }
    }
}

#[test]
fn names_that_the_vectors_refuse_are_errors() {
    let fake = FakeContext::for_run("00000000-0000-0000-0000-000000000000").unwrap();
    let refused = vectors()["refused_names"].as_array().unwrap().clone();
    assert!(!refused.is_empty());
    for length in refused {
        let name = "a".repeat(usize::try_from(length.as_u64().unwrap()).unwrap());
        assert!(fake.subkey(&name).is_err(), "{length} bytes");
    }
}

fn vectors() -> Value {
    serde_json::from_str(VECTORS).unwrap()
}

/// The entries of the test contexts' tenant.
fn cases(kind: &str) -> Vec<Value> {
    let all = vectors()[kind].as_array().unwrap().clone();
    let cases: Vec<Value> = all.into_iter().filter(|case| text(case, "tenant") == TENANT).collect();
    assert!(cases.len() >= 3, "{kind}: too few vectors to check anything");
    cases
}

fn text<'a>(case: &'a Value, name: &str) -> &'a str {
    case[name].as_str().unwrap_or_else(|| panic!("no text `{name}` in {case}"))
}
