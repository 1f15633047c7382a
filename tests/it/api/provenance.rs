//! Where code comes from: who brought a module and who deployed a version, as it was when it was done.

use deedbox::token;
use serde_json::{Value, json};

use super::client::{Client, whole_list};
use super::{Api, GUESTS};
use crate::harness::component;

const CHARGE: &str = "charge_once.wasm";

/// A client with a token of this label, and the token's id.
async fn labelled(api: &Api, admin: &Client, label: &str) -> (Client, String) {
    let made = admin.post("/v1/tenants/acme/tokens", &json!({ "label": label })).await.expect(201);
    let client = api.acme.with_token(made["token"].as_str().unwrap());
    (client, made["token_id"].as_str().unwrap().to_owned())
}

fn by(label: &str, token_id: &str) -> Value {
    json!({ "kind": "token", "token_id": token_id, "label": label })
}

/// What is recorded is a copy: it outlives the token, and the first who brings the bytes stays the one.
#[tokio::test(flavor = "multi_thread")]
async fn who_brought_a_module_and_who_deployed_it_stays_recorded_when_the_tokens_are_gone() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let (first, first_id) = labelled(&api, &admin, "ci").await;
    let (second, second_id) = labelled(&api, &admin, "laptop").await;
    let module = first.upload(component(CHARGE)).await.expect(201);
    assert_eq!(module["uploaded_by"], by("ci", &first_id));
    assert_eq!(module["signatures"], json!([]));
    assert_eq!(second.upload(component(CHARGE)).await.expect(200), module, "the first stays");
    let body = json!({ "module": module["digest"] });
    let version = second.put("/v1/activities/charge-once", &body).await.expect(201);
    assert_eq!((&version["deployed_by"], &version["signed_by"]), (&by("laptop", &second_id), &Value::Null));
    let other = first.put("/v1/activities/charge-once", &body).await.expect(201);
    assert_eq!(other["deployed_by"], by("ci", &first_id));

    for id in [&first_id, &second_id] {
        admin.delete(&format!("/v1/tenants/acme/tokens/{id}")).await.expect(204);
    }
    let path = format!("/v1/modules/{}", module["digest"].as_str().unwrap());
    assert_eq!(api.acme.get(&path).await.expect(200), module);
    assert_eq!(whole_list(&api.acme.get("/v1/modules").await), [module]);
    let shown = api.acme.get("/v1/activities/charge-once").await.expect(200);
    assert_eq!(shown["versions"], json!([other, version]));
    assert_eq!(whole_list(&api.acme.get("/v1/activities").await)[0]["deployed_by"], by("ci", &first_id));
}

/// The same bytes are each tenant's own, and so is who brought them.
#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_has_its_own_record_of_the_same_bytes() {
    let api = Api::idle().await;
    let other = api.tenant("other").await;
    let ours = api.acme.upload(component(GUESTS)).await.expect(201);
    let theirs = other.upload(component(GUESTS)).await.expect(201);
    assert_eq!(ours["digest"], theirs["digest"]);
    assert_ne!(ours["uploaded_by"]["token_id"], theirs["uploaded_by"]["token_id"]);
}

/// What the host brings along is the operator's, and what was there before anything was recorded says so. Nothing of a token's
/// secret is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn the_operator_and_times_before_the_record_are_told_from_tokens() {
    let api = Api::idle().await;
    api.world.deploy("noop", "generic", json!({})).await;
    let operator = json!({ "kind": "operator", "token_id": null, "label": null });
    let versions = api.acme.get("/v1/activities/noop").await.expect(200);
    assert_eq!(versions["versions"][0]["deployed_by"], operator);
    assert_eq!(whole_list(&api.acme.get("/v1/modules").await)[0]["uploaded_by"], operator);
    let old = "update modules set by_kind = default; update activity_versions set by_kind = default";
    api.world.database.execute(old).await;
    let unknown = json!({ "kind": "unknown", "token_id": null, "label": null });
    assert_eq!(whole_list(&api.acme.get("/v1/modules").await)[0]["uploaded_by"], unknown);
    let versions = api.acme.get("/v1/activities/noop").await.expect(200);
    assert_eq!(versions["versions"][0]["deployed_by"], unknown);

    let text = super::mint(&api.world, "acme").await;
    let uploaded = api.acme.with_token(&text).upload(component(CHARGE)).await;
    let id = token::parse(&text).unwrap().token_id.simple().to_string();
    assert_eq!(uploaded.expect(201)["uploaded_by"]["token_id"], id);
    assert!(!uploaded.text.contains(token::parse(&text).unwrap().secret));
}
