//! `/v1/modules`: what is uploaded, what is refused, what stays because it is used.

use serde_json::{Value, json};

use super::client::{assert_members, whole_list};
use super::{Api, GUESTS, no_hash};
use crate::harness::{World, component, config};

const CHARGE: &str = "charge_once.wasm";

#[tokio::test(flavor = "multi_thread")]
async fn a_component_is_described_and_the_same_bytes_are_the_same_module() {
    let api = Api::idle().await;
    let module = api.acme.upload(component(CHARGE)).await.expect(201);
    assert_members(
        &module,
        &["digest", "size_bytes", "imports", "activities", "warnings", "created_at", "uploaded_by", "signatures"],
    );
    assert_eq!(module["size_bytes"], component(CHARGE).len());
    let digest = module["digest"].as_str().unwrap();
    assert!(digest.len() == 64 && digest.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c)));
    let imports: Vec<&str> = module["imports"].as_array().unwrap().iter().map(|i| i.as_str().unwrap()).collect();
    assert!(imports.iter().any(|import| import.starts_with("deedbox:activity/http@")), "{imports:?}");
    let activity = &module["activities"][0];
    assert_members(activity, &["name", "summary", "input_schema", "output_schema"]);
    assert_eq!(activity["name"], "charge-once");
    assert_eq!(activity["summary"], "Charges a customer for an order, exactly once.");
    assert_eq!(activity["input_schema"]["properties"]["order"]["type"], "string", "{activity}");

    let again = api.acme.upload(component(CHARGE)).await;
    assert_eq!(again.expect(200), module);
    assert_eq!(whole_list(&api.acme.get("/v1/modules").await), std::slice::from_ref(&module));
    assert_eq!(api.acme.get(&format!("/v1/modules/{digest}")).await.expect(200), module);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_can_be_deleted_as_long_as_no_version_uses_it() {
    let api = Api::idle().await;
    let path = format!("/v1/modules/{}", api.upload(CHARGE).await);
    assert_eq!(api.acme.delete(&path).await.expect(204), Value::Null);
    api.acme.get(&path).await.refused(404, "not_found");
    api.acme.delete(&path).await.refused(404, "not_found");

    let digest = api.upload(CHARGE).await;
    api.acme.put("/v1/activities/charge-once", &json!({ "module": digest })).await.expect(201);
    api.acme.delete(&path).await.refused(409, "version_conflict");
    api.acme.delete("/v1/activities/charge-once").await.expect(204);
    let message = api.acme.delete(&path).await.message(409, "version_conflict");
    assert!(message.contains("version"), "{message}");
    api.acme.get(&path).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_component_of_activities_is_refused_and_not_kept() {
    let api = Api::idle().await;
    let foreign = r#"(component (import "wasi:sockets/tcp@0.2.0" (instance)))"#;
    let bodies = [
        (Vec::new(), ""),
        (b"hello".to_vec(), ""),
        (b"\0asm\x01\0\0\0".to_vec(), "component"),
        (b"\0asm\x0d\0\x01\0garbage".to_vec(), ""),
        (component(CHARGE)[..5000].to_vec(), ""),
        (wat::parse_str("(component)").unwrap(), "deedbox:activity"),
        (wat::parse_str(foreign).unwrap(), "deedbox:activity"),
    ];
    for (body, expected) in bodies {
        let message = api.acme.upload(body).await.message(400, "validation_error");
        assert!(message.contains(expected), "{expected}: {message}");
    }
    assert!(whole_list(&api.acme.get("/v1/modules").await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_above_the_limit_is_refused() {
    let mut settings = config();
    settings.api.max_component_bytes = component(CHARGE).len();
    let api = Api::with(World::keyed().await, settings).await;
    api.acme.upload(component(CHARGE)).await.expect(201);
    let mut larger = component(CHARGE);
    larger.push(0);
    let message = api.acme.upload(larger).await.message(413, "payload_too_large");
    assert!(message.contains(&component(CHARGE).len().to_string()), "{message}");
    assert!(component(GUESTS).len() > component(CHARGE).len());
    api.acme.upload(component(GUESTS)).await.refused(413, "payload_too_large");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_known_by_its_digest_alone() {
    let api = Api::idle().await;
    let digest = api.upload(CHARGE).await;
    for wrong in [no_hash(), digest.to_uppercase(), digest[..63].to_owned(), format!("{digest}0"), "%00".to_owned()] {
        api.acme.get(&format!("/v1/modules/{wrong}")).await.refused(404, "not_found");
        api.acme.delete(&format!("/v1/modules/{wrong}")).await.refused(404, "not_found");
    }
}
