//! Nothing is found where nothing is wrong, by all cases together.

use serde_json::json;

use super::{FAULTY, PATIENCE, Told, command, verify};
use crate::cli::program::{Ended, finish_within};
use crate::harness::{Database, component_path};

#[track_caller]
fn well(told: &Told) {
    assert_eq!((told.code, told.codes()), (Some(0), Vec::new()), "{:#}", told.report);
    let cases = told.report["cases"].as_array().unwrap();
    let missed: Vec<_> = cases.iter().filter(|case| case["happened"] == false).map(|case| &case["name"]).collect();
    assert!(missed.is_empty(), "nothing was done in {missed:?}");
    assert_eq!(told.report["left_out"], json!([]));
}

/// The example of the README, at a provider with keys and at one without.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_is_found_to_be_safe() {
    let database = Database::fresh().await;
    let input = json!({ "provider_url": super::ORIGIN, "order": "42", "amount_cents": 4200, "customer": "ada" });
    let mut command = command(&component_path("charge_once.wasm"), "charge-once", "stripe", &input);
    command.args(["--json", "--database-url", &database.url]);
    let Ended { code, out, err } = finish_within(command, PATIENCE).await;
    let report = serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}\n{err}"));
    let told = Told { code, report };
    well(&told);
    assert_eq!(told.report["effects"].as_array().unwrap().len(), 1);
    assert_eq!(told.report["effects"][0]["identity"], "charge");
    let of = |keys: bool| {
        let cases = told.report["cases"].as_array().unwrap().iter();
        cases.filter(|case| case["provider_keys"] == keys && case["group"] == "crash").count()
    };
    assert_eq!((of(true), of(false)), (8, 8));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_effects_with_names_are_safe() {
    let told = verify(FAULTY, "steady", "stripe", &[]).await;
    well(&told);
    assert_eq!(told.report["effects"].as_array().unwrap().len(), 2);
    assert!(told.report["tally"]["open_questions"].as_u64().unwrap() > 0, "a provider without keys leaves questions");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_looks_like_a_fault_is_none() {
    for activity in ["counter-of-the-instance", "charge-by-order", "own-key"] {
        let told = verify(FAULTY, activity, "stripe", &["--only", "repeat,crash,answers"]).await;
        assert_eq!((told.code, told.codes()), (Some(0), Vec::new()), "{activity}: {:#}", told.report);
    }
}
