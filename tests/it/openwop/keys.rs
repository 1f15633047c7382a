//! The scenarios of request keys: their grammar, one run for many requests, and what a loser is told.

use std::collections::BTreeSet;

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Value, json};

use super::{create_keyed, host, host_with, idle_with, schemas, settings};
use crate::api::client::{Answer, Client};

const REPLAY: &str = "openwop-idempotent-replay";

fn noop() -> Value {
    json!({ "workflowId": "conformance-noop" })
}

/// The same request at once; gives all answers.
async fn at_once(client: &Client, times: usize, key: &str, body: &Value) -> Vec<Answer> {
    futures_util::future::join_all((0..times).map(|_| create_keyed(client, key, body))).await
}

/// What holds of any number of requests of one key: one run, one original, and losers that are told so.
#[track_caller]
fn one_run(answers: &[Answer]) -> String {
    let (good, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    let ids: BTreeSet<String> = good.iter().map(|answer| schemas::created(&answer.json())).collect();
    assert_eq!(ids.len(), 1, "{answers:?}");
    assert_eq!(good.iter().filter(|answer| answer.header(REPLAY) != "true").count(), 1, "{answers:?}");
    for loser in refused {
        let body = loser.refused(409, "idempotency_in_flight");
        let details = body["details"].as_object().cloned().unwrap_or_default();
        assert!(!details.keys().any(|name| name.to_lowercase().starts_with("retryafter")), "{body}");
        assert!(loser.header("retry-after").parse::<u32>().is_ok(), "{loser:?}");
    }
    ids.into_iter().next().unwrap()
}

/// Scenario 1 of the specification's suite. R-K07.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_128_bits_is_taken_and_a_short_one_refused() {
    let api = idle_with(settings()).await;
    let random = BASE64URL_NOPAD.encode(&rand::random::<[u8; 16]>());
    assert_eq!(random.len(), 22);
    schemas::created(&create_keyed(&api.acme, &random, &noop()).await.expect(201));
    create_keyed(&api.acme, "short", &noop()).await.refused(400, "idempotency_key_invalid");
    assert_eq!(api.acme.get("/runs").await.expect(200)["runs"].as_array().unwrap().len(), 1);
}

/// Scenario 2. R-K20, R-K21, R-K22, R-K23.
#[tokio::test(flavor = "multi_thread")]
async fn of_five_requests_of_one_key_one_starts_a_run() {
    let api = host().await;
    let body = json!({ "workflowId": "conformance-delay", "inputs": { "delayMs": 1500 } });
    one_run(&at_once(&api.acme, 5, "openwop-inflight-0123456789", &body).await);
    assert_eq!(api.acme.get("/runs").await.expect(200)["runs"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_ten_requests_of_one_key_one_starts_a_run() {
    let api = host().await;
    one_run(&at_once(&api.acme, 10, "openwop-concurrency-0123456789", &noop()).await);
}

/// Scenario 2, under a hold: the refusal is the one that real work would bring.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_held_is_in_flight_for_all_others() {
    let mut settings = settings();
    settings.api.openwop_seams = true;
    settings.api.in_flight_wait_ms = 100;
    let api = host_with(settings).await;
    let key = "openwop-hold-0123456789abcd";
    let hold = json!({ "key": key, "holdMs": 3000 });
    let path = "/conformance/seams/sample/test/idempotency/hold";
    assert_eq!(api.acme.post(path, &hold).await.expect(201), hold);
    let answers = at_once(&api.acme, 2, key, &noop()).await;
    let refused = answers.iter().filter(|answer| answer.status == 409).count();
    assert_eq!(refused, 1, "one is held, and the other is told so: {answers:?}");
    one_run(&answers);
    // It was held once.
    assert_eq!(create_keyed(&api.acme, key, &noop()).await.header(REPLAY), "true");
    for wrong in [
        json!({ "key": "short", "holdMs": 1 }),
        json!({ "key": key, "holdMs": 0 }),
        json!({ "key": key, "holdMs": 10_001 }),
    ] {
        let status = api.acme.post(path, &wrong).await.status;
        assert_eq!(status, 400, "{wrong}");
    }
}

/// R-K18, R-K13: what is kept is given again to the byte, and never for another request.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_start_is_the_first_answer_and_a_changed_one_is_refused() {
    let api = host().await;
    let key = "openwop-replay-0123456789ab";
    let body = json!({ "workflowId": "conformance-noop", "inputs": { "a": 1 } });
    let first = create_keyed(&api.acme, key, &body).await;
    let again = create_keyed(&api.acme, key, &body).await;
    assert_eq!((first.status, first.header(REPLAY)), (201, ""));
    assert_eq!((again.status, again.header(REPLAY), &again.text), (201, "true", &first.text));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(again.header("openwop-version"), "2.0");
    let other = json!({ "workflowId": "conformance-noop", "inputs": { "a": 2 } });
    create_keyed(&api.acme, key, &other).await.refused(409, "idempotency_key_mismatch");
}

/// R-K09: the tenant is the token's.
#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_share_no_key() {
    let api = idle_with(settings()).await;
    let other = api.tenant("other").await;
    deedbox::api::openwop::fixtures::install(api.world.node.registry(), api.world.node.store(), "other").await.unwrap();
    let key = "openwop-tenants-0123456789";
    let ours = schemas::created(&create_keyed(&api.acme, key, &noop()).await.expect(201));
    let theirs = schemas::created(&create_keyed(&other, key, &noop()).await.expect(201));
    assert!(ours.starts_with("acme/") && theirs.starts_with("other/"), "{ours} {theirs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_suites_own_routes_are_not_there_unless_they_are_switched_on() {
    let api = host().await;
    for path in ["hold", "effect-retry"] {
        let path = format!("/conformance/seams/sample/test/idempotency/{path}");
        api.acme.post(&path, &json!({})).await.refused(404, "not_found");
    }
    api.acme.get("/host/effect-seams").await.refused(404, "not_found");
    assert!(api.acme.get("/.well-known/openwop").await.expect(200).get("conformance").is_none());
}
