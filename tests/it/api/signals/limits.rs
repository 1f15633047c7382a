//! What a signal may be: its name, its payload and its query; and how many a run keeps. What is refused leaves the run
//! as it was.

use reqwest::Method;
use serde_json::{Value, json};

use super::super::client::Answer;
use super::{Api, KEY, OTHER_KEY, deliver, idle, listener, path, signals_of, taken, waits_for, with};

const JSON: Option<&str> = Some("application/json");

async fn raw(api: &Api, run: &str, content_type: Option<&str>, body: impl Into<Vec<u8>>) -> Answer {
    api.acme.raw(Method::POST, &path(run, "go"), content_type, body.into()).await
}

/// F-D11.
#[tokio::test(flavor = "multi_thread")]
async fn a_payload_at_the_limit_is_taken_and_a_larger_one_leaves_the_run_as_it_was() {
    let api = with(|config| config.signals.max_payload_bytes = 1_000).await;
    let run = listener(&api).await;
    api.work().await;
    let before = api.run(&run).await;
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    for bytes in [1_001, 2_000, 100_000] {
        let answer = raw(&api, &run, JSON, text(bytes)).await;
        assert!(answer.message(413, "payload_too_large").contains("1000"), "{answer:?}");
    }
    assert_eq!(api.run(&run).await, before);
    assert!(signals_of(&api, &run).await.is_empty());
    taken(&raw(&api, &run, JSON, text(1_000)).await, true);
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!(["x".repeat(998)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_json_and_kept_as_it_was_written() {
    let api = idle().await;
    let run = listener(&api).await;
    for wrong in [&b" "[..], b"{", b"{} {}", b"nul", b"{'a': 1}", b"\xff", b"\"\x01\"", b"[1,]"] {
        raw(&api, &run, JSON, wrong).await.refused(400, "validation_error");
    }
    for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("text/json"), Some("")] {
        raw(&api, &run, kind, "{}").await.refused(415, "unsupported_media_type");
    }
    assert!(signals_of(&api, &run).await.is_empty());
    let number = r#"{"n": 12345678901234567890.50, "z":"\u0000", "a":1}"#;
    taken(&raw(&api, &run, Some("application/cloudevents+json; charset=utf-8"), number).await, true);
    let listed = api.acme.get(&format!("/v1/runs/{run}/signals")).await;
    assert!(listed.text.contains(&format!(r#""payload":{number}"#)), "{}", listed.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_body_is_the_payload_null() {
    let api = idle().await;
    api.deploy("listen", json!({})).await;
    let run = api.start("listen", waits_for(&["go", "go"])).await;
    for kind in [None, JSON] {
        taken(&raw(&api, &run, kind, "").await, true);
    }
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!([null, null]));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_have_a_grammar_and_queries_are_understood_or_refused() {
    let api = idle().await;
    let run = listener(&api).await;
    for name in ["a%20b", "a~b", "%C3%A4", "a%2Fb", "%00", &"a".repeat(129)] {
        let answer = deliver(&api.acme, &run, name, Some(KEY), &json!(1)).await;
        assert!(answer.message(400, "validation_error").contains("signal name"), "{name}: {answer:?}");
    }
    for query in ["colour=1", "outcome=happened", "resolves=x&outcome=maybe", "idempotency_key=a&idempotency_key=b"] {
        let answer = deliver(&api.acme, &run, &format!("go?{query}"), Some(KEY), &json!(1)).await;
        answer.refused(400, "validation_error");
    }
    assert!(signals_of(&api, &run).await.is_empty());
    for name in ["a".repeat(128), "A-Z_0.9".to_owned()] {
        taken(&deliver(&api.acme, &run, &name, None, &json!(1)).await, true);
    }
}

/// F-D11. What a run has read makes room again.
#[tokio::test(flavor = "multi_thread")]
async fn too_many_unread_signals_are_refused_and_the_run_goes_on() {
    let api = with(|config| config.signals.max_unread = 3).await;
    api.deploy("listen", json!({})).await;
    let run = api.start("listen", waits_for(&["go"; 4])).await;
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!(1)).await, true);
    for n in 2..=3 {
        taken(&deliver(&api.acme, &run, "go", None, &json!(n)).await, true);
    }
    for (name, key) in [("go", None), ("go", Some(OTHER_KEY)), ("other", None)] {
        let answer = deliver(&api.acme, &run, name, key, &json!(4)).await;
        answer.refused(429, "rate_limited");
        assert!(answer.header("retry-after").parse::<u32>().is_ok_and(|seconds| seconds > 0), "{answer:?}");
    }
    // What is there already is no more.
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!(1)).await, false);
    assert_eq!(signals_of(&api, &run).await.len(), 3);
    api.work().await;
    assert_eq!(api.run(&run).await["state"], "waiting");
    // A key that was refused was not kept.
    taken(&deliver(&api.acme, &run, "go", Some(OTHER_KEY), &json!(4)).await, true);
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!([1, 2, 3, 4]));
}

/// Another run of the same tenant is not held up by one that is full.
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_unread_signals_is_each_runs_own() {
    let api = with(|config| config.signals.max_unread = 1).await;
    let (full, free) = (listener(&api).await, listener(&api).await);
    taken(&deliver(&api.acme, &full, "other", None, &Value::Null).await, true);
    deliver(&api.acme, &full, "go", None, &Value::Null).await.refused(429, "rate_limited");
    taken(&deliver(&api.acme, &free, "go", None, &Value::Null).await, true);
    api.work().await;
    assert_eq!(api.ended(&free).await["output"], json!([null]));
    assert_eq!(api.run(&full).await["state"], "waiting");
}
