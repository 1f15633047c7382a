//! Callers who cannot send the same body twice, as webhooks cannot: with `Prefer: handling=lenient` a known key answers
//! with the run that it started, whatever is asked now and whether or not it would still be allowed.

use super::super::GUESTS;
use super::super::client::assert_members;
use super::*;

/// Asserts that a lenient caller was told of this run and that nothing was started.
#[track_caller]
fn known(answer: &Answer, run: &str) {
    let body = answer.expect(200);
    let told = (&body["run_id"], &body["started_fresh"], &body["deduplicated"]);
    assert_eq!(told, (&json!(run), &json!(false), &json!(true)), "{answer:?}");
    assert_eq!(answer.header("preference-applied"), "handling=lenient");
    assert_eq!(answer.header("content-type"), JSON);
}

fn lenient(api: &Api, key: &str, body: impl Into<Vec<u8>>) -> Ask {
    Ask::new(&api.acme, Method::POST, NOOP).raw(JSON, body).key(key).lenient()
}

/// R-C02, R-C12, R-Z01, R-Z02.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_is_answered_with_its_run_whatever_the_body_says() {
    let api = noops().await;
    let key = fresh_key();
    let first = lenient(&api, &key, r#"{"input":1}"#).send().await;
    let shown = done(&first, 201);
    assert_eq!((&shown["started_fresh"], &shown["deduplicated"]), (&json!(true), &json!(false)));
    let run = run_of(&first);
    for body in [r#"{"input":1}"#, r#"{"input":2}"#, "{}", r#"{"input":1,"labels":{"a":"b"},"run_name":"x"}"#] {
        let again = lenient(&api, &key, body).send().await;
        known(&again, &run);
        assert_members(
            &again.json(),
            &["run_id", "state", "activity", "version", "created_at", "started_fresh", "deduplicated"],
        );
    }
    api.work().await;
    known(&lenient(&api, &key, "{}").send().await, &run);
    assert_eq!((runs(&api).await, &api.run(&run).await["input"]), (vec![run], &json!(1)));
}

/// R-C14, R-Z05.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_is_answered_though_the_body_cannot_be_read() {
    let api = noops().await;
    let key = fresh_key();
    let run = run_of(&lenient(&api, &key, r#"{"input":1}"#).send().await);
    for body in [&b""[..], b"{", b"{\"input\":1}}", b"\xff\xfe", b"[]", b"null", b"{\"unheard-of\":1}", b"input=1"] {
        known(&lenient(&api, &key, body).send().await, &run);
    }
    let deep = "[".repeat(400_000);
    known(&lenient(&api, &key, deep).send().await, &run);
    assert_eq!(runs(&api).await, [run]);
}

/// R-C08, R-C09, R-C10: what a start would be refused for today does not matter to one of yesterday. A callback into a
/// private network is among it.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_is_answered_before_anything_is_checked() {
    let api = noops().await;
    let key = fresh_key();
    let run = run_of(&lenient(&api, &key, r#"{"input":1}"#).send().await);
    for refused_now in [
        json!({ "delay": "400days" }),
        json!({ "start_at": "2999-01-01T00:00:00Z" }),
        json!({ "start_at": "2026-01-01T00:00:00Z", "delay": "1s" }),
        json!({ "priority": 10 }),
        json!({ "retry": { "max_attempts": 0 } }),
        json!({ "callback_url": "http://169.254.169.254/latest" }),
        json!({ "callback": { "url": "http://169.254.169.254/latest" } }),
        json!({ "signal": { "name": "go", "idempotency_key": "short key" } }),
    ] {
        known(&lenient(&api, &key, refused_now.to_string()).send().await, &run);
        let fresh = lenient(&api, &fresh_key(), refused_now.to_string()).send().await;
        assert_eq!(fresh.status, 400, "{refused_now}: {fresh:?}");
    }
    assert_eq!(runs(&api).await, [run]);
}

/// R-C08: the same request, after a rule of the server has become stricter: also strict callers are told of their run.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_outlives_a_stricter_rule() {
    let api = noops().await;
    let stricter = another_node(&api, changed(|config| config.signals.max_payload_bytes = 10)).await;
    let body = json!({ "input": 1, "signal": { "name": "go", "payload": "more than ten bytes" } });
    let ask = Ask::start(&api.acme, &body).key(&fresh_key());
    let first = twice(&ask, 201).await;
    let there = ask.by(&stricter);
    replays(&there.send().await, &first);
    known(&there.clone().lenient().send().await, &run_of(&first));
    there.clone().key(&fresh_key()).send().await.refused(413, "payload_too_large");
    there.key(&fresh_key()).lenient().send().await.refused(413, "payload_too_large");
    assert_eq!(runs(&api).await.len(), 1);
}

/// R-C08, R-C13: the schema of the inputs has become tighter since.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_outlives_a_tighter_schema() {
    let api = noops().await;
    let ask = Ask::start(&api.acme, &json!({ "input": { "amount": "5" } })).key(&fresh_key());
    let first = twice(&ask, 201).await;
    let schema = json!({ "type": "object", "properties": { "amount": { "type": "integer" } } });
    api.deploy("noop", json!({ "input_schema": schema })).await;
    ask.clone().key(&fresh_key()).send().await.refused(400, "validation_error");
    ask.clone().key(&fresh_key()).lenient().send().await.refused(400, "validation_error");
    replays(&ask.send().await, &first);
    known(&ask.lenient().send().await, &run_of(&first));
    assert_eq!(runs(&api).await.len(), 1);
}

