//! Signatures of modules: whose count, what is refused, and what a key's end ends. They are made by the words of the
//! documents, not by the program's own code.

use data_encoding::{BASE64, HEXLOWER};
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};

use super::client::{Answer, Client, assert_members, whole_list};
use super::{Api, GUESTS};
use crate::harness::component;

const CHARGE: &str = "charge_once.wasm";
const SIGNERS: &str = "/v1/tenants/acme/signers";

fn pair(seed: u8) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap()
}

fn public(pair: &Ed25519KeyPair) -> String {
    HEXLOWER.encode(pair.public_key().as_ref())
}

/// A signature of a module, as the documents say.
fn sign(pair: &Ed25519KeyPair, digest: &str) -> String {
    raw(pair, &format!("deedbox module v1\n{digest}\n"))
}

fn raw(pair: &Ed25519KeyPair, message: &str) -> String {
    HEXLOWER.encode(pair.sign(message.as_bytes()).as_ref())
}

async fn add(admin: &Client, name: &str, pair: &Ed25519KeyPair) -> Value {
    let added = admin.put(&format!("{SIGNERS}/{name}"), &json!({ "public_key": public(pair) })).await;
    added.expect(201)
}

async fn require(admin: &Client, required: bool) {
    admin.put("/v1/tenants/acme/limits", &json!({ "require_signature": required })).await.expect(200);
}

async fn attach(client: &Client, digest: &str, signature: &str) -> Answer {
    client.put(&format!("/v1/modules/{digest}/signature"), &json!({ "signature": signature })).await
}

