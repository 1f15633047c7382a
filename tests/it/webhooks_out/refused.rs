//! Where a message may go: what a start refuses, and what a try finds.

use reqwest::Method;
use serde_json::{Value, json};

use super::Stage;
use crate::api::client::{Answer, whole_list};

#[tokio::test(flavor = "multi_thread")]
async fn a_start_refuses_a_callback_that_could_not_be_delivered_and_says_what_to_do() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    stage.put_secret("plain", "hunter2").await;
    let url = stage.url();
    let host = stage.api.world.books.address;
    let cases = [
        (json!({ "url": "hooks" }), "callback.url: must be an absolute"),
        (json!({ "url": "ftp://127.0.0.1/" }), "callback.url: the scheme"),
        (json!({ "url": format!("http://user@{host}/") }), "callback.url: user information"),
        (json!({ "url": format!("{url}#part") }), "callback.url: must have no fragment"),
        (json!({ "url": format!("{url}{}", "x".repeat(2048)) }), "callback.url: must be at most 2048"),
        (json!({ "url": "http://169.254.169.254/latest" }), "policy.egress.allow"),
        (json!({ "url": format!("https://{host}/") }), "policy.egress.allow"),
        (json!({ "url": "http://127.0.0.1/" }), "policy.egress.allow"),
        (json!({ "url": url, "secret": "absent" }), "deedbox secret set absent"),
        (json!({ "url": url, "secret": "plain" }), "whsec_"),
        (json!({ "url": url, "secret": "a/b" }), "callback.secret"),
        (json!({ "url": url, "method": "GET" }), "method"),
        (json!({ "secret": "webhook" }), "url"),
    ];
    for (callback, expected) in cases {
        let message = stage.asked("noop", &json!({ "callback": callback })).await.message(400, "validation_error");
        assert!(message.contains(expected) && !message.contains("hunter2"), "{expected}: {message}");
    }
    assert!(whole_list(&stage.api.acme.get("/v1/runs").await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_allowed_name_at_a_private_address_is_not_connected_to_until_the_address_is_named() {
    let stage = Stage::new().await;
    let origin = format!("http://localhost:{}", stage.api.world.books.address.port());
    let body = json!({ "callback": { "url": format!("{origin}/hooks?of=acme") } });
    let ended = async |egress: Value| {
        stage.api.deploy("noop", json!({ "egress": egress })).await;
        let run = stage.asked("noop", &body).await.expect(201)["run_id"].as_str().unwrap().to_owned();
        stage.api.work().await;
        run
    };
    let run = ended(json!({ "allow": [origin] })).await;
    stage.try_once().await;
    let due = stage.callback(&run).await;
    assert_eq!((&due["state"], &due["tries"], &due["last_status"]), (&json!("due"), &json!(1), &Value::Null), "{due}");
    assert!(due["last_error"].as_str().unwrap().contains("policy.egress.private_addresses"), "{due}");
    assert!(stage.api.world.books.arrivals().await.unwrap().is_empty());

    let named = ended(json!({ "allow": [origin], "private_addresses": ["127.0.0.1", "::1"] })).await;
    assert_eq!(stage.settled(&named).await["state"], "delivered");
    assert_eq!(stage.told().await.len(), 1, "the first run keeps the policy of its own version");
}

/// R-C09.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_is_answered_even_where_its_callback_would_be_refused_now() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let body = json!({ "input": 1, "callback": { "url": stage.url() } });
    let start = async |key: &str| -> Answer {
        let request = stage.api.acme.request(Method::POST, "/v1/activities/noop/runs");
        stage.api.acme.send(request.header("idempotency-key", key).json(&body)).await
    };
    let key = "start-0123456789abcdefghij";
    let first = start(key).await.expect(201);
    // Neither the address nor the secret would do any more.
    stage.api.deploy("noop", json!({})).await;
    stage.api.acme.delete("/v1/secrets/webhook").await.expect(204);
    let again = start(key).await;
    assert!(matches!(again.status, 200 | 201), "{again:?}");
    assert_eq!(again.header("openwop-idempotent-replay"), "true");
    assert_eq!(again.json()["run_id"], first["run_id"]);
    let fresh = start("start-of-another-0123456789").await;
    assert!(fresh.message(400, "validation_error").contains("policy.egress.allow"));
    assert_eq!(whole_list(&stage.api.acme.get("/v1/runs").await).len(), 1);
}
