//! `/v1/activities`: versions, exports, retirement, and what a policy may not say.

use serde_json::{Value, json};

use super::client::{assert_members, whole_list};
use super::tls::new_pair;
use super::{Api, GUESTS, no_hash};
use crate::harness::component;

#[tokio::test(flavor = "multi_thread")]
async fn each_deployment_is_a_version_with_all_defaults_filled_in() {
    let api = Api::idle().await;
    let first = api.deploy("noop", json!({ "retry": { "max_attempts": 7 } })).await;
    assert_members(
        &first,
        &["activity", "version", "module", "export", "policy", "created_at", "deployed_by", "signed_by"],
    );
    assert_eq!((&first["activity"], &first["version"], &first["export"]), (&json!("noop"), &json!(1), &json!("noop")));
    let policy = &first["policy"];
    assert_eq!(policy["retry"]["max_attempts"], 7);
    assert_eq!(policy["retry"]["initial_interval"], "1s");
    assert_eq!(policy["retry"]["jitter"], "full");
    assert_eq!(policy["timeouts"]["start_to_close"], "1m");
    assert_eq!(policy["egress"]["allow"], json!([]));
    assert_eq!(policy["randomness"], "stable");

    let second = api.deploy("noop", json!({})).await;
    assert_eq!(second["version"], 2);
    assert_eq!(second["policy"]["retry"]["max_attempts"], 3);
    assert_eq!(whole_list(&api.acme.get("/v1/activities").await), std::slice::from_ref(&second));
    let shown = api.acme.get("/v1/activities/noop").await.expect(200);
    assert_members(&shown, &["activity", "paused", "versions", "after"]);
    let mut versions = shown["versions"].as_array().unwrap().clone();
    versions.sort_by_key(|version| version["version"].as_i64());
    assert_eq!(versions, [first, second.clone()]);

    // What was answered can be deployed as it is.
    let again = json!({ "module": second["module"], "export": second["export"], "policy": second["policy"] });
    let third = api.acme.put("/v1/activities/noop", &again).await.expect(201);
    assert_eq!((&third["version"], &third["policy"]), (&json!(3), &second["policy"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_asked_for_or_named_alike_or_the_only_one() {
    let api = Api::idle().await;
    let (many, one) = (api.upload(GUESTS).await, api.upload("charge_once.wasm").await);
    let deploy = |name: &str, body: Value| {
        let path = format!("/v1/activities/{name}");
        let acme = api.acme.clone();
        async move { acme.put(&path, &body).await }
    };
    assert_eq!(deploy("job", json!({ "module": many, "export": "noop" })).await.expect(201)["export"], "noop");
    assert_eq!(deploy("noop", json!({ "module": many })).await.expect(201)["export"], "noop");
    assert_eq!(deploy("job", json!({ "module": one })).await.expect(201)["export"], "charge-once");
    for body in [json!({ "module": many }), json!({ "module": many, "export": "unknown" })] {
        let message = deploy("job", body).await.message(400, "validation_error");
        assert!(message.starts_with("export:"), "{message}");
        assert!(["noop", "send", "fail-until"].iter().all(|export| message.contains(export)), "{message}");
    }
    for module in [no_hash(), "nonsense".to_owned(), many.to_uppercase()] {
        let message = deploy("job", json!({ "module": module })).await.message(400, "validation_error");
        assert!(message.contains("/v1/modules"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_activity_starts_nothing_and_its_runs_go_on() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    api.acme.delete("/v1/activities/noop").await.expect(204);
    api.acme.post("/v1/activities/noop/runs", &json!({ "input": 2 })).await.refused(404, "not_found");
    api.acme.delete("/v1/activities/noop").await.refused(404, "not_found");
    assert!(whole_list(&api.acme.get("/v1/activities").await).is_empty());
    let shown = api.acme.get("/v1/activities/noop").await.expect(200);
    assert_eq!(shown["versions"].as_array().unwrap().len(), 1);
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], 1);

    assert_eq!(api.deploy("noop", json!({})).await["version"], 2);
    assert_eq!(whole_list(&api.acme.get("/v1/activities").await).len(), 1);
    api.start("noop", json!(3)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_keeps_the_version_that_it_was_started_with() {
    let api = Api::idle().await;
    let module = api.upload(GUESTS).await;
    let deploy = |export: &str| {
        let body = json!({ "module": module, "export": export, "policy": { "retry": { "max_attempts": 1 } } });
        let acme = api.acme.clone();
        async move { acme.put("/v1/activities/job", &body).await.expect(201) }
    };
    deploy("noop").await;
    let old = api.start("job", json!({ "a": 1 })).await;
    deploy("trap").await;
    let new = api.start("job", json!({ "a": 1 })).await;
    api.work().await;
    let (old, new) = (api.ended(&old).await, api.ended(&new).await);
    assert_eq!((&old["version"], &old["state"], &old["output"]), (&json!(1), &json!("completed"), &json!({ "a": 1 })));
    assert_eq!((&new["version"], &new["state"]), (&json!(2), &json!("failed")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cannot_be_kept_is_refused_by_its_field() {
    let api = Api::idle().await;
    let module = api.upload(GUESTS).await;
    let many_certificates = new_pair().certificate_pem.repeat(33);
    let policies = [
        (json!({ "limits": { "memory_bytes": 1_u64 << 40 } }), "policy.limits.memory_bytes"),
        (json!({ "limits": { "memory_bytes": 0 } }), "policy.limits.memory_bytes"),
        (json!({ "limits": { "memory_bytes": -1 } }), "policy"),
        (json!({ "retry": { "max_attempts": 0 } }), "policy.retry.max_attempts"),
        (json!({ "retry": { "max_attempts": 1001 } }), "policy.retry.max_attempts"),
        (json!({ "retry": { "backoff_coefficient": 0.5 } }), "policy.retry.backoff_coefficient"),
        (json!({ "retry": { "initial_interval": "0s" } }), "policy.retry.initial_interval"),
        (json!({ "retry": { "initial_interval": 5 } }), "policy"),
        (json!({ "retry": { "max_interval": "1 fortnight" } }), "fortnight"),
        (json!({ "timeouts": { "start_to_close": "40days" } }), "policy.timeouts.start_to_close"),
        (json!({ "egress": { "allow": ["api.example.com"] } }), "api.example.com"),
        (json!({ "egress": { "allow": ["https://*"] } }), "https://*"),
        (json!({ "egress": { "allow": ["https://api.example.com:"] } }), "api.example.com:"),
        (json!({ "egress": { "allow": [{ "host": "a.example", "port": 0 }] } }), "port 0"),
        (json!({ "egress": { "allow": [{ "host": "a.example", "methods": [] }] } }), "methods"),
        (json!({ "egress": { "allow": [{ "host": "a.example", "path_prefix": "v1" }] } }), "path_prefix"),
        (json!({ "egress": { "allow": [{ "host": "a.example", "paths": ["/v1"] }] } }), "paths"),
        (json!({ "egress": { "allow": ["https://a.example/path"] } }), "a.example/path"),
        (json!({ "egress": { "private_addresses": ["nowhere"] } }), "policy"),
        (json!({ "egress": { "ca": "no certificate" } }), "policy.egress.ca: must be certificates in PEM"),
        (json!({ "egress": { "ca": new_pair().key_pem } }), "policy.egress.ca: must have certificates only"),
        (json!({ "egress": { "ca": "x".repeat(70_000) } }), "policy.egress.ca: must be at most 65536 bytes"),
        (json!({ "egress": { "ca": many_certificates } }), "policy.egress.ca: must be at most 32"),
        (json!({ "providers": { "http://127.0.0.1:1": "nobody" } }), "nobody"),
        (json!({ "providers": { "not an origin": "stripe" } }), "policy.providers"),
        (json!({ "providers": { "https://*.example.com": "stripe" } }), "policy.providers"),
        (json!({ "credentials": { "nobody": { "secret": "a", "account": "b" } } }), "nobody"),
        (
            json!({ "credentials": { "stripe": { "secret": "a b", "account": "b" } } }),
            "policy.credentials.stripe.secret",
        ),
        (json!({ "credentials": { "stripe": { "secret": "a" } } }), "account"),
        (json!({ "on_unknown": "guess" }), "guess"),
        (json!({ "unheard-of": 1 }), "unheard-of"),
        (json!({ "retry": { "unheard-of": 1 } }), "unheard-of"),
        (json!([]), "policy"),
        (json!("x"), "policy"),
    ];
    for (policy, expected) in policies {
        let answer = api.acme.put("/v1/activities/noop", &json!({ "module": module, "policy": policy })).await;
        let message = answer.message(400, "validation_error");
        assert!(message.contains(expected), "{expected}: {message}");
    }
    assert!(whole_list(&api.acme.get("/v1/activities").await).is_empty());
    let most = json!({ "module": module, "policy": { "limits": { "memory_bytes": 512_u64 << 20 } } });
    api.acme.put("/v1/activities/noop", &most).await.expect(201);
    let ca = new_pair().certificate_pem + &new_pair().certificate_pem;
    let own = json!({ "module": module, "policy": { "egress": { "ca": ca } } });
    assert_eq!(api.acme.put("/v1/activities/noop", &own).await.expect(201)["policy"]["egress"]["ca"], ca);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_has_a_grammar() {
    let api = Api::idle().await;
    let module = api.acme.upload(component(GUESTS)).await.json()["digest"].clone();
    let body = json!({ "module": module, "export": "noop" });
    let longest = "a".repeat(128);
    for name in ["A.b_c-9", "0", longest.as_str()] {
        api.acme.put(&format!("/v1/activities/{name}"), &body).await.expect(201);
        api.start(name, json!(1)).await;
    }
    let too_long = "a".repeat(129);
    for name in [too_long.as_str(), "a%20b", "a%2Fb", "%C3%A4", "a%00b", "a~b", "a:b"] {
        api.acme.put(&format!("/v1/activities/{name}"), &body).await.refused(400, "validation_error");
        api.acme.get(&format!("/v1/activities/{name}")).await.refused(404, "not_found");
        api.acme.delete(&format!("/v1/activities/{name}")).await.refused(404, "not_found");
        api.acme.post(&format!("/v1/activities/{name}/runs"), &json!({})).await.refused(404, "not_found");
    }
}
