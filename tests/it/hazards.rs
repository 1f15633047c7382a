//! Each row of the table in `examples/hazards/README.md`, crashed after its effect has landed: the world must be as one
//! run leaves it. And its naive twin in the same place: its world must be as the table says, so that a double would be
//! seen. What the world is, is read from the provider's books, never from what an activity believes.

mod case;
mod causes;
mod keys;
mod layers;
mod naive;
mod overlap;
mod snapshot;
mod table;

use std::path::Path;

use deedbox_books::{Behaviour, Books};
use serde_json::Value;

use crate::harness::cell::PATIENCE;
use crate::harness::{long, skipped};
use case::{Case, Crash};
use naive::Stand;
use table::Harm;

macro_rules! rows {
    ($($(#[$requirement:meta])* $name:ident)*) => {
        $(
            $(#[$requirement])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                survives(&Case::of(stringify!($name)), Crash::InProcess).await;
            }
        )*

        const TESTED: &[&str] = &[$(stringify!($name)),*];
    };
}

rows! {
    /// R-D01, R-D03, R-D04.
    insert_row
    /// R-D01, R-D03, R-D05.
    charge_card
    /// R-D01, R-D06.
    send_email
    /// R-D01, R-D07.
    increment_counter
    /// R-D01, R-D08.
    publish_event
    /// R-D01, R-D09.
    delete_by_id
    /// R-D01, R-D09.
    put_document
    /// R-D01, R-D10, R-D35.
    business_rejection
    /// R-D01, R-D11.
    read_only
    /// R-D01, R-D12.
    own_uuid
    /// R-D01, R-D13.
    append_to_file
}

/// R-D01, R-E20: no row without an example, no example without a row, and none of them without a test.
#[test]
fn every_row_of_the_table_has_an_example_and_a_test() {
    let rows: Vec<&str> = table::rows().iter().map(|row| row.name).collect();
    assert_eq!(rows, TESTED);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hazards/src");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| !["lib", "check_then_act"].contains(&name.as_str()))
        .collect();
    files.sort();
    let mut rows = rows;
    rows.sort_unstable();
    assert_eq!(files, rows);
}

/// R-D01, with real processes and SIGKILL for every row.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hazard_survives_a_real_kill() {
    if !long() {
        return skipped("every hazard with a real process and SIGKILL");
    }
    for row in table::rows() {
        survives(&Case::of(row.name), Crash::Kill).await;
    }
}

/// Runs the activity once in a world of its own, and once more in another where its first worker is lost; then the twin.
async fn survives(case: &Case, crash: Crash) {
    let once = case.world().await;
    let before = snapshot::of(&once.books).await;
    let run = case.run_once(&once).await;
    let one = snapshot::of(&once.books).await;
    assert_eq!(once.output(run).await, case.output);
    assert_eq!(arrivals(case, &once.books).await, 1);
    assert_eq!(one != before, case.changes_the_world(), "{one}");

    let twice = case.world().await;
    let run = case.run_and_crash(&twice, crash).await;
    assert_eq!(twice.outcomes(run).await, ["worker-lost", "completed"]);
    assert_eq!(arrivals(case, &twice.books).await, 2, "the second attempt did not come to the provider");
    assert_eq!(snapshot::of(&twice.books).await, one);
    assert_eq!(twice.output(run).await, case.output);

    bites(case, &one).await;
}

/// How many requests of the activity, or of its twin, the provider has had.
async fn arrivals(case: &Case, books: &Books) -> usize {
    books.arrivals().await.unwrap().len() - case.seeds()
}

/// The twin in the same place. `one`: the world after one run of the activity.
async fn bites(case: &Case, one: &Value) {
    let stand = Stand::with(case).await;
    if table::row(case.name).harm == Harm::AsksAgain {
        assert!(!stand.at_least_once(case.name, &case.input, 3).await);
        assert_eq!(arrivals(case, &stand.books).await, 3);
        return assert_eq!(snapshot::of(&stand.books).await, *one);
    }
    assert!(stand.run(case.name, &case.input).await);
    let once = snapshot::of(&stand.books).await;
    if case.name != "append_to_file" {
        assert_eq!(once, *one, "undisturbed, the twin does another job");
    }

    let stand = Stand::with(case).await;
    if case.changes_the_world() {
        stand.books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
        let first = stand.start(case.name, &case.input);
        stand.books.wait_for_applied(case.seeds() as u64 + 1, PATIENCE).await.unwrap();
        first.kill().await;
    } else {
        // Nothing holds a read: its first result is lost instead.
        assert!(stand.run(case.name, &case.input).await);
    }
    assert!(stand.run(case.name, &case.input).await);
    assert_eq!(arrivals(case, &stand.books).await, 2);
    let twice = snapshot::of(&stand.books).await;
    match table::row(case.name).harm {
        Harm::Doubles => {
            assert_ne!(twice, once);
            assert_eq!(twice, snapshot::doubled(&once));
        }
        Harm::None => assert_eq!(twice, once),
        Harm::AsksAgain => unreachable!("told apart above"),
    }
}
