//! Ways to find out what happened: lists, ids, names, references, times; and how long it takes until something can be found.
//! It must never look for what it has not seen applied.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use std::time::{Duration, Instant};

use common::{BODY, LONG, Running};
use deedbox_books::Convention;
use serde_json::{Value, json};

#[tokio::test]
async fn a_list_can_be_asked_for_a_key_and_an_object_for_its_id() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::increase()).await;
    let list = |key: &'static str| async move { format!("/v1/objects?idempotency_key={key}") };
    assert_eq!(provider.get(&list("k").await).await.json(), json!({"data": [], "next_cursor": null}));
    let made = provider.post("/v1/objects", "k").await.json();
    provider.post("/v1/objects", "l").await;
    assert_eq!(provider.get(&list("k").await).await.json(), json!({"data": [made], "next_cursor": null}));
    assert_eq!(provider.get(&list("m").await).await.json()["data"], json!([]));
    let one = provider.get("/v1/objects/object_1").await;
    assert_eq!((one.status, one.json()), (200, made));
    assert_eq!(provider.get("/v1/objects/object_3").await.status, 404);
    assert_eq!(provider.get("/v1/others/object_1").await.status, 404);
}

#[tokio::test]
async fn a_message_without_a_key_is_found_by_whom_and_when() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::twilio()).await;
    let path = "/2010-04-01/Accounts/AC1/Messages.json";
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let seen = provider.call("POST", path, &form, "To=%2B1&From=%2B2&Body=one+two").await;
    let message = seen.json();
    assert_eq!((seen.status, &message["sid"], &message["body"]), (201, &json!("SM1"), &json!("one two")));
    provider.call("POST", path, &form, "To=%2B1&From=%2B2&Body=one+two").await;
    provider.call("POST", path, &form, "To=%2B3&From=%2B2&Body=x").await;
    let applied = provider.books.applied().await.unwrap();
    let (day, second) = (applied[0].at.date_naive(), applied[0].at.format("%Y-%m-%dT%H:%M:%SZ"));
    for (query, found) in [
        ("?To=%2B1&From=%2B2", 2),
        ("?To=%2B3&PageSize=50", 1),
        ("?To=%2B9", 0),
        (&format!("?To=%2B1&DateSent%3E={day}"), 2),
        (&format!("?To=%2B1&DateSent%3E={second}"), 2),
        ("?DateSent%3E=2999-01-01", 0),
        ("?DateSent%3C=2020-01-01T00:00:00Z", 0),
        ("?DateSent%3C=2999-01-01", 3),
        (&format!("?DateSent={day}&To=%2B3"), 1),
        ("?DateSent=never", 0),
    ] {
        let messages = provider.get(&format!("{path}{query}")).await.json()["messages"].clone();
        assert_eq!(messages.as_array().unwrap().len(), found, "{query}");
        for found in messages.as_array().unwrap() {
            assert!(["sid", "to", "from", "body", "date_sent"].iter().all(|name| found[*name].is_string()), "{found}");
        }
    }
    assert_eq!(provider.get("/2010-04-01/Accounts/AC1/Messages/SM1.json").await.json(), message);
    assert_eq!(provider.get("/2010-04-01/Accounts/AC1/Messages/SM9.json").await.status, 404);
}

#[tokio::test]
async fn an_object_is_found_by_its_makers_reference() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::own_reference()).await;
    let made = provider.call("POST", "/v1/transfers", &[], r#"{"reference":"r 1"}"#).await.json();
    provider.call("POST", "/v1/transfers", &[], r#"{"reference":"r2"}"#).await;
    assert_eq!(provider.get("/v1/search?reference=r%201").await.json(), json!({"data": [made]}));
    assert_eq!(provider.get("/v1/search?reference=r3").await.json(), json!({"data": []}));
}

#[tokio::test]
async fn a_task_is_found_by_the_name_that_its_client_chose() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::cloud_tasks()).await;
    let name = "projects/p/locations/l/queues/q/tasks/t-1";
    assert_eq!(provider.get(&format!("/v2/{name}")).await.status, 404);
    let body = json!({"task": {"name": name}}).to_string();
    provider.call("POST", "/v2/projects/p/locations/l/queues/q/tasks", &[], &body).await;
    let seen = provider.get(&format!("/v2/{name}")).await;
    assert_eq!((seen.status, &seen.json()["name"]), (200, &json!(name)));
}

#[tokio::test]
async fn an_order_is_shown_as_it_has_become() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::paypal()).await;
    let body = r#"{"purchase_units":[{"amount":1}]}"#;
    let made = provider.call("POST", "/v2/checkout/orders", &[("PayPal-Request-Id", "k")], body).await.json();
    assert_eq!((&made["status"], &made["purchase_units"][0]["amount"]), (&json!("CREATED"), &json!(1)));
    assert_eq!(provider.get("/v2/checkout/orders/ORDER-1").await.json()["status"], "APPROVED");
}

#[tokio::test]
async fn what_was_applied_shows_only_after_it_has_settled() {
    let lag = Duration::from_millis(150);
    for look_up_lag_ms in [150, 3_600_000] {
        let dir = tempfile::tempdir().unwrap();
        let provider = Running::with(dir.path(), Convention { look_up_lag_ms, ..Convention::increase() }).await;
        let begun = Instant::now();
        provider.post("/v1/objects", "k").await;
        provider.call("POST", "/tables/t/rows", &[], "{}").await;
        provider.call("PUT", "/objects/o", &[], "x").await;
        let reads = ["/v1/objects?idempotency_key=k", "/v1/objects/object_1", "/tables/t/rows", "/objects/o"];
        let shows = async |path: &str| {
            let seen = provider.get(path).await;
            let list = || ["data", "rows"].iter().any(|name| seen.json()[*name] == Value::Array(Vec::new()));
            seen.status == 200 && (path == "/objects/o" || !list())
        };
        if look_up_lag_ms > 1000 {
            for path in reads {
                assert!(!shows(path).await, "{path}");
            }
            continue;
        }
        for path in reads {
            while !shows(path).await {
                assert!(begun.elapsed() < LONG, "{path} never showed it");
            }
            assert!(begun.elapsed() >= lag, "{path}");
        }
    }
}

#[tokio::test]
async fn a_repeat_is_answered_from_the_key_while_look_ups_still_lag() {
    let dir = tempfile::tempdir().unwrap();
    let provider =
        Running::with(dir.path(), Convention { look_up_lag_ms: 3_600_000, ..Convention::gocardless() }).await;
    provider.post("/payments", "k").await;
    let seen = provider.post("/payments", "k").await;
    assert_eq!(seen.json()["error"]["links"]["conflicting_resource_id"], "PM1");
    assert_eq!(provider.call("POST", "/payments", &[], BODY).await.status, 201);
}
