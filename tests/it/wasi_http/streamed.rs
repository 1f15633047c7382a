//! Bodies that are larger than the host buffers: hashed as they are sent, marked, and never sent twice by a replay.

use deedbox::config::Config;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{arrivals, deploy, effects, error_of, fetched, fetched_twice, with, world};
use crate::harness::cell::hex;
use crate::harness::{TENANT, World};

const BYTES: usize = 300_000;

fn small_buffer(config: &mut Config) {
    config.gateway.max_buffered_request_bytes = 64 << 10;
}

fn upload(world: &World, letters: &str, told: bool) -> Value {
    let generated = json!({ "bytes": BYTES, "letters": letters, "told": told });
    json!({ "method": "POST", "url": world.charges(), "generated": generated })
}

async fn streamed(world: &World, run: Uuid) -> Vec<(bool, Option<Vec<u8>>)> {
    sqlx::query_as("select streamed, body_digest from effects where run_id = $1")
        .bind(run)
        .fetch_all(&mut world.database.connect().await)
        .await
        .unwrap()
}

/// R-E04, R-L02.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_body_is_sent_once_hashed_marked_and_replayed() {
    for told in [false, true] {
        let world = world(small_buffer).await;
        let (run, output) = fetched_twice(&world, &[upload(&world, "a", told)]).await;
        assert_eq!(output[0]["status"], 201, "{output}");
        assert_eq!(output[0]["headers"]["deedbox-source"], "replayed");
        let [arrival] = arrivals(&world).await.try_into().unwrap();
        assert!(arrival.body == "a".repeat(BYTES), "{} bytes", arrival.body.len());
        let length = BYTES.to_string();
        assert_eq!(arrival.header("content-length"), told.then_some(length.as_str()));
        assert_eq!(arrival.key, effects(&world, run).await[0].wire_key);
        let [(marked, digest)] = streamed(&world, run).await.try_into().unwrap();
        assert!(marked);
        assert_eq!(hex(&digest.unwrap()), world.books.applied().await.unwrap()[0].body_blake3);
    }
}

/// R-L08.
#[tokio::test(flavor = "multi_thread")]
async fn another_large_body_in_the_second_attempt_is_a_mismatch_and_is_not_sent() {
    let world = world(small_buffer).await;
    let (_, output) = fetched_twice(&world, &[upload(&world, "ab", false)]).await;
    assert!(error_of(&output[0]).contains("effect mismatch"), "{output}");
    assert_eq!(arrivals(&world).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_within_the_buffer_is_part_of_the_digest_and_not_marked() {
    let world = world(|_| {}).await;
    let (run, output) = fetched(&world, &[upload(&world, "a", false)]).await;
    assert_eq!(output[0]["status"], 201, "{output}");
    assert_eq!(streamed(&world, run).await, [(false, None)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_above_the_limit_is_refused_where_its_size_is_told_and_else_cut() {
    let limited = |config: &mut Config| {
        small_buffer(config);
        config.gateway.max_streamed_request_bytes = 200_000;
    };
    let told = world(limited).await;
    let (run, output) = fetched(&told, &[upload(&told, "a", true)]).await;
    assert!(error_of(&output[0]).contains("max_streamed_request_bytes"), "{output}");
    assert!(effects(&told, run).await.is_empty());

    let cut = world(limited).await;
    let (run, output) = fetched(&cut, &[upload(&cut, "a", false)]).await;
    assert!(output[0]["error"].is_string(), "{output}");
    assert!(arrivals(&cut).await.is_empty(), "no whole request came");
    // It is known to have sent nothing, when the limit was met before the first part was flushed.
    let state = effects(&cut, run).await[0].state.clone();
    assert!(["escaped", "released"].contains(&state.as_str()), "{state}");
    assert_eq!(streamed(&cut, run).await, [(true, None)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_or_a_signature_in_the_body_needs_a_body_that_is_buffered() {
    let world = world(small_buffer).await;
    for (profile, path) in [("square", "/v2/payments"), ("shopify", "/admin/api/2026-01/graphql.json")] {
        deploy(&world, profile, json!({})).await;
        let call = with(upload(&world, "a", false), json!({ "url": format!("{}{path}", world.origin()) }));
        let (run, output) = fetched(&world, &[call]).await;
        let error = error_of(&output[0]);
        assert!(error.contains("max_buffered_request_bytes"), "{profile}: {error}");
        assert!(effects(&world, run).await.is_empty());
    }
    let aws = r#"{"access_key_id":"AK","secret_access_key":"sk","region":"eu-north-1"}"#;
    world.node.gateway().vault().put(TENANT, "aws", aws).await.unwrap();
    deploy(&world, "s3", json!({ "credentials": { "s3": { "secret": "aws", "account": "main" } } })).await;
    let put = json!({ "method": "PUT", "url": format!("{}/bucket/key", world.origin()) });
    let (_, output) = fetched(&world, &[with(upload(&world, "a", false), put)]).await;
    assert!(error_of(&output[0]).contains("signature"), "{output}");
    assert!(arrivals(&world).await.is_empty());
}