/// R-C11: the activity is gone, or the tenant has as much as it may have, or nothing may begin.
#[tokio::test(flavor = "multi_thread")]
async fn a_known_key_is_answered_where_nothing_is_admitted() {
    let api = noops().await;
    let (admin, key) = (api.admin().await, fresh_key());
    let body = r#"{"input":1}"#;
    let run = run_of(&lenient(&api, &key, body).send().await);
    let strict = Ask::new(&api.acme, Method::POST, NOOP).raw(JSON, body).key(&key);
    let first = strict.send().await;
    admin.put("/v1/tenants/acme/limits", &json!({ "max_queued": 1 })).await.expect(200);
    lenient(&api, &fresh_key(), body).send().await.refused(429, "rate_limited");
    known(&lenient(&api, &key, body).send().await, &run);
    replays(&strict.send().await, &first);
    admin.send(admin.request(Method::POST, "/v1/tenants/acme/pause")).await.expect(204);
    api.acme.delete("/v1/activities/noop").await.expect(204);
    lenient(&api, &fresh_key(), body).send().await.refused(404, "not_found");
    known(&lenient(&api, &key, body).send().await, &run);
    replays(&strict.send().await, &first);
    // Back with another version: the run of then is the run.
    let module = api.upload(GUESTS).await;
    api.acme.put("/v1/activities/noop", &json!({ "module": module })).await.expect(201);
    known(&lenient(&api, &key, body).send().await, &run);
    assert_eq!(runs(&api).await, [run]);
}

