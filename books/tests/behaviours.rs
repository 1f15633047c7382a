//! Every behaviour, seen from the wire and from the books. It must never trust an answer without looking into the books.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::time::{Duration, Instant};

use common::{BODY, LONG, Running, Seen, exchange, request, send};
use deedbox_books::client;
use deedbox_books::{Arrival, Behaviour, Entry};
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn a_charge_is_applied_answered_and_booked() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    let seen = provider.post("/v1/charges?expand=1", "").await;
    assert_eq!(seen.status, 201);
    assert_eq!(
        seen.json(),
        serde_json::json!({"id": "ch_1", "number": 1, "request": {"amount_cents": 4200, "customer": "c"}})
    );
    let again = exchange(provider.books.address, &request("DELETE", "/other", "", "not json")).await;
    assert_eq!(again.json(), serde_json::json!({"id": "ch_2", "number": 2, "request": "not json"}));

    let applied = provider.books.applied().await.unwrap();
    assert_eq!(
        (applied[0].number, applied[0].method.as_str(), applied[0].path.as_str()),
        (1, "POST", "/v1/charges?expand=1")
    );
    assert_eq!(applied[0].body, BODY);
    assert_eq!(applied[0].body_blake3, blake3::hash(BODY.as_bytes()).to_hex().to_string());
    assert_eq!(applied[0].key, None);
    let arrivals = provider.books.arrivals().await.unwrap();
    assert_eq!(arrivals.len(), 2);
    assert_eq!(arrivals[0].header("x-odd"), Some("one"));
    provider.stop().await;
    assert_eq!(Entry::read_all(dir.path()).unwrap(), applied);
    assert_eq!(Arrival::read_all(dir.path()).unwrap(), arrivals);
}

#[tokio::test]
async fn a_get_arrives_applies_nothing_uses_no_behaviour_and_finds_applications() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.post("/v1/charges", "k-1").await;
    provider.books.script(&[Behaviour::CutAfterApply]).await.unwrap();
    for (query, found) in [
        ("", 1),
        ("?customer=c", 1),
        ("?amount_cents=4200&customer=c", 1),
        ("?customer=d", 0),
        ("?idempotency_key=k-1", 1),
    ] {
        let seen = exchange(provider.books.address, &request("GET", &format!("/v1/charges{query}"), "", "")).await;
        assert_eq!(seen.status, 200);
        assert_eq!(seen.json()["data"].as_array().unwrap().len(), found, "{query}");
    }
    assert_eq!(provider.books.applied().await.unwrap().len(), 1);
    assert_eq!(provider.books.arrivals().await.unwrap().len(), 6);
    assert_eq!(provider.post("/v1/charges", "").await, Seen::NOTHING);
}

#[tokio::test]
async fn a_status_before_apply_leaves_no_trace_under_the_key() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    let busy = Behaviour::StatusBeforeApply { status: 429, retry_after: Some(7), body: Some("slow down".into()) };
    let broken = Behaviour::StatusBeforeApply { status: 503, retry_after: None, body: None };
    provider.books.script(&[busy, broken]).await.unwrap();
    let seen = provider.post("/v1/charges", "k").await;
    assert_eq!((seen.status, seen.header("retry-after"), seen.body.as_str()), (429, Some("7"), "slow down"));
    let seen = provider.post("/v1/charges", "k").await;
    assert_eq!((seen.status, seen.header("retry-after")), (503, None));
    assert_eq!(provider.books.applied().await.unwrap(), []);
    let seen = provider.post("/v1/charges", "k").await;
    assert_eq!((seen.status, seen.header("idempotent-replayed")), (201, None));
}

