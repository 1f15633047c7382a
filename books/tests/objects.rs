//! Providers whose identity is the object's path: preconditions, generations, and two who create at once.
//! It must never take an answer for the object: it reads the object.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::{LONG, Running, Seen};
use deedbox_books::{Behaviour, Convention};

const ABSENT: (&str, &str) = ("If-None-Match", "*");

#[tokio::test]
async fn a_create_is_refused_when_the_object_exists_and_a_plain_put_replaces_it() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::s3()).await;
    let put = |headers: &'static [(&str, &str)], body: &'static str| provider.call("PUT", "/bucket/key", headers, body);
    assert_eq!(provider.get("/bucket/key").await.status, 404);
    assert_eq!(put(&[ABSENT], "one").await.status, 200);
    let refused = put(&[ABSENT], "two").await;
    assert_eq!(refused.status, 412);
    assert!(refused.body.contains("<Code>PreconditionFailed</Code>"), "{}", refused.body);
    let first = provider.get("/bucket/key").await;
    assert_eq!((first.body.as_str(), first.header("x-goog-generation")), ("one", Some("1")));
    let replaced = put(&[], "two").await;
    let second = provider.get("/bucket/key").await;
    assert_eq!((second.body.as_str(), second.header("etag")), ("two", replaced.header("etag")));
    assert_ne!(first.header("etag"), second.header("etag"));
    assert_eq!(put(&[("If-Match", "\"other\"")], "three").await.status, 412);
    assert_eq!(provider.applied().await, 2);
}

#[tokio::test]
async fn generations_are_counted_can_be_read_and_never_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::gcs()).await;
    let upload = async |name: &str, more: &str, body: &str| {
        let path = format!("/upload/storage/v1/b/bucket/o?uploadType=media&name={name}{more}");
        provider.call("POST", &path, &[], body).await
    };
    let object = "/storage/v1/b/bucket/o/a%2Fb";
    assert_eq!(upload("a%2Fb", "&ifGenerationMatch=0", "one").await.json()["generation"], "1");
    let refused = upload("a%2Fb", "&ifGenerationMatch=0", "one").await;
    assert_eq!((refused.status, &refused.json()["error"]["code"]), (412, &serde_json::json!(412)));
    assert_eq!(upload("other", "&ifGenerationMatch=0", "x").await.status, 200);
    assert_eq!(upload("a%2Fb", "&ifGenerationMatch=1", "two").await.json()["generation"], "3");
    assert_eq!(upload("a%2Fb", "&ifGenerationMatch=1", "three").await.status, 412);
    for (query, body) in [("?alt=media", "two"), ("?generation=1", "one"), ("?generation=3", "two")] {
        assert_eq!(provider.get(&format!("{object}{query}")).await.body, body, "{query}");
    }
    assert_eq!(provider.get(&format!("{object}?generation=2")).await.status, 404);
    assert_eq!(provider.call("DELETE", object, &[], "").await.status, 204);
    assert_eq!(provider.get(object).await.status, 404);
    assert_eq!(upload("a%2Fb", "&ifGenerationMatch=0", "one").await.json()["generation"], "5");
}

#[tokio::test]
async fn two_creates_at_once_conflict_and_the_second_is_refused_later() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::s3()).await;
    provider.books.script(&[Behaviour::HoldBeforeApply]).await.unwrap();
    let create = || provider.call("PUT", "/bucket/key", &[ABSENT], "one");
    let (first, during) = tokio::join!(create(), async {
        provider.books.wait_for_arrivals(1, LONG).await.unwrap();
        let during = create().await;
        assert_eq!(provider.call("PUT", "/bucket/other", &[ABSENT], "x").await.status, 200);
        provider.books.release().await.unwrap();
        during
    });
    assert_eq!((first.status, during.status), (200, 409));
    assert!(during.body.contains("ConditionalRequestConflict"), "{}", during.body);
    assert_eq!(create().await.status, 412);
    assert_eq!(provider.applied().await, 2);
}

#[tokio::test]
async fn a_plain_put_may_come_between_and_then_the_create_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::s3()).await;
    provider.books.script(&[Behaviour::HoldBeforeApply]).await.unwrap();
    let (create, ()) = tokio::join!(provider.call("PUT", "/bucket/key", &[ABSENT], "create"), async {
        provider.books.wait_for_arrivals(1, LONG).await.unwrap();
        assert_eq!(provider.call("PUT", "/bucket/key", &[], "plain").await.status, 200);
        provider.books.release().await.unwrap();
    });
    assert_eq!((create.status, provider.get("/bucket/key").await.body.as_str()), (412, "plain"));
    assert_eq!(provider.applied().await, 1);
}

#[tokio::test]
async fn a_create_that_was_cut_after_applying_is_refused_when_it_comes_again() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::s3()).await;
    provider.books.script(&[Behaviour::CutBeforeApply, Behaviour::CutAfterApply]).await.unwrap();
    let create = || provider.call("PUT", "/bucket/key", &[ABSENT], "one");
    assert_eq!((create().await, create().await), (Seen::NOTHING, Seen::NOTHING));
    assert_eq!(create().await.status, 412);
    provider.stop().await;
    let provider = Running::with(dir.path(), Convention::s3()).await;
    assert_eq!(provider.call("PUT", "/bucket/key", &[ABSENT], "one").await.status, 412);
    assert_eq!((provider.get("/bucket/key").await.body.as_str(), provider.applied().await), ("one", 1));
}

#[tokio::test]
async fn a_client_that_hangs_up_while_creating_leaves_the_object_free() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::s3()).await;
    provider.books.script(&[Behaviour::HoldBeforeApply]).await.unwrap();
    let stream = common::send(provider.books.address, &common::with_headers("PUT", "/b/k", &[ABSENT], "x")).await;
    provider.books.wait_for_arrivals(1, LONG).await.unwrap();
    drop(stream);
    let begun = std::time::Instant::now();
    while provider.call("PUT", "/b/k", &[ABSENT], "x").await.status != 200 {
        assert!(begun.elapsed() < LONG, "the hang-up was never noticed");
    }
    assert_eq!(provider.applied().await, 1);
}