/// R-C13: nobody is let in for being lenient.
#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_key_is_checked_like_any_start() {
    let api = noops().await;
    let key = fresh_key();
    for body in ["{", "[]", r#"{"priority":10}"#, r#"{"unheard-of":1}"#] {
        lenient(&api, &key, body).send().await.refused(400, "validation_error");
    }
    let plain = lenient(&api, &fresh_key(), r#"{"input":1}"#).header("content-type", "text/plain");
    plain.send().await.refused(415, "unsupported_media_type");
    let unknown = Ask::post(&api.acme, "/v1/activities/none/runs", &json!({})).key(&key).lenient();
    unknown.send().await.refused(404, "not_found");
    api.nobody().post(NOOP, &json!({})).await.refused(401, "unauthenticated");
    let run = run_of(&lenient(&api, &key, r#"{"input":1}"#).send().await);
    known(&lenient(&api, &key, "{").send().await, &run);
    // Who is not let in is not told either.
    lenient(&api, &key, "{").by(&api.nobody()).send().await.refused(401, "unauthenticated");
}

/// R-C25, R-Z03.
#[tokio::test(flavor = "multi_thread")]
async fn a_lenient_key_is_1_to_255_visible_characters() {
    let api = noops().await;
    let visible: String = (b'!'..=b'~').filter(|c| *c != b'"').map(char::from).collect();
    let good = ["1".to_owned(), "evt_1/x:y=z+w".to_owned(), "k".repeat(255), visible, fresh_key()];
    for key in &good {
        let run = run_of(&lenient(&api, key, r#"{"input":1}"#).send().await);
        known(&lenient(&api, key, "{").send().await, &run);
    }
    assert_eq!(runs(&api).await.len(), good.len());
    for wrong in ["", " ", "a b", "a\tb", &"k".repeat(256), "ä", "\u{a0}"] {
        lenient(&api, wrong, r#"{"input":1}"#).send().await.refused(400, "idempotency_key_invalid");
    }
    lenient(&api, "x", "{}")
        .header("idempotency-key", [0xff_u8; 30])
        .send()
        .await
        .refused(400, "idempotency_key_invalid");
    assert_eq!(runs(&api).await.len(), good.len());
    // Who did not ask for it is held to the rule, also where there is such a key.
    Ask::start(&api.acme, &json!({ "input": 1 })).key("1").send().await.refused(400, "idempotency_key_invalid");
}

/// R-Z01: how a caller wants to be treated is no part of his key.
#[tokio::test(flavor = "multi_thread")]
async fn lenient_and_strict_callers_meet_in_one_record() {
    let api = noops().await;
    for lenient_first in [true, false] {
        let key = fresh_key();
        let strict = Ask::start(&api.acme, &json!({ "input": 1 })).key(&key);
        let first = if lenient_first { strict.clone().lenient().send().await } else { strict.send().await };
        done(&first, 201);
        let replay = strict.send().await;
        assert_eq!((replay.status, &replay.text, is_replay(&replay)), (201, &first.text, true));
        Ask::start(&api.acme, &json!({ "input": 2 })).key(&key).send().await.refused(409, "idempotency_key_mismatch");
        known(&lenient(&api, &key, "{").send().await, &run_of(&first));
    }
    assert_eq!(runs(&api).await.len(), 2);
}

/// The preference is read as RFC 7240 writes it, and means nothing elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn only_who_asks_for_it_and_only_where_it_is_offered_is_treated_so() {
    let api = noops().await;
    let key = fresh_key();
    let run = run_of(&Ask::start(&api.acme, &json!({ "input": 1 })).key(&key).send().await);
    let other = Ask::start(&api.acme, &json!({ "input": 2 })).key(&key);
    for prefer in
        ["handling=lenient", "respond-async, handling=lenient", "Handling = lenient; x=1", "handling=\"lenient\""]
    {
        known(&other.clone().header("prefer", prefer).send().await, &run);
    }
    known(&other.clone().header("prefer", "respond-async").also("prefer", "handling=lenient").send().await, &run);
    for prefer in ["handling=strict", "respond-async", "lenient", "handling", ""] {
        let answer = other.clone().header("prefer", prefer).send().await;
        answer.refused(409, "idempotency_key_mismatch");
        assert!(answer.header("preference-applied").is_empty(), "{prefer}: {answer:?}");
    }
    let cancel = format!("/v1/runs/{run}/cancel");
    for ask in
        [Ask::new(&api.acme, Method::POST, &cancel), Ask::put(&api.acme, "/v1/secrets/a", &json!({ "value": "x" }))]
    {
        let refused = ask.clone().key("evt_1").lenient().send().await;
        refused.refused(400, "idempotency_key_invalid");
        let first = ask.key(&fresh_key()).lenient().send().await;
        assert!((200..300).contains(&first.status) && first.header("preference-applied").is_empty(), "{first:?}");
    }
}