async fn deploy(client: &Client, digest: &str) -> Answer {
    client.put("/v1/activities/noop", &json!({ "module": digest, "export": "noop" })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_adds_lists_and_deletes_signers_and_nobody_else() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let (one, two) = (pair(1), pair(2));
    let added = add(&admin, "release", &one).await;
    assert_members(&added, &["signer", "public_key", "created_at", "added_by"]);
    assert_eq!((&added["public_key"], &added["added_by"]["kind"]), (&json!(public(&one)), &json!("token")));
    let path = format!("{SIGNERS}/release");
    let spki = [&HEXLOWER.decode(b"302a300506032b6570032100").unwrap(), one.public_key().as_ref()].concat();
    let pem = format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", BASE64.encode(&spki));
    for same in [public(&one), BASE64.encode(one.public_key().as_ref()), pem] {
        assert_eq!(admin.put(&path, &json!({ "public_key": same })).await.expect(200), added, "{same}");
    }
    admin.put(&path, &json!({ "public_key": public(&two) })).await.refused(409, "version_conflict");
    let twice = admin.put(&format!("{SIGNERS}/other"), &json!({ "public_key": public(&one) })).await;
    assert!(twice.message(409, "version_conflict").contains("`release`"));
    for wrong in ["", "x", &"00".repeat(32), &public(&one)[2..], &sign(&one, "x")] {
        let refused = admin.put(&format!("{SIGNERS}/wrong"), &json!({ "public_key": wrong })).await;
        assert!(refused.message(400, "validation_error").starts_with("public_key: "), "{wrong}");
    }
    admin.put("/v1/tenants/nobody/signers/a", &json!({ "public_key": public(&two) })).await.refused(404, "not_found");
    add(&admin, "a", &two).await;
    let names: Vec<Value> = whole_list(&admin.get(SIGNERS).await).iter().map(|one| one["signer"].clone()).collect();
    assert_eq!(names, ["a", "release"]);
    // A token that deploys cannot make itself trusted.
    let third = json!({ "public_key": public(&pair(3)) });
    api.acme.put(&format!("{SIGNERS}/mine"), &third).await.refused(403, "forbidden");
    api.acme.delete(&path).await.refused(403, "forbidden");
    admin.delete(&path).await.expect(204);
    admin.delete(&path).await.refused(404, "not_found");
    assert_eq!(whole_list(&admin.get(SIGNERS).await).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_no_more_signers_than_are_tried_at_a_signature() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    for number in 0..32 {
        add(&admin, &format!("key-{number}"), &pair(number)).await;
    }
    let one_more = json!({ "public_key": public(&pair(99)) });
    let refused = admin.put(&format!("{SIGNERS}/one-more"), &one_more).await;
    assert!(refused.message(429, "rate_limited").contains("32"));
    admin.delete(&format!("{SIGNERS}/key-7")).await.expect(204);
    admin.put(&format!("{SIGNERS}/one-more"), &one_more).await.expect(201);
}

/// An upload and an attachment take what is good under one of the tenant's own keys, over what the module is, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_good_signature_of_the_tenants_own_signer_is_kept() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let (good, stranger) = (pair(1), pair(2));
    let digest = api.upload(CHARGE).await;
    let other = api.upload(GUESTS).await;
    let nobody = attach(&api.acme, &digest, &sign(&good, &digest)).await;
    assert!(nobody.message(400, "deedbox.signature_invalid").contains("no signers"));
    add(&admin, "release", &good).await;
    api.tenant("other").await;
    let theirs = json!({ "public_key": public(&stranger) });
    admin.put("/v1/tenants/other/signers/release", &theirs).await.expect(201);
    let message = format!("deedbox module v1\n{digest}\n");
    for wrong in [
        sign(&stranger, &digest),
        sign(&good, &other),
        raw(&good, &digest),
        raw(&good, message.trim_end()),
        raw(&good, &message.to_uppercase()),
        "0".repeat(128),
    ] {
        let refused = attach(&api.acme, &digest, &wrong).await;
        assert!(refused.message(400, "deedbox.signature_invalid").contains("(release)"), "{wrong}");
    }
    for malformed in ["", "x", &sign(&good, &digest)[2..]] {
        let refused = attach(&api.acme, &digest, malformed).await;
        assert!(refused.message(400, "validation_error").starts_with("signature: "), "{malformed}");
    }
    attach(&api.acme, &super::no_hash(), &sign(&good, &digest)).await.refused(404, "not_found");
    let path = format!("/v1/modules/{digest}");
    assert_eq!(api.acme.get(&path).await.expect(200)["signatures"], json!([]));

    let signed = attach(&api.acme, &digest, &sign(&good, &digest)).await.expect(200);
    let signature = &signed["signatures"][0];
    assert_members(signature, &["signer", "public_key", "counts", "attached_at", "attached_by"]);
    assert_eq!((&signature["signer"], &signature["public_key"]), (&json!("release"), &json!(public(&good))));
    assert_eq!((&signature["counts"], &signature["attached_by"]["label"]), (&json!(true), &json!("a test")));
    assert_eq!(attach(&api.acme, &digest, &sign(&good, &digest)).await.expect(200), signed, "once is enough");
    assert_eq!(api.acme.get(&path).await.expect(200), signed);
    let listed = whole_list(&api.acme.get("/v1/modules").await);
    let of = |digest: &str| listed.iter().find(|module| module["digest"] == *digest).unwrap()["signatures"].clone();
    assert_eq!((of(&digest), of(&other)), (signed["signatures"].clone(), json!([])));
}

/// With a signature that is not good nothing is kept of the upload. A signature is a part of what is asked under a request key.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_comes_with_a_good_signature_or_none() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let good = pair(1);
    add(&admin, "release", &good).await;
    let digest = api.upload(CHARGE).await;
    api.acme.delete(&format!("/v1/modules/{digest}")).await.expect(204);
    let upload = async |signature: &str, key: Option<&str>| {
        let request = api.acme.request(reqwest::Method::POST, "/v1/modules").query(&[("signature", signature)]);
        let request = request.header("content-type", "application/wasm").body(component(CHARGE));
        api.acme.send(key.into_iter().fold(request, |request, key| request.header("idempotency-key", key))).await
    };
    upload(&sign(&pair(2), &digest), None).await.refused(400, "deedbox.signature_invalid");
    upload("x", None).await.refused(400, "validation_error");
    assert!(whole_list(&api.acme.get("/v1/modules").await).is_empty());
    let key = "0123456789abcdefghijklmnop";
    let base64 = BASE64.encode(&HEXLOWER.decode(sign(&good, &digest).as_bytes()).unwrap());
    let first = upload(&base64, Some(key)).await;
    assert_eq!(first.expect(201)["signatures"][0]["signer"], "release");
    assert_eq!(upload(&base64, Some(key)).await.text, first.text);
    upload(&sign(&pair(2), &digest), Some(key)).await.refused(409, "idempotency_key_mismatch");
    assert_eq!(upload(&sign(&good, &digest), None).await.expect(200), first.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_signature_is_needed_nothing_else_is_deployed() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let good = pair(1);
    add(&admin, "release", &good).await;
    let digest = api.upload(GUESTS).await;
    let unsigned = deploy(&api.acme, &digest).await.expect(201);
    assert_eq!(unsigned["signed_by"], Value::Null);
    require(&admin, true).await;
    let refused = deploy(&api.acme, &digest).await;
    let envelope = refused.refused(403, "deedbox.signature_required");
    assert_eq!(envelope["details"]["limit"], "require_signature");
    // Uploads need none; a neighbour needs none at all.
    assert_eq!(api.upload(GUESTS).await, digest);
    let other = api.tenant("other").await;
    other.upload(component(GUESTS)).await.expect(201);
    deploy(&other, &digest).await.expect(201);
    // What was deployed before goes on, and new runs of it begin.
    let run = api.start("noop", json!(1)).await;
    attach(&api.acme, &digest, &sign(&good, &digest)).await.expect(200);
    let signed = deploy(&api.acme, &digest).await.expect(201);
    assert_eq!(signed["signed_by"], json!({ "signer": "release", "public_key": public(&good) }));
    api.work().await;
    assert_eq!(api.run(&run).await["version"], 1);
    assert_eq!(api.run(&run).await["state"], "completed");
    require(&admin, false).await;
    assert_eq!(deploy(&api.acme, &digest).await.expect(201)["signed_by"]["signer"], "release");
}

/// A key that is gone lets nothing in any more. Versions that are there, and their runs, go on and keep its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_signer_ends_new_deployments_and_nothing_else() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let (one, two) = (pair(1), pair(2));
    add(&admin, "release", &one).await;
    require(&admin, true).await;
    let digest = api.upload(GUESTS).await;
    attach(&api.acme, &digest, &sign(&one, &digest)).await.expect(200);
    deploy(&api.acme, &digest).await.expect(201);
    let queued = api.start("noop", json!(1)).await;
    admin.delete(&format!("{SIGNERS}/release")).await.expect(204);
    deploy(&api.acme, &digest).await.refused(403, "deedbox.signature_required");
    attach(&api.acme, &digest, &sign(&one, &digest)).await.refused(400, "deedbox.signature_invalid");
    let later = api.start("noop", json!(2)).await;
    api.work().await;
    for run in [&queued, &later] {
        assert_eq!(api.run(run).await["state"], "completed");
    }
    let module = api.acme.get(&format!("/v1/modules/{digest}")).await.expect(200);
    let signature = &module["signatures"][0];
    assert_eq!((&signature["signer"], &signature["counts"]), (&json!("release"), &json!(false)));
    let version = api.acme.get("/v1/activities/noop").await.expect(200)["versions"][0].clone();
    assert_eq!(version["signed_by"]["signer"], "release");

    // Another key, and the old one under another name, count.
    add(&admin, "next", &two).await;
    deploy(&api.acme, &digest).await.refused(403, "deedbox.signature_required");
    attach(&api.acme, &digest, &sign(&two, &digest)).await.expect(200);
    assert_eq!(deploy(&api.acme, &digest).await.expect(201)["signed_by"]["signer"], "next");
    admin.delete(&format!("{SIGNERS}/next")).await.expect(204);
    add(&admin, "again", &one).await;
    assert_eq!(deploy(&api.acme, &digest).await.expect(201)["signed_by"]["signer"], "again");
}

/// However a deployment and the end of its key fall together: once the end is answered, nothing is deployed on that key.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_signers_end_and_deployments_on_it_follow_each_other() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let one = pair(1);
    add(&admin, "release", &one).await;
    require(&admin, true).await;
    let digest = api.upload(GUESTS).await;
    attach(&api.acme, &digest, &sign(&one, &digest)).await.expect(200);
    for _ in 0..20 {
        let deploying = (0..4).map(|_| {
            let (client, digest) = (api.acme.clone(), digest.clone());
            tokio::spawn(async move { deploy(&client, &digest).await.status })
        });
        let deploying: Vec<_> = deploying.collect();
        admin.delete(&format!("{SIGNERS}/release")).await.expect(204);
        deploy(&api.acme, &digest).await.refused(403, "deedbox.signature_required");
        for deployed in deploying {
            assert!(matches!(deployed.await.unwrap(), 201 | 403));
        }
        add(&admin, "release", &one).await;
    }
}
