//! What is said of a hook that cannot be carried out, and what the rest is taken for.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::*;

fn check(hook: &Value) -> Result<Config> {
    let written: Written = serde_json::from_value(hook.clone()).map_err(|e| Problem::validation(e.to_string()))?;
    written.check()
}

/// A right hook of each scheme, with some members replaced.
fn hook(scheme: &str, members: Value) -> Value {
    let verify = match scheme {
        "hmac" => {
            json!({ "scheme": "hmac", "secret": "s", "header": "X-Sig", "encoding": "hex", "algorithm": "sha256" })
        }
        other => json!({ "scheme": other, "secret": "s" }),
    };
    let mut hook = json!({ "verify": verify, "start": { "activity": "noop" } });
    if scheme == "hmac" {
        hook["delivery_id"] = json!({ "header": "X-Id" });
    }
    for (name, member) in members.as_object().unwrap() {
        match name.strip_prefix("verify.") {
            Some(name) => hook["verify"][name] = member.clone(),
            None if member.is_null() => drop(hook.as_object_mut().unwrap().remove(name)),
            None => hook[name] = member.clone(),
        }
    }
    hook
}

#[track_caller]
fn refused(scheme: &str, members: Value, words: &str) {
    let hook = hook(scheme, members);
    let problem = check(&hook).err().unwrap_or_else(|| panic!("not refused: {hook}"));
    assert!(problem.refusal().unwrap().contains(words), "{hook}: {problem:?}");
}

#[test]
fn each_scheme_has_its_own_place_for_the_delivery_s_id() {
    let id = |scheme: &str| check(&hook(scheme, json!({}))).unwrap().delivery_id;
    assert_eq!(id("stripe"), Text::pointer(Pointer::read("/id").unwrap()));
    assert_eq!(id("github"), Text::header("x-github-delivery"));
    assert_eq!(id("standard-webhooks"), Text::header("webhook-id"));
    assert_eq!(id("hmac"), Text::header("x-id"));
    refused("hmac", json!({ "delivery_id": null }), "delivery_id: ");
    refused("stripe", json!({ "delivery_id": { "value": "1" } }), "delivery_id: must differ");
    refused("stripe", json!({ "delivery_id": { "template": "a" } }), "delivery_id: must differ");
}

#[test]
fn what_proves_a_sender_is_checked() {
    let stripe = check(&hook("stripe", json!({ "verify.secret": ["a", "b"], "verify.tolerance_s": 60 }))).unwrap();
    assert_eq!((stripe.scheme, stripe.secrets), (Scheme::Stripe { tolerance_s: 60 }, vec!["a".into(), "b".into()]));
    assert_eq!(check(&hook("stripe", json!({}))).unwrap().scheme, Scheme::Stripe { tolerance_s: 300 });
    for secrets in [json!([]), json!(["a", "a"]), json!(["a", "b", "c"]), json!(7), json!("a b"), json!([1])] {
        refused("github", json!({ "verify.secret": secrets }), "secret");
    }
    refused("stripe", json!({ "verify.tolerance_s": 0 }), "verify.tolerance_s: must be 1 to 3600");
    refused("stripe", json!({ "verify.tolerance_s": 3601 }), "verify.tolerance_s");
    refused("github", json!({ "verify.tolerance_s": 300 }), "signs no time");
    refused("hmac", json!({ "verify.tolerance_s": 300 }), "signs no time");
    refused("stripe", json!({ "verify.header": "x" }), "for the scheme `hmac` alone");
    refused("paypal", json!({}), "unknown variant `paypal`");
    refused("stripe", json!({ "verify.key": "x" }), "unknown field `key`");
}

#[test]
fn a_shared_secret_s_form_is_told_whole() {
    let Scheme::Hmac(form) = check(&hook("hmac", json!({ "verify.prefix": "v0=" }))).unwrap().scheme else { panic!() };
    assert_eq!((form.header.as_str(), form.prefix.as_str(), form.algorithm), ("x-sig", "v0=", Algorithm::Sha256));
    for member in ["header", "encoding", "algorithm"] {
        let mut hook = hook("hmac", json!({}));
        hook["verify"].as_object_mut().unwrap().remove(member);
        let problem = check(&hook).err().unwrap();
        assert!(problem.refusal().unwrap().starts_with(&format!("verify.{member}: ")), "{problem:?}");
    }
    refused("hmac", json!({ "verify.header": "a b" }), "verify.header");
    refused("hmac", json!({ "verify.prefix": "ä" }), "verify.prefix");
    refused("hmac", json!({ "verify.algorithm": "sha1" }), "unknown variant `sha1`");
    refused("hmac", json!({ "verify.encoding": "base32" }), "unknown variant `base32`");
}

