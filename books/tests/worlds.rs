//! Tables, counters, topics and objects: what changes them, what changes nothing, and that a kill loses none of it.
//! It must never trust an answer where the world can be looked at.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::{LONG, Running, Seen, exchange, program, send, with_headers};
use deedbox_books::{Behaviour, Convention, Entry};
use serde_json::{Value, json};

async fn post(provider: &Running, path: &str, body: Value) -> Seen {
    provider.call("POST", path, &[], &body.to_string()).await
}

#[tokio::test]
async fn an_insert_applies_every_time_unless_duplicates_are_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    let row = json!({"key": "a", "n": 1});
    let first = post(&provider, "/tables/t/rows", row.clone()).await;
    assert_eq!((first.status, first.json()), (201, json!({"id": 1, "values": row})));
    assert_eq!(post(&provider, "/tables/t/rows", row.clone()).await.json()["id"], 2);
    let ignored = post(&provider, "/tables/t/rows?on_conflict=key", row.clone()).await;
    assert_eq!((ignored.status, &ignored.json()["id"]), (200, &json!(1)));
    let fresh = json!({"key": "b"});
    assert_eq!(post(&provider, "/tables/t/rows?on_conflict=key", fresh.clone()).await.status, 201);
    assert_eq!(post(&provider, "/tables/t/rows?on_conflict=key", json!({"n": 1})).await.status, 201);
    assert_eq!(post(&provider, "/tables/t/rows", json!([])).await.status, 400);
    let rows = provider.books.world().await.unwrap()["tables"]["t"].clone();
    let ids: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect();
    assert_eq!((ids, provider.applied().await), (vec![1, 2, 3, 4], 4));
    assert_eq!(provider.get("/tables/t/rows?key=b").await.json(), json!({"rows": [{"id": 3, "values": fresh}]}));
    assert_eq!(provider.get("/tables/t/rows/3").await.json()["values"], fresh);
}

#[tokio::test]
async fn a_row_is_deleted_once_and_then_not_found() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    post(&provider, "/tables/t/rows", json!({})).await;
    let delete = || provider.call("DELETE", "/tables/t/rows/1", &[], "");
    assert_eq!((delete().await.status, delete().await.status), (204, 404));
    assert_eq!(provider.get("/tables/t/rows/1").await.status, 404);
    assert_eq!(provider.books.world().await.unwrap()["tables"]["t"], json!([]));
    assert_eq!(provider.applied().await, 2);
}

#[tokio::test]
async fn an_increment_adds_every_time_and_a_contribution_once() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    assert_eq!(post(&provider, "/counters/c/increment", json!({"by": 5})).await.json()["value"], 5);
    assert_eq!(post(&provider, "/counters/c/increment", json!({"by": 5})).await.json()["value"], 10);
    for body in [r#"{"by": -3}"#, r#"{"by": -3}"#, r#"{"by": 100}"#] {
        let seen = provider.call("PUT", "/counters/c/contributions/one", &[], body).await;
        assert_eq!((seen.status, &seen.json()["value"]), (200, &json!(7)));
    }
    assert_eq!(post(&provider, "/counters/c/increment", json!({"by": "x"})).await.status, 400);
    assert_eq!(provider.get("/counters/c").await.json(), json!({"value": 7}));
    let world = provider.books.world().await.unwrap();
    assert_eq!(world["counters"]["c"], json!({"value": 7, "increments": 2, "contributions": {"one": -3}}));
    assert_eq!(provider.applied().await, 3);
}

#[tokio::test]
async fn consumers_see_a_message_with_an_id_once_and_one_without_every_time() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    for (id, offset, status, duplicate) in [("m", 1, 201, false), ("m", 1, 200, true), ("n", 2, 201, false)] {
        let seen = provider.call("POST", "/topics/t/messages", &[("Message-Id", id)], "{}").await;
        assert_eq!((seen.status, seen.json()), (status, json!({"offset": offset, "duplicate": duplicate})));
    }
    post(&provider, "/topics/t/messages", json!({})).await;
    post(&provider, "/topics/t/messages", json!({})).await;
    let seen = provider.get("/topics/t/messages").await.json()["messages"].clone();
    let ids: Vec<_> = seen.as_array().unwrap().iter().map(|message| message["message_id"].clone()).collect();
    assert_eq!(ids, [json!("m"), json!("n"), Value::Null, Value::Null]);
    assert_eq!(provider.books.world().await.unwrap()["topics"]["t"], seen);
}

