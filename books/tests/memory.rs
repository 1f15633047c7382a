//! How long and in which cases a key is remembered: what is stored, what is forgotten, what was used elsewhere, also over a kill.
//! It must never measure a time where an order of events can be awaited.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::time::{Duration, Instant};

use common::{BODY, LONG, Running, Seen, exchange, program, request, send};
use deedbox_books::{Behaviour, Convention, Entry, Stores};
use serde_json::json;

fn failing(keep: bool) -> [Behaviour; 1] {
    [Behaviour::StatusAfterApply { status: 500, keep }]
}

#[tokio::test]
async fn a_stored_failure_is_replayed_for_ever_without_being_applied_where_failures_are_stored() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::stripe()).await;
    provider.books.script(&[Behaviour::StoredFailure { status: 500 }]).await.unwrap();
    let first = provider.post("/v1/charges", "k").await;
    for _ in 0..3 {
        let again = provider.post("/v1/charges", "k").await;
        assert_eq!((again.status, &again.body), (500, &first.body));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
    }
    assert_eq!(provider.applied().await, 0);
}

#[tokio::test]
async fn a_failure_that_is_not_stored_leaves_the_key_free() {
    for stores in [Stores::Not5xx, Stores::Only2xx] {
        let dir = tempfile::tempdir().unwrap();
        let provider = Running::with(dir.path(), Convention { stores, ..Convention::stripe() }).await;
        provider.books.script(&[Behaviour::StoredFailure { status: 503 }]).await.unwrap();
        assert_eq!(provider.post("/v1/charges", "k").await.status, 503);
        assert_eq!(provider.applied().await, 0);
        assert_eq!(provider.post("/v1/charges", "k").await.status, 201);
        assert_eq!(provider.post("/v1/charges", "k").await.status, 201);
        assert_eq!(provider.applied().await, 1, "{stores:?}");
    }
}

#[tokio::test]
async fn what_is_stored_decides_whether_an_own_failure_after_applying_applies_again() {
    for (stores, again, applied) in [(Stores::All, 500, 1), (Stores::Not5xx, 201, 2), (Stores::Only2xx, 201, 2)] {
        let dir = tempfile::tempdir().unwrap();
        let convention = Convention { stores, ..Convention::stripe() };
        let (mut running, books) = program(dir.path(), &convention).await;
        let charge = |key| request("POST", "/v1/charges", key, BODY);
        books.script(&failing(true)).await.unwrap();
        assert_eq!(exchange(books.address, &charge("own")).await.status, 500);
        books.script(&failing(false)).await.unwrap();
        assert_eq!(exchange(books.address, &charge("lost")).await.status, 500);
        running.kill().await.unwrap();
        let (_running, books) = program(dir.path(), &convention).await;
        assert_eq!(exchange(books.address, &charge("own")).await.status, again, "{stores:?}");
        assert_eq!(exchange(books.address, &charge("lost")).await.status, 201, "{stores:?}");
        assert_eq!(Entry::read_all(dir.path()).unwrap().len(), applied + 1, "{stores:?}");
    }
}

#[tokio::test]
async fn a_decline_is_stored_or_not_as_any_other_answer() {
    for (stores, stored) in [(Stores::All, Some("true")), (Stores::Not5xx, Some("true")), (Stores::Only2xx, None)] {
        let dir = tempfile::tempdir().unwrap();
        let provider = Running::with(dir.path(), Convention { stores, ..Convention::stripe() }).await;
        assert_eq!(provider.post("/v1/declined", "k").await.status, 402);
        let again = provider.post("/v1/declined", "k").await;
        assert_eq!((again.status, again.header("idempotent-replayed")), (402, stored), "{stores:?}");
    }
}

#[tokio::test]
async fn a_kept_failure_without_an_object_is_replayed_whatever_a_repeat_gets_else() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention { stores: Stores::All, ..Convention::gocardless() }).await;
    provider.books.script(&[Behaviour::StoredFailure { status: 500 }]).await.unwrap();
    assert_eq!(provider.post("/payments", "k").await.status, 500);
    assert_eq!(provider.post("/payments", "k").await.status, 500);
}