#[tokio::test]
async fn a_status_after_apply_is_replayed_only_if_it_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    let script = [
        Behaviour::StatusAfterApply { status: 500, keep: true },
        Behaviour::StatusAfterApply { status: 502, keep: false },
    ];
    provider.books.script(&script).await.unwrap();
    assert_eq!(provider.post("/v1/charges", "kept").await.status, 500);
    assert_eq!(provider.post("/v1/charges", "lost").await.status, 502);
    let kept = provider.post("/v1/charges", "kept").await;
    assert_eq!((kept.status, kept.header("idempotent-replayed")), (500, Some("true")));
    let lost = provider.post("/v1/charges", "lost").await;
    assert_eq!((lost.status, lost.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(provider.books.applied().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_cut_before_apply_books_nothing_and_a_cut_after_apply_books_once() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.script(&[Behaviour::CutBeforeApply, Behaviour::CutAfterApply]).await.unwrap();
    assert_eq!(provider.post("/v1/charges", "k").await, Seen::NOTHING);
    assert_eq!(provider.books.applied().await.unwrap(), []);
    assert_eq!(provider.post("/v1/charges", "k").await, Seen::NOTHING);
    let seen = provider.post("/v1/charges", "k").await;
    assert_eq!((seen.status, seen.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(provider.books.applied().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_held_request_goes_on_when_released_and_an_early_release_is_not_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.release().await.unwrap();
    provider.books.script(&[Behaviour::HoldBeforeApply, Behaviour::HoldAfterApply]).await.unwrap();
    let (before, ()) = tokio::join!(provider.post("/v1/charges", "a"), async {
        provider.books.wait_for_arrivals(1, LONG).await.unwrap();
        let held = provider.books.wait_for_applied(1, Duration::from_millis(50)).await;
        assert!(matches!(held, Err(client::Error::TimedOut { .. })), "{held:?}");
        provider.books.release().await.unwrap();
    });
    assert_eq!(before.status, 201);
    let (after, during) = tokio::join!(provider.post("/v1/charges", "b"), async {
        provider.books.wait_for_applied(2, LONG).await.unwrap();
        let during = provider.post("/v1/charges", "b").await;
        provider.books.release().await.unwrap();
        during
    });
    assert_eq!((after.status, during.status), (201, 409));
    assert_eq!(during.json()["error"]["code"], "idempotency_key_in_use");
    assert_eq!(provider.books.applied().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_client_that_hangs_up_while_held_before_apply_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.script(&[Behaviour::HoldBeforeApply]).await.unwrap();
    let stream = send(provider.books.address, &request("POST", "/v1/charges", "k", BODY)).await;
    provider.books.wait_for_arrivals(1, LONG).await.unwrap();
    assert_eq!(provider.post("/v1/charges", "k").await.status, 409);
    drop(stream);
    let seen = until_not_in_use(&provider, "k").await;
    assert_eq!((seen.status, seen.header("idempotent-replayed")), (201, None));
    assert_eq!(provider.books.applied().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_client_that_hangs_up_while_held_after_apply_finds_its_answer_kept() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
    let whole = request("POST", "/v1/charges", "k", BODY).replace("Connection: close\r\n", "");
    let stream = send(provider.books.address, &whole).await;
    provider.books.wait_for_applied(1, LONG).await.unwrap();
    assert_eq!(provider.post("/v1/charges", "k").await.status, 409);
    drop(stream);
    let seen = until_not_in_use(&provider, "k").await;
    assert_eq!((seen.status, seen.header("idempotent-replayed")), (201, Some("true")));
    assert_eq!(provider.books.applied().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_slow_answer_is_applied_at_once_and_sent_later() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.script(&[Behaviour::SlowAfterApply { ms: 800 }]).await.unwrap();
    let begun = Instant::now();
    let (seen, ()) = tokio::join!(provider.post("/v1/charges", "k"), async {
        provider.books.wait_for_applied(1, LONG).await.unwrap();
        assert_eq!(provider.post("/v1/charges", "k").await.status, 409);
    });
    assert_eq!(seen.status, 201);
    assert!(begun.elapsed() >= Duration::from_millis(800));
}

#[tokio::test]
async fn an_echo_shows_every_request_header_twice() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.script(&[Behaviour::Echo]).await.unwrap();
    let seen = provider.post("/v1/charges", "k").await;
    assert_eq!(
        (seen.status, seen.header("x-echo-x-odd"), seen.header("x-echo-idempotency-key")),
        (200, Some("one"), Some("k"))
    );
    assert!(seen.json()["headers"].as_array().unwrap().contains(&serde_json::json!(["x-odd", "one"])));
    let replayed = provider.post("/v1/charges", "k").await;
    assert_eq!((&replayed.body, replayed.header("idempotent-replayed")), (&seen.body, Some("true")));
}

#[tokio::test]
async fn an_endless_body_goes_on_until_the_client_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.script(&[Behaviour::EndlessBody]).await.unwrap();
    let mut stream = send(provider.books.address, &request("POST", "/v1/charges", "k", BODY)).await;
    let mut part = vec![0; 256 * 1024];
    tokio::time::timeout(LONG, stream.read_exact(&mut part)).await.unwrap().unwrap();
    let head = String::from_utf8_lossy(&part[..512]).into_owned();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("transfer-encoding: chunked"), "{head}");
    drop(stream);
    assert_eq!(provider.post("/v1/charges", "k").await.status, 201);
    assert_eq!(provider.books.applied().await.unwrap().len(), 1);
    provider.stop().await;
}

#[tokio::test]
async fn a_scripted_key_in_flight_applies_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.script(&[Behaviour::InFlight]).await.unwrap();
    let seen = provider.post("/v1/charges", "k").await;
    assert_eq!((seen.status, &seen.json()["error"]["code"]), (409, &serde_json::json!("idempotency_key_in_use")));
    assert_eq!(provider.books.applied().await.unwrap(), []);
    assert_eq!(provider.post("/v1/charges", "k").await.status, 201);
}

#[tokio::test]
async fn a_lying_length_announces_more_than_it_sends() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    provider.books.script(&[Behaviour::LyingLength]).await.unwrap();
    let seen = provider.post("/v1/charges", "k").await;
    assert_eq!(seen.status, 201);
    assert_eq!(seen.json()["id"], "ch_1");
    assert!(seen.header("content-length").unwrap().parse::<usize>().unwrap() > seen.body.len());
}

#[tokio::test]
async fn a_script_that_cannot_be_acted_on_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    let refused = provider.books.script(&[Behaviour::StatusAfterApply { status: 100, keep: true }]).await;
    assert!(matches!(refused, Err(client::Error::Refused { status: 400, .. })), "{refused:?}");
    for (method, path, body) in
        [("POST", "/_control/script", r#"[{"behaviour":"unheard_of"}]"#), ("GET", "/_control/wait?arrival=1", "")]
    {
        assert_eq!(exchange(provider.books.address, &request(method, path, "", body)).await.status, 400);
    }
    assert_eq!(provider.books.arrivals().await.unwrap(), []);
}

/// The provider learns of a hang-up a moment after it: until then the key is in flight.
async fn until_not_in_use(provider: &Running, key: &str) -> Seen {
    let begun = Instant::now();
    loop {
        let seen = provider.post("/v1/charges", key).await;
        if seen.status != 409 {
            return seen;
        }
        assert!(begun.elapsed() < LONG, "the hang-up was never noticed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
