//! What was answered is told once more and not done once more: modules, activities, secrets, profiles, tenants, tokens.

use deedbox::token;

use super::super::GUESTS;
use super::*;
use crate::harness::component;

fn upload(api: &Api, file: &str) -> Ask {
    Ask::new(&api.acme, Method::POST, "/v1/modules").raw("application/wasm", component(file))
}

/// R-K15: the second upload is told that it was the first.
#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_uploaded_and_deleted_once() {
    let api = Api::idle().await;
    let key = fresh_key();
    let uploading = upload(&api, "charge_once.wasm").key(&key);
    let first = twice(&uploading, 201).await;
    done(&uploading.clone().without_key().send().await, 200);
    let path = format!("/v1/modules/{}", first.json()["digest"].as_str().unwrap());
    let deleting = Ask::delete(&api.acme, &path).key(&key);
    let deleted = twice(&deleting, 204).await;
    assert_eq!(deleted.text, "");
    replays(&uploading.send().await, &first);
    api.acme.get(&path).await.refused(404, "not_found");
    done(&uploading.key(&fresh_key()).send().await, 201);
    replays(&deleting.send().await, &deleted);
    api.acme.get(&path).await.expect(200);
}

/// R-K15: one deployment, one version.
#[tokio::test(flavor = "multi_thread")]
async fn an_activity_is_deployed_paused_and_retired_once() {
    let api = Api::idle().await;
    let key = fresh_key();
    let module = api.upload(GUESTS).await;
    let body = json!({ "module": module, "policy": { "retry": { "max_attempts": 7 } } });
    let deploying = Ask::put(&api.acme, "/v1/activities/noop", &body).key(&key);
    assert_eq!(twice(&deploying, 201).await.json()["version"], 1);
    let versions = async || api.acme.get("/v1/activities/noop").await.expect(200);
    assert_eq!(versions().await["versions"].as_array().unwrap().len(), 1);
    let order = |what: &str| Ask::new(&api.acme, Method::POST, &format!("/v1/activities/noop/{what}")).key(&key);
    let paused = twice(&order("pause"), 204).await;
    twice(&order("resume"), 204).await;
    replays(&order("pause").send().await, &paused);
    assert_eq!(versions().await["paused"], false);
    let retiring = Ask::delete(&api.acme, "/v1/activities/noop").key(&key);
    let retired = twice(&retiring, 204).await;
    Ask::start(&api.acme, &json!({})).send().await.refused(404, "not_found");
    assert_eq!(done(&deploying.key(&fresh_key()).send().await, 201)["version"], 2);
    replays(&retiring.send().await, &retired);
    done(&Ask::start(&api.acme, &json!({})).send().await, 201);
}

const PROFILE: &str = r#"
name = "acme-pay"
version = "1"
source = "our own docs"
confidence = "H"

[[operation]]
[operation.key]
carrier = { header = "X-Once" }
rendering = "hex"
retention = "1h"
"#;

/// R-K15.
#[tokio::test(flavor = "multi_thread")]
async fn a_secret_and_a_profile_are_put_and_deleted_once() {
    let api = Api::idle().await;
    let key = fresh_key();
    for (path, body, status) in [
        ("/v1/secrets/card", json!({ "value": "sk_test_4242" }), 204),
        ("/v1/providers/acme-pay", json!({ "profile": PROFILE }), 201),
    ] {
        let (putting, deleting) = (Ask::put(&api.acme, path, &body).key(&key), Ask::delete(&api.acme, path).key(&key));
        let put = twice(&putting, status).await;
        let deleted = twice(&deleting, 204).await;
        replays(&putting.send().await, &put);
        deleting.clone().without_key().send().await.refused(404, "not_found");
        done(&putting.key(&fresh_key()).send().await, status);
        replays(&deleting.send().await, &deleted);
        done(&deleting.without_key().send().await, 204);
    }
    // The value is in no answer, and yet another one is not the same request.
    let putting = Ask::put(&api.acme, "/v1/secrets/card", &json!({ "value": "another" })).key(&key);
    putting.send().await.refused(409, "idempotency_key_mismatch");
    assert!(whole_list(&api.acme.get("/v1/secrets").await).is_empty());
}

/// R-K15: an administrator's keys are his own as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_made_bounded_and_paused_once() {
    let api = Api::idle().await;
    let (admin, key) = (api.admin().await, fresh_key());
    let making = Ask::post(&admin, "/v1/tenants", &json!({ "tenant": "shop" })).key(&key);
    twice(&making, 201).await;
    making.clone().without_key().send().await.refused(409, "version_conflict");
    let limits = "/v1/tenants/shop/limits";
    let bounding = Ask::put(&admin, limits, &json!({ "max_running": 5 })).key(&key);
    let bounded = twice(&bounding, 200).await;
    done(&Ask::put(&admin, limits, &json!({ "max_running": 7 })).key(&fresh_key()).send().await, 200);
    replays(&bounding.send().await, &bounded);
    assert_eq!(admin.get(limits).await.expect(200)["max_running"], 7);
    let order = |what: &str| Ask::new(&admin, Method::POST, &format!("/v1/tenants/shop/{what}")).key(&key);
    let paused = twice(&order("pause"), 204).await;
    twice(&order("resume"), 204).await;
    replays(&order("pause").send().await, &paused);
    assert_eq!(admin.get(limits).await.expect(200)["paused"], false);
}

/// R-K15: a token whose text was lost on the way is told again, and is nowhere to be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_minted_and_revoked_once() {
    let api = Api::idle().await;
    let (admin, key) = (api.admin().await, fresh_key());
    let tokens = "/v1/tenants/acme/tokens";
    let before = whole_list(&admin.get(tokens).await).len();
    let minting = Ask::post(&admin, tokens, &json!({ "label": "the till" })).key(&key);
    let minted = twice(&minting, 201).await.json();
    assert_eq!(whole_list(&admin.get(tokens).await).len(), before + 1);
    let text = minted["token"].as_str().unwrap();
    api.acme.with_token(text).get("/v1/runs").await.expect(200);
    let secret = token::parse(text).unwrap().secret;
    let kept: Vec<String> =
        sqlx::query_scalar("select encode(body, 'escape') from request_keys where body is not null")
            .fetch_all(&mut api.world.database.connect().await)
            .await
            .unwrap();
    assert!(
        !kept.is_empty() && kept.iter().all(|body| !body.contains(secret)),
        "a token's secret is kept in the clear"
    );
    let revoking = Ask::delete(&admin, &format!("{tokens}/{}", minted["token_id"].as_str().unwrap())).key(&key);
    twice(&revoking, 204).await;
    api.acme.with_token(text).get("/v1/runs").await.refused(401, "unauthenticated");
    Ask::post(&admin, tokens, &json!({ "label": "another" }))
        .key(&key)
        .send()
        .await
        .refused(409, "idempotency_key_mismatch");
}
