//! What a tenant does with its hooks, and what it is told of those that cannot be.

use super::*;
use crate::api::client::assert_members;

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_is_put_shown_replaced_and_removed() {
    let api = api("s").await;
    // Shown as it was put, to the byte.
    let text = r#"{ "start" : {"activity":"noop"},"verify":{"scheme":"github","secret":"key"} }"#;
    let made = api.acme.raw(Method::PUT, "/v1/hooks/build", Some("application/json"), text.into()).await;
    let shown = made.expect(201);
    assert_members(&shown, &["name", "path", "config", "created_at", "updated_at"]);
    assert_eq!((&shown["name"], &shown["path"]), (&json!("build"), &json!("/v1/hooks/acme.build")));
    assert!(made.text.contains(&format!("\"config\":{text},")), "{made:?}");
    assert_eq!(api.acme.get("/v1/hooks/build").await.text, made.text);
    accepted(&github("s", "1", "{}").to(&api.nobody(), "acme.build").await);
    let replaced = api.acme.put("/v1/hooks/build", &starting(&json!({ "when": [] }))).await.expect(200);
    assert_eq!(replaced["created_at"], shown["created_at"]);
    assert_ne!(replaced["updated_at"], shown["updated_at"]);
    put(&api.acme, "a-first", &starting(&json!({}))).await;
    let listed = whole_list(&api.acme.get("/v1/hooks").await);
    let names: Vec<_> = listed.iter().map(|hook| hook["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a-first", "build"]);
    assert_eq!(deliveries(&api, "build").await.len(), 1, "a replaced hook keeps what is known of its deliveries");
    api.acme.delete("/v1/hooks/build").await.expect(204);
    api.acme.delete("/v1/hooks/build").await.refused(404, "not_found");
    api.acme.get("/v1/hooks/build").await.refused(404, "not_found");
    api.acme.get("/v1/hooks/build/deliveries").await.refused(404, "not_found");
    put(&api.acme, "build", &starting(&json!({}))).await;
    assert!(deliveries(&api, "build").await.is_empty());
    // The ids of its deliveries are still known.
    assert!(is_replay(&github("s", "1", "{}").to(&api.nobody(), "acme.build").await));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_could_not_work_is_refused_with_the_member_that_is_wrong() {
    let api = api("s").await;
    let refused = async |name: &str, members: Value, words: &str| {
        let said =
            api.acme.put(&format!("/v1/hooks/{name}"), &starting(&members)).await.message(400, "validation_error");
        assert!(said.contains(words), "{said}");
    };
    refused("hook", json!({ "verify": { "scheme": "github", "secret": "none" } }), "no secret `none`").await;
    refused("hook", json!({ "verify": { "scheme": "github", "secret": ["key", "none"] } }), "no secret `none`").await;
    refused("hook", json!({ "verify": { "scheme": "github", "secret": 7 } }), "verify.secret").await;
    refused("hook", json!({ "verify": { "scheme": "paypal", "secret": "key" } }), "verify.scheme").await;
    refused("hook", json!({ "when": [{ "pointer": "x", "in": ["a"] }] }), "when[0].pointer").await;
    refused("hook", json!({ "start": { "activity": "noop", "inputs": 1 } }), "inputs").await;
    refused(
        "hook",
        json!({ "signal": { "run": { "pointer": "" }, "name": { "value": "x" } } }),
        "either start or signal",
    )
    .await;
    for name in ["a.b", "a~b", "acme.hook", &"x".repeat(65)] {
        refused(name, json!({}), "hook name: ").await;
    }
    let large = starting(&json!({ "when": [{ "pointer": "/a", "in": ["x".repeat(16 << 10)] }] }));
    api.acme.put("/v1/hooks/hook", &large).await.refused(413, "payload_too_large");
    assert!(whole_list(&api.acme.get("/v1/hooks").await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_a_hundred_hooks_at_most() {
    let api = api("s").await;
    let hook = starting(&json!({}));
    for n in 0..99 {
        put(&api.acme, &format!("h{n}"), &hook).await;
    }
    // Two at once for the last place: one gets it.
    let (one, two) = tokio::join!(api.acme.put("/v1/hooks/a", &hook), api.acme.put("/v1/hooks/b", &hook));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [201, 429], "{one:?} {two:?}");
    put(&api.acme, "h5", &hook).await;
    let other = api.tenant("other").await;
    put_secret(&other, "key", "s").await;
    put(&other, "mine", &hook).await;
    api.acme.delete("/v1/hooks/h5").await.expect(204);
    api.acme.put("/v1/hooks/new", &hook).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_are_managed_with_a_token_alone() {
    let api = api("s").await;
    for path in ["/v1/hooks", "/v1/hooks/hook", "/v1/hooks/hook/deliveries"] {
        api.nobody().get(path).await.refused(401, "unauthenticated");
    }
    api.nobody().put("/v1/hooks/hook", &starting(&json!({}))).await.refused(401, "unauthenticated");
    api.nobody().delete("/v1/hooks/hook").await.refused(401, "unauthenticated");
}