#[tokio::test]
async fn an_object_is_replaced_by_a_put_and_grows_by_an_append() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    for (method, path, body, now) in [
        ("PUT", "/objects/a/b", "one", "one"),
        ("PUT", "/objects/a/b", "two", "two"),
        ("POST", "/objects/a/b/append", "+", "two+"),
        ("POST", "/objects/a/b/append", "+", "two++"),
    ] {
        assert_eq!(provider.call(method, path, &[("Content-Type", "text/plain")], body).await.status, 200);
        let seen = provider.get("/objects/a%2Fb").await;
        assert_eq!((seen.body.as_str(), seen.header("content-type")), (now, Some("text/plain")));
    }
    assert_eq!(
        provider.books.world().await.unwrap()["objects"],
        json!({"a/b": {"body": "two++", "generation": 4, "writes": 4}})
    );
    assert_eq!(provider.call("DELETE", "/objects/a/b", &[], "").await.status, 204);
    assert_eq!(provider.call("DELETE", "/objects/a/b", &[], "").await.status, 404);
    assert_eq!(provider.books.world().await.unwrap()["objects"], json!({}));
    assert_eq!(provider.call("PATCH", "/objects/a/b", &[], "").await.status, 405);
}

#[tokio::test]
async fn keys_and_behaviours_hold_for_the_world_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::keyed(dir.path()).await;
    let script = [Behaviour::CutBeforeApply, Behaviour::CutAfterApply, Behaviour::InFlight];
    provider.books.script(&script).await.unwrap();
    let increment = || provider.call("POST", "/counters/c/increment", &[("Idempotency-Key", "k")], r#"{"by":2}"#);
    assert_eq!((increment().await, increment().await), (Seen::NOTHING, Seen::NOTHING));
    assert_eq!(increment().await.status, 409);
    let seen = increment().await;
    assert_eq!((seen.json(), seen.header("idempotent-replayed")), (json!({"value": 2}), Some("true")));
    assert_eq!(provider.books.world().await.unwrap()["counters"]["c"]["increments"], 1);
}

#[tokio::test]
async fn the_world_and_the_answers_about_it_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let convention = Convention::default();
    let (mut running, books) = program(dir.path(), &convention).await;
    let call =
        |address,
         method: &'static str,
         path: &'static str,
         headers: Vec<(&'static str, &'static str)>,
         body: &'static str| async move { exchange(address, &with_headers(method, path, &headers, body)).await };
    let at = books.address;
    call(at, "POST", "/tables/t/rows", vec![], r#"{"key":"a"}"#).await;
    call(at, "POST", "/tables/t/rows", vec![], r#"{"key":"b"}"#).await;
    call(at, "DELETE", "/tables/t/rows/1", vec![], "").await;
    call(at, "PUT", "/counters/c/contributions/x", vec![], r#"{"by":3}"#).await;
    call(at, "POST", "/topics/t/messages", vec![("message-id", "m")], "hello").await;
    call(at, "PUT", "/objects/o", vec![], "text").await;
    books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
    let increment = with_headers("POST", "/counters/c/increment", &[("Idempotency-Key", "k")], r#"{"by":4}"#);
    let _held = send(at, &increment).await;
    books.wait_for_applied(7, LONG).await.unwrap();
    let before = books.world().await.unwrap();
    assert_eq!(before["counters"]["c"]["value"], 7);
    running.kill().await.unwrap();

    let (mut running, books) = program(dir.path(), &convention).await;
    assert_eq!(books.world().await.unwrap(), before);
    let at = books.address;
    let replayed = exchange(at, &increment).await;
    assert_eq!((replayed.json(), replayed.header("idempotent-replayed")), (json!({"value": 7}), Some("true")));
    let duplicate = call(at, "POST", "/topics/t/messages", vec![("message-id", "m")], "hello").await;
    assert_eq!(duplicate.json()["duplicate"], true);
    assert_eq!(call(at, "POST", "/tables/t/rows?on_conflict=key", vec![], r#"{"key":"b"}"#).await.status, 200);
    call(at, "PUT", "/counters/c/contributions/x", vec![], r#"{"by":3}"#).await;
    assert_eq!(books.world().await.unwrap(), before);
    running.kill().await.unwrap();
    assert_eq!(Entry::read_all(dir.path()).unwrap().len(), 7);
}
