//! What a key promises, with and without a restart, and what a provider without keys does not promise.
//! It must never compare less than the whole answer where byte for byte is promised.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::{BODY, Running, exchange, request};
use deedbox_books::{Arrival, Entry, Error, Options, Provider};
use tokio::net::TcpListener;

#[tokio::test]
async fn the_first_answer_of_a_key_is_replayed_byte_for_byte_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    let first = provider.post("/v1/charges", "k").await;
    let second = provider.post("/v1/charges", "k").await;
    provider.stop().await;
    let provider = Running::keyed(dir.path()).await;
    let third = provider.post("/v1/charges", "k").await;
    assert_eq!((first.status, second.status, third.status), (201, 201, 201));
    assert_eq!((first.header("idempotent-replayed"), second.header("idempotent-replayed")), (None, Some("true")));
    assert_eq!((&second.body, &third.body), (&first.body, &first.body));
    assert_eq!(third.header("idempotent-replayed"), Some("true"));
    assert_eq!(provider.books.applied().await.unwrap().len(), 1);
    assert_eq!(provider.books.arrivals().await.unwrap().len(), 3);
    assert_eq!(provider.post("/v1/charges", "other").await.json()["id"], "ch_2");
}

#[tokio::test]
async fn a_key_with_another_method_path_or_body_is_an_idempotency_error() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    assert_eq!(provider.post("/v1/charges", "k").await.status, 201);
    for (method, path, body) in [
        ("PUT", "/v1/charges", BODY),
        ("POST", "/v1/refunds", BODY),
        ("POST", "/v1/charges?x=1", BODY),
        ("POST", "/v1/charges", "{}"),
    ] {
        let seen = exchange(provider.books.address, &request(method, path, "k", body)).await;
        assert_eq!((seen.status, seen.json()), (400, serde_json::json!({"error": {"type": "idempotency_error"}})));
    }
    assert_eq!(provider.books.applied().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_decline_is_final_for_its_key_and_never_booked() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    let first = provider.post("/v1/declined", "k").await;
    provider.stop().await;
    let provider = Running::keyed(dir.path()).await;
    let second = provider.post("/v1/declined", "k").await;
    assert_eq!((first.status, &first.json()["error"]["code"]), (402, &serde_json::json!("card_declined")));
    assert_eq!((second.status, second.header("idempotent-replayed")), (402, Some("true")));
    assert_eq!(provider.books.applied().await.unwrap(), []);
}

#[tokio::test]
async fn without_a_key_or_without_keys_every_arrival_applies() {
    let dir = tempfile::tempdir().unwrap();
    let keyed = Running::keyed(dir.path()).await;
    assert_eq!(keyed.post("/v1/charges", "").await.json()["id"], "ch_1");
    assert_eq!(keyed.post("/v1/charges", "").await.json()["id"], "ch_2");
    keyed.stop().await;
    let keyless = Running::keyless(dir.path()).await;
    assert_eq!(keyless.post("/v1/charges", "k").await.json()["id"], "ch_3");
    let fourth = keyless.post("/v1/charges", "k").await;
    assert_eq!((&fourth.json()["id"], fourth.header("idempotent-replayed")), (&serde_json::json!("ch_4"), None));
    keyless.stop().await;
    assert!(Entry::read_all(dir.path()).unwrap().iter().all(|entry| entry.key.is_none()));
    assert_eq!(Arrival::read_all(dir.path()).unwrap()[3].key.as_deref(), Some("k"));
}

#[tokio::test]
async fn many_clients_with_one_key_apply_once() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    let posts = (0..32).map(|_| provider.post("/v1/charges", "k"));
    let seen = futures_util::future::join_all(posts).await;
    assert!(seen.iter().all(|seen| matches!(seen.status, 201 | 409)), "{seen:?}");
    assert_eq!(
        seen.iter().filter(|seen| seen.status == 201 && seen.header("idempotent-replayed").is_none()).count(),
        1
    );
    assert_eq!(provider.books.applied().await.unwrap().len(), 1);
}

#[tokio::test]
async fn two_providers_cannot_keep_the_same_books() {
    let dir = tempfile::tempdir().unwrap();
    let first = Running::keyed(dir.path()).await;
    first.post("/v1/charges", "").await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let refused = Provider::serve(listener, dir.path().to_owned(), Options::default(), std::future::pending()).await;
    assert!(matches!(refused, Err(Error::InUse { .. })), "{refused:?}");
}