#[test]
fn a_delivery_becomes_one_thing() {
    let signal = json!({ "run": { "pointer": "/run" }, "name": { "value": "paid" } });
    assert!(check(&hook("github", json!({ "start": null, "signal": signal }))).is_ok());
    refused("github", json!({ "signal": signal }), "either start or signal");
    refused("github", json!({ "start": null }), "either start or signal");
    refused("github", json!({ "other": 1 }), "unknown field `other`");
}

#[test]
fn a_start_is_checked() {
    let all = json!({ "activity": "noop", "input": { "pointer": "/a" }, "run_name": { "template": "o-{/id}" },
                      "reuse": "attach", "labels": { "shop": { "value": "x" }, "kind": { "header": "X-Kind" } } });
    assert!(check(&hook("github", json!({ "start": all }))).is_ok());
    assert!(check(&hook("github", json!({ "start": { "activity": "noop", "input": "body" } }))).is_ok());
    let refused = |start: Value, words: &str| refused("github", json!({ "start": start }), words);
    refused(json!({ "activity": "no op" }), "start.activity");
    refused(json!({ "activity": "noop", "input": "all" }), "start.input");
    refused(json!({ "activity": "noop", "input": { "pointer": "a" } }), "start.input.pointer");
    refused(json!({ "activity": "noop", "input": { "value": 1 } }), "object with a pointer");
    refused(json!({ "activity": "noop", "reuse": "attach" }), "start.reuse");
    refused(json!({ "activity": "noop", "run_name": { "template": "{" } }), "start.run_name.template");
    refused(json!({ "activity": "noop", "run_name": {} }), "start.run_name: give one of");
    refused(json!({ "activity": "noop", "labels": { "a b": { "value": "x" } } }), "start.labels");
    let many: serde_json::Map<String, Value> = (0..21).map(|n| (format!("l{n}"), json!({ "value": "x" }))).collect();
    refused(json!({ "activity": "noop", "labels": many }), "start.labels: at most 20");
}

#[test]
fn a_signal_is_checked() {
    let with = |run: Value, name: Value| json!({ "start": null, "signal": { "run": run, "name": name } });
    let named = json!({ "run_name": { "activity": "noop", "pointer": "/order" } });
    assert!(check(&hook("github", with(named.clone(), json!({ "pointer": "/type" })))).is_ok());
    let both = json!({ "pointer": "/run", "run_name": { "activity": "noop", "pointer": "/order" } });
    refused("github", with(both, json!({ "value": "x" })), "signal.run: give either");
    refused("github", with(json!({}), json!({ "value": "x" })), "signal.run: give one of");
    refused("github", with(named.clone(), json!({ "value": "a b" })), "signal.name");
    refused(
        "github",
        with(json!({ "run_name": { "activity": "a b", "pointer": "" } }), json!({ "value": "x" })),
        "activity",
    );
}

fn wants(when: Value, event: &str, body: &str) -> bool {
    let config = check(&hook("github", json!({ "when": when }))).unwrap();
    let headers = HeaderMap::from_iter([(HeaderName::from_static("x-event"), HeaderValue::from_str(event).unwrap())]);
    config.wants(&Arrived { headers: &headers, body: serde_json::from_str(body).ok() })
}

#[test]
fn all_conditions_must_hold() {
    let when = json!([{ "pointer": "/type", "in": ["a", "b"] }, { "header": "X-Event", "in": ["push"] }]);
    assert!(wants(when.clone(), "push", r#"{"type": "b"}"#) && wants(json!([]), "", "{}"));
    assert!(!wants(when.clone(), "pull", r#"{"type": "b"}"#));
    for body in [r#"{"type": "c"}"#, r#"{"type": ["a"]}"#, "{}", "7"] {
        assert!(!wants(when.clone(), "push", body), "{body}");
    }
    assert!(wants(json!([{ "pointer": "/n", "in": ["1.0", "true"] }]), "", r#"{"n": 1.0}"#));
    assert!(wants(when, "push", "no json"), "it is refused later");
}

#[test]
fn a_condition_asks_one_place_for_some_texts() {
    for wrong in [json!({ "in": ["a"] }), json!({ "pointer": "/a", "header": "b", "in": ["a"] })] {
        refused("github", json!({ "when": [wrong] }), "when[0]: give either");
    }
    refused("github", json!({ "when": [{ "pointer": "/a", "in": [] }] }), "when[0].in");
    refused("github", json!({ "when": [{ "pointer": "a", "in": ["x"] }] }), "when[0].pointer");
    refused("github", json!({ "when": [{ "pointer": "/a", "in": [1] }] }), "expected a string");
}
