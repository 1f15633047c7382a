//! What the host says of itself, and which version it speaks.

use serde_json::json;

use super::{create, host, run_path};
use crate::api::client::{assert_members, members};

/// The families that a host may name, of those that there are.
const CLAIMED: [&str; 2] = ["idempotency", "runList"];

#[tokio::test(flavor = "multi_thread")]
async fn discovery_needs_no_token_and_claims_what_is_there() {
    let api = host().await;
    let answer = api.nobody().get("/.well-known/openwop").await;
    let document = answer.expect(200);
    let metadata = [
        "protocolVersion",
        "protocolVersions",
        "preferredVersion",
        "implementation",
        "eventLogSchemaVersion",
        "fixtures",
    ];
    assert_members(&document, &[&metadata[..], &CLAIMED].concat());
    assert_eq!((&document["protocolVersions"], &document["preferredVersion"]), (&json!(["2.0"]), &json!("2.0")));
    assert_eq!(document["eventLogSchemaVersion"], 3);
    assert_eq!(document["fixtures"], json!(["conformance-noop", "conformance-delay", "conformance-failure"]));
    for family in CLAIMED {
        let record = &document[family];
        assert_eq!((&record["status"], &record["witness"]), (&json!("stable"), &json!("witnessable-gated")));
        assert!(!members(record).contains(&"until") && !members(record).contains(&"supported"), "{record}");
    }
    assert_eq!(document["idempotency"]["crossRegion"], "single-region");
    for fixture in document["fixtures"].as_array().unwrap() {
        create(&api.acme, fixture.as_str().unwrap(), json!({ "delayMs": 1 })).await;
    }
    assert_eq!(answer.header("openwop-version"), "2.0");
}

#[tokio::test(flavor = "multi_thread")]
async fn discovery_is_not_sent_twice() {
    let api = host().await;
    let get =
        |tag: &str| api.nobody().request(reqwest::Method::GET, "/.well-known/openwop").header("if-none-match", tag);
    let tag = api.nobody().get("/.well-known/openwop").await.header("etag").to_owned();
    assert!(tag.len() > 2 && tag.starts_with('"'), "{tag}");
    let again = api.acme.send(get(&tag)).await;
    assert_eq!((again.status, again.text.as_str(), again.header("openwop-version")), (304, "", "2.0"));
    assert_eq!(api.acme.send(get("\"another\"")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_major_version_is_refused_everywhere_and_a_minor_one_is_not() {
    let api = host().await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    let paths = ["/.well-known/openwop".to_owned(), "/runs".to_owned(), run_path(&id), run_path(&id) + "/effects"];
    for path in paths {
        let asked = |version: &str| api.acme.request(reqwest::Method::GET, &path).header("openwop-version", version);
        for version in ["1", "1.0", "3.0", "", "latest"] {
            let refused = api.acme.send(asked(version)).await;
            let body = refused.refused(406, "protocol_version_unsupported");
            assert_eq!(body["details"]["protocolVersions"], json!(["2.0"]), "{path} {version}");
            assert_eq!(refused.header("openwop-version"), "2.0");
        }
        for version in ["2", "2.0", "2.9"] {
            assert_eq!(api.acme.send(asked(version)).await.status, 200, "{path} {version}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_of_the_profile_names_its_version_and_no_native_one_does() {
    let api = host().await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    let answers = [
        api.nobody().get("/runs").await,
        api.acme.get("/runs").await,
        api.acme.get(&run_path(&id)).await,
        api.acme.get("/runs/acme~2Fx").await,
        api.acme.get("/runs/nobody~2Fx").await,
        api.acme.post("/runs", &json!({})).await,
        api.acme.post(&format!("{}:else", run_path(&id)), &json!({})).await,
        api.acme.delete("/runs").await,
    ];
    for answer in &answers {
        assert_eq!(answer.header("openwop-version"), "2.0", "{answer:?}");
    }
    for path in ["/v1/runs", "/healthz", "/else"] {
        assert_eq!(api.acme.get(path).await.header("openwop-version"), "", "{path}");
    }
}
