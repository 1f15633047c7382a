//! What the program leaves behind and how it ends: its exit codes, the report for people, JUnit, and its own database server.

use serde_json::json;

use super::{FAULTY, ORIGIN, PATIENCE, command, input, verify};
use crate::cli::program::{finish_within, place};
use crate::harness::own_server::OwnServer;
use crate::harness::{Database, component_path};

/// Without any server of ours: a private one is started, and everything is gone afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_author_needs_nothing_but_the_program() {
    let place = place();
    let junit = place.path().join("junit.xml");
    let mut command = command(&component_path(FAULTY), "attempt-in-name", "stripe", &input());
    command.args(["--only", "crash"]).arg("--junit").arg(&junit).env("TMPDIR", place.path());
    let ended = finish_within(command, PATIENCE).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(lines[0].starts_with("EFFECT") || lines[0].to_lowercase().starts_with("effect"), "{}", ended.out);
    assert!(ended.out.contains("error: doubled") && ended.out.contains("mend: "), "{}", ended.out);
    assert!(lines.last().unwrap().starts_with("verify: 1 effect, ") && lines.last().unwrap().contains("1 doubled"));
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(xml.contains("<failure ") && xml.contains("type=\"doubled\""), "{xml}");
    assert!(xml.matches("<testcase ").count() >= 8, "{xml}");
    let left: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["junit.xml"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_warning_fails_only_where_it_is_strict() {
    let lenient = verify(FAULTY, "time-in-output", "stripe", &["--only", "repeat"]).await;
    assert_eq!((lenient.code, lenient.codes()), (Some(0), vec!["nondeterministic-output"]));
    let strict = verify(FAULTY, "time-in-output", "stripe", &["--only", "repeat", "--strict"]).await;
    assert_eq!(strict.code, Some(1));
}

/// A server that is given has the databases that it had, also where the verification came to nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn databases_of_cases_are_removed() {
    let server = OwnServer::start().await;
    let database = server.migrated("given").await;
    let before = databases(&database).await;
    for (activity, code) in [("unread-status", 0), ("no-such-activity", 2)] {
        let mut command = command(&component_path(FAULTY), activity, "stripe", &input());
        command.args(["--only", "repeat", "--database-url", &database.url]);
        let ended = finish_within(command, PATIENCE).await;
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert_eq!(databases(&database).await, before);
    }
}

async fn databases(database: &Database) -> Vec<String> {
    let names = sqlx::query_scalar("select datname::text from pg_database order by datname");
    names.fetch_all(&mut database.connect().await).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_tried_is_a_matter_of_usage() {
    let database = Database::fresh().await;
    let cases = [
        ("no-such-activity", "stripe", input(), "no activity `no-such-activity`"),
        ("steady", "no-such-profile", input(), "no profile `no-such-profile`"),
        ("steady", "stripe", json!({ "wrong": 1 }), "invalid-input"),
    ];
    for (activity, profile, input, words) in cases {
        let mut command = command(&component_path(FAULTY), activity, profile, &input);
        command.args(["--database-url", &database.url, "--only", "repeat"]);
        let said = finish_within(command, PATIENCE).await.failed(2);
        assert!(said.contains(words), "{activity}: {said}");
    }
}

/// Nothing listens at the origin, and nobody resolves its name: whoever answered stood in for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_leaves_the_machine() {
    let told = verify(FAULTY, "own-key", "generic", &["--only", "repeat"]).await;
    assert_eq!((told.code, told.codes()), (Some(0), Vec::new()), "{:#}", told.report);
    assert_eq!(told.report["effects"][0]["url"], format!("{ORIGIN}/v1/charges"));
}