#[tokio::test]
async fn a_forgotten_key_applies_again_and_stays_forgotten_over_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let convention = Convention::stripe();
    let (mut running, books) = program(dir.path(), &convention).await;
    let charge = |key| request("POST", "/v1/charges", key, BODY);
    exchange(books.address, &charge("a")).await;
    exchange(books.address, &charge("b")).await;
    books.forget().await.unwrap();
    exchange(books.address, &charge("a")).await;
    running.kill().await.unwrap();
    let (_running, books) = program(dir.path(), &convention).await;
    let again = exchange(books.address, &charge("a")).await;
    assert_eq!((&again.json()["id"], again.header("idempotent-replayed")), (&json!("ch_3"), Some("true")));
    let fresh = exchange(books.address, &charge("b")).await;
    assert_eq!((&fresh.json()["id"], fresh.header("idempotent-replayed")), (&json!("ch_4"), None));
}

#[tokio::test]
async fn what_applies_again_under_a_forgotten_key_is_remembered_though_it_was_killed_before_its_answer() {
    let dir = tempfile::tempdir().unwrap();
    let convention = Convention::stripe();
    let (mut running, books) = program(dir.path(), &convention).await;
    let charge = request("POST", "/v1/charges", "k", BODY);
    exchange(books.address, &charge).await;
    books.forget().await.unwrap();
    books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
    let _held = send(books.address, &charge).await;
    books.wait_for_applied(2, LONG).await.unwrap();
    running.kill().await.unwrap();
    let (_running, books) = program(dir.path(), &convention).await;
    let again = exchange(books.address, &charge).await;
    assert_eq!((&again.json()["id"], again.header("idempotent-replayed")), (&json!("ch_2"), Some("true")));
    assert_eq!(Entry::read_all(dir.path()).unwrap().len(), 2);
}

#[tokio::test]
async fn a_key_in_flight_is_not_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::stripe()).await;
    provider.books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
    let (first, ()) = tokio::join!(provider.post("/v1/charges", "k"), async {
        provider.books.wait_for_applied(1, LONG).await.unwrap();
        provider.books.forget().await.unwrap();
        assert_eq!(provider.post("/v1/charges", "k").await.status, 409);
        provider.books.release().await.unwrap();
    });
    assert_eq!(provider.post("/v1/charges", "k").await.body, first.body);
}

#[tokio::test]
async fn a_key_applies_again_once_its_retention_has_passed() {
    let dir = tempfile::tempdir().unwrap();
    let retention = Duration::from_millis(200);
    let convention = Convention { retention_ms: Some(200), ..Convention::stripe() };
    let provider = Running::with(dir.path(), convention).await;
    let begun = Instant::now();
    provider.post("/v1/charges", "k").await;
    while provider.applied().await == 1 {
        assert!(begun.elapsed() < LONG, "the key was never forgotten");
        provider.post("/v1/charges", "k").await;
    }
    assert!(begun.elapsed() >= retention, "forgotten after {:?}", begun.elapsed());
}

#[tokio::test]
async fn a_key_used_elsewhere_mismatches_also_after_a_kill_until_it_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let convention = Convention::increase();
    let (mut running, books) = program(dir.path(), &convention).await;
    books.use_key("k", "object_99").await.unwrap();
    let charge = request("POST", "/v1/objects", "k", BODY);
    let seen = exchange(books.address, &charge).await;
    assert_eq!((seen.status, &seen.json()["resource_id"]), (409, &json!("object_99")));
    running.kill().await.unwrap();
    let (_running, books) = program(dir.path(), &convention).await;
    assert_eq!(exchange(books.address, &charge).await.status, 409);
    books.forget().await.unwrap();
    assert_eq!(exchange(books.address, &charge).await.status, 200);
    assert_eq!(Entry::read_all(dir.path()).unwrap().len(), 1);
}

