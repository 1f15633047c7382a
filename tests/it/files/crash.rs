//! Writes whose worker dies, or sleeps past its lease, between the temporary file and the rename.

use deedbox::probe::{self, Point};
use serde_json::json;

use super::*;
use crate::harness::freeze::Victim;
use crate::harness::process::Process;
use crate::harness::{node, work};

/// F-B01, R-E07: SIGKILL. The file is not there yet, and nothing but the file is there in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_was_killed_before_the_rename_is_made_whole_by_the_next_attempt() {
    let desk = Desk::new().await;
    let run = desk.start(json!([{ "path": "exports/a.csv", "fill": 300_000 }])).await;
    let settings = format!("files.directories.exports.path = {:?}", desk.root.path());
    let mut first = Process::start(&desk.world, "one", Some("before-rename"), &settings).await;
    first.held().await;
    let left = desk.names("");
    let key = desk.entries().await[0].wire_key.clone().unwrap();
    assert_eq!(left, [format!(".a.csv.deedbox-{key}-1")]);
    assert_eq!(desk.own(&left[0]).metadata().unwrap().len(), 300_000);
    first.kill();
    desk.world.expire_leases().await;
    work(&node(&desk.world.database, "two", desk.config.clone(), probe::none()).await).await;
    assert_eq!(desk.world.output(run).await[0]["source"], "sent");
    assert_eq!((desk.names(""), desk.read("a.csv").len()), (vec!["a.csv".to_owned()], 300_000));
    let results: Vec<_> = desk.world.sends(run).await.into_iter().map(|send| send.result.unwrap()).collect();
    assert_eq!(results, ["unknown", "answered"]);
}

/// F-B01: killed between the rename and its record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_that_was_killed_after_the_rename_is_made_again_with_the_same_content() {
    let desk = Desk::new().await;
    let run = desk.start(json!([{ "path": "exports/a.csv", "text": "whole" }])).await;
    let first = Victim::start(&desk.world, "one", desk.config.clone(), Some(Point::AfterResponse));
    first.held().await;
    assert_eq!(desk.read("a.csv"), "whole");
    first.kill().await;
    desk.world.expire_leases().await;
    work(&node(&desk.world.database, "two", desk.config.clone(), probe::none()).await).await;
    assert_eq!(desk.world.output(run).await[0]["source"], "sent");
    assert_eq!((desk.names(""), desk.read("a.csv").as_str()), (vec!["a.csv".to_owned()], "whole"));
}

/// R-E07, F-C01: two attempts overlap, and the first wakes when even a later run has written the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_wakes_after_its_lease_changes_nothing() {
    let desk = Desk::new().await;
    let run = desk.start(json!([{ "path": "exports/a.csv", "text": "old" }])).await;
    let first = Victim::start(&desk.world, "one", desk.config.clone(), Some(Point::BeforeRename));
    first.held().await;
    first.freeze().await;
    assert_eq!(desk.names("").len(), 1);
    desk.world.expire_leases().await;
    let second = node(&desk.world.database, "two", desk.config.clone(), probe::none()).await;
    work(&second).await;
    assert_eq!(desk.world.output(run).await[0]["source"], "sent");
    assert_eq!((desk.names(""), desk.read("a.csv").as_str()), (vec!["a.csv".to_owned()], "old"));
    let later = desk.start(json!([{ "path": "exports/a.csv", "text": "new" }])).await;
    work(&second).await;
    assert_eq!(desk.world.output(later).await[0]["source"], "sent");
    first.wake().await;
    assert_eq!((desk.names(""), desk.read("a.csv").as_str()), (vec!["a.csv".to_owned()], "new"));
}

/// Even one that has looked at its lease already: its successor leaves it nothing to rename.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_is_late_without_knowing_it_changes_nothing() {
    let desk = Desk::new().await;
    let run = desk.start(json!([{ "path": "exports/a.csv", "text": "old" }])).await;
    let first = Victim::start(&desk.world, "one", desk.config.clone(), Some(Point::BeforeRename));
    first.held().await;
    desk.world.expire_leases().await;
    let second = node(&desk.world.database, "two", desk.config.clone(), probe::none()).await;
    work(&second).await;
    let later = desk.start(json!([{ "path": "exports/a.csv", "text": "new" }])).await;
    work(&second).await;
    assert_eq!(desk.world.output(later).await[0]["source"], "sent");
    // Its clock has not moved: by it, the lease lasts still.
    first.resume().await;
    assert_eq!((desk.names(""), desk.read("a.csv").as_str()), (vec!["a.csv".to_owned()], "new"));
    assert_eq!(desk.world.output(run).await[0]["source"], "sent");
}