#[tokio::test]
async fn a_key_can_turn_out_to_be_used_elsewhere_without_being_known_before() {
    for (convention, status) in
        [(Convention::stripe(), 400), (Convention::gocardless(), 409), (Convention::svix(), 201)]
    {
        let dir = tempfile::tempdir().unwrap();
        let provider = Running::with(dir.path(), convention).await;
        provider.books.script(&[Behaviour::KeyUsedElsewhere]).await.unwrap();
        assert_eq!(provider.post("/v1/charges", "k").await.status, status);
        assert_eq!(provider.post("/v1/charges", "k").await.status, status);
        assert_eq!(provider.applied().await, 0);
    }
}

#[tokio::test]
async fn a_kill_after_applying_and_before_answering_leaves_the_key_settled_under_every_convention() {
    for (convention, header, status) in [
        (Convention::stripe(), "Idempotency-Key", 201),
        (Convention::gocardless(), "Idempotency-Key", 409),
        (Convention::paypal(), "PayPal-Request-Id", 200),
        (Convention::checkout(), "Cko-Idempotency-Key", 201),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (mut running, books) = program(dir.path(), &convention).await;
        books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
        let charge = common::with_headers("POST", "/v1/charges", &[(header, "k")], BODY);
        let _held = send(books.address, &charge).await;
        books.wait_for_applied(1, LONG).await.unwrap();
        running.kill().await.unwrap();
        let (_running, books) = program(dir.path(), &convention).await;
        assert_eq!(exchange(books.address, &charge).await.status, status, "{header}");
        assert_eq!(Entry::read_all(dir.path()).unwrap().len(), 1);
    }
}

#[tokio::test]
async fn books_of_an_older_provider_are_read_as_they_were_meant() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.script(&failing(true)).await.unwrap();
    assert_eq!(provider.post("/v1/charges", "k").await.status, 500);
    provider.stop().await;
    for (file, newer) in [("answers.jsonl", &["id", "at", "applied"][..]), ("applied.jsonl", &["headers"][..])] {
        let text = std::fs::read_to_string(dir.path().join(file)).unwrap();
        let mut line: serde_json::Map<_, _> = serde_json::from_str(text.trim()).unwrap();
        for name in newer {
            assert!(line.remove(*name).is_some(), "{name}");
        }
        std::fs::write(dir.path().join(file), serde_json::to_string(&line).unwrap() + "\n").unwrap();
    }
    let provider = Running::keyed(dir.path()).await;
    let again = provider.post("/v1/charges", "k").await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (500, Some("true")));
    assert_eq!(provider.applied().await, 1);
}

#[tokio::test]
async fn every_scenario_of_cuts_and_slowness_works_under_every_way_to_answer_a_repeat() {
    for (convention, header, again) in [
        (Convention::stripe(), "Idempotency-Key", 201),
        (Convention::gocardless(), "Idempotency-Key", 409),
        (Convention::paypal(), "PayPal-Request-Id", 200),
        (Convention::svix(), "Idempotency-Key", 201),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let provider = Running::with(dir.path(), convention).await;
        let headers = [(header, "k")];
        let post = || provider.call("POST", "/v1/charges", &headers, BODY);
        let busy = Behaviour::StatusBeforeApply { status: 429, retry_after: Some(1), body: None };
        provider.books.script(&[busy, Behaviour::CutBeforeApply, Behaviour::CutAfterApply]).await.unwrap();
        let seen = post().await;
        assert_eq!((seen.status, seen.header("retry-after")), (429, Some("1")));
        assert_eq!((post().await, provider.applied().await), (Seen::NOTHING, 0));
        assert_eq!((post().await, provider.applied().await), (Seen::NOTHING, 1));
        assert_eq!((post().await.status, provider.applied().await), (again, 1), "{header}");
        provider.books.script(&[Behaviour::SlowAfterApply { ms: 60_000 }]).await.unwrap();
        let slow = common::with_headers("POST", "/v1/charges", &[(header, "slow")], BODY);
        let stream = send(provider.books.address, &slow).await;
        provider.books.wait_for_applied(2, LONG).await.unwrap();
        drop(stream);
        let begun = Instant::now();
        while exchange(provider.books.address, &slow).await.status != again {
            assert!(begun.elapsed() < LONG, "the hang-up was never noticed");
        }
        assert_eq!(provider.applied().await, 2);
    }
}
