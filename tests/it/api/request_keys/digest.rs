//! When two requests are the same. What means the same is a repeat; what means something else is told to be another
//! request, and learns nothing of the first.

use super::super::GUESTS;
use super::*;
use crate::harness::component;

/// Asserts that it was refused as another request, and that nothing of the first one's answer is in it.
#[track_caller]
fn mismatch(answer: &Answer, first: &Answer) {
    let body = answer.refused(409, "idempotency_key_mismatch");
    assert!(!is_replay(answer) && answer.header("location").is_empty(), "{answer:?}");
    assert!(body.get("details").is_none_or(|details| details.as_object().is_some_and(|all| all.is_empty())), "{body}");
    let id = first.json()["run_id"].as_str().map(str::to_owned);
    assert!(id.is_none_or(|id| !answer.text.contains(&id)), "{answer:?}");
}

/// A start with this very text as its body.
fn starting(api: &Api, key: &str, body: &str) -> Ask {
    Ask::new(&api.acme, Method::POST, NOOP).raw(JSON, body).key(key)
}

/// F-A12.
#[tokio::test(flavor = "multi_thread")]
async fn order_white_space_and_escapes_make_no_other_request() {
    let api = noops().await;
    let key = fresh_key();
    let first = twice(&starting(&api, &key, r#"{"input":{"a":[1,{"b":null}],"c":"é/"},"priority":5}"#), 201).await;
    for same in [
        r#" { "priority" : 5 , "input" : { "c" : "é/" , "a" : [ 1 , { "b" : null } ] } } "#,
        "{\"input\":\r\n\t{\"a\":[1,{\"b\":null}],\n\"c\":\"\\u00e9\\/\"},\"priority\":5}\n",
        r#"{"\u0069nput":{"\u0061":[1,{"b":null}],"c":"\u00E9/"},"priority":5}"#,
    ] {
        replays(&starting(&api, &key, same).send().await, &first);
    }
    let vendor = starting(&api, &key, r#"{"priority":5,"input":{"c":"é/","a":[1,{"b":null}]}}"#);
    replays(
        &vendor
            .raw("application/json; charset=utf-8", r#"{"input":{"a":[1,{"b":null}],"c":"é/"},"priority":5}"#)
            .send()
            .await,
        &first,
    );
    assert_eq!(runs(&api).await, [run_of(&first)]);
}

/// F-A12, R-K13, R-K14, R-Z01: numbers are compared as they are written.
#[tokio::test(flavor = "multi_thread")]
async fn another_value_order_or_spelling_of_a_number_is_another_request() {
    let api = noops().await;
    let body = r#"{"input":{"list":[1,2],"n":1,"big":9007199254740993,"nil":null,"text":"a","zero":0}}"#;
    let key = fresh_key();
    let first = twice(&starting(&api, &key, body), 201).await;
    for (from, to) in [
        ("[1,2]", "[2,1]"),
        ("[1,2]", "[1,2,2]"),
        ("[1,2]", "[[1,2]]"),
        ("\"n\":1,", "\"n\":\"1\","),
        ("\"n\":1,", "\"n\":1.0,"),
        ("\"n\":1,", "\"n\":1e0,"),
        ("\"n\":1,", "\"n\":true,"),
        ("9007199254740993", "9007199254740992"),
        ("9007199254740993", "9007199254740993.0"),
        ("\"nil\":null,", ""),
        ("\"nil\":null", "\"nil\":{}"),
        ("\"text\":\"a\"", "\"text\":\"A\""),
        ("\"text\":\"a\"", "\"text\":\"a \""),
        ("\"zero\":0", "\"zero\":-0"),
        ("\"zero\":0}", "\"zero\":0},\"run_name\":null"),
        ("\"zero\":0}", "\"zero\":0},\"priority\":5"),
    ] {
        let other = body.replacen(from, to, 1);
        assert_ne!(other, body, "{from}");
        mismatch(&starting(&api, &key, &other).send().await, &first);
    }
    replays(&starting(&api, &key, body).send().await, &first);
    assert_eq!(runs(&api).await, [run_of(&first)]);
}

/// F-A12: text that is JSON, and yet no text of Unicode.
#[tokio::test(flavor = "multi_thread")]
async fn half_a_letter_and_an_endless_nesting_are_compared_as_well() {
    let api = noops().await;
    let key = fresh_key();
    let first = twice(&starting(&api, &key, r#"{"input":["\ud800",1e400,-1E-400]}"#), 201).await;
    mismatch(&starting(&api, &key, r#"{"input":["\ud801",1e400,-1E-400]}"#).send().await, &first);
    mismatch(&starting(&api, &key, r#"{"input":["\ud800",1e401,-1E-400]}"#).send().await, &first);
    for depth in [100, 127, 128, 129, 10_000, 400_000] {
        let deep = |inner: &str| format!("{{\"input\":{}{inner}{}}}", "[".repeat(depth), "]".repeat(depth));
        let key = fresh_key();
        let first = starting(&api, &key, &deep("1")).send().await;
        assert!((200..500).contains(&first.status), "{depth}: {}", first.status);
        if first.status == 201 {
            replays(&starting(&api, &key, &deep("1")).send().await, &first);
            mismatch(&starting(&api, &key, &deep("2")).send().await, &first);
        }
    }
    api.acme.get("/v1/runs").await.expect(200);
}

/// R-K13: a component is its bytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_is_compared_byte_for_byte() {
    let api = Api::idle().await;
    let upload = |bytes: Vec<u8>, key: &str| {
        Ask::new(&api.acme, Method::POST, "/v1/modules").raw("application/wasm", bytes).key(key)
    };
    let key = fresh_key();
    let first = twice(&upload(component("charge_once.wasm"), &key), 201).await;
    mismatch(&upload(component(GUESTS), &key).send().await, &first);
    let mut longer = component("charge_once.wasm");
    // An empty custom section without a name: another component that does the same.
    longer.extend([0, 1, 0]);
    mismatch(&upload(longer, &key).send().await, &first);
    mismatch(&upload(b"no component".to_vec(), &key).send().await, &first);
    assert_eq!(whole_list(&api.acme.get("/v1/modules").await).len(), 1);
}

/// R-K13, R-K14: whatever the route, there is one word for it.
#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_change_tells_another_request_from_a_repeat() {
    let api = noops().await;
    let (admin, key) = (api.admin().await, fresh_key());
    let run = api.start("noop", json!(1)).await;
    let module = api.upload(GUESTS).await;
    let cancel = format!("/v1/runs/{run}/cancel");
    let limits = "/v1/tenants/acme/limits";
    for (one, other, status) in [
        (Ask::put(&api.acme, "/v1/secrets/a", &json!({ "value": "x" })), json!({ "value": "y" }), 204),
        (Ask::post(&api.acme, &cancel, &json!({ "reason": "x" })), json!({ "reason": "y" }), 200),
        (
            Ask::put(&api.acme, "/v1/activities/print", &json!({ "module": module })),
            json!({ "module": module, "policy": {} }),
            201,
        ),
        (Ask::put(&admin, limits, &json!({ "max_running": 5 })), json!({ "max_running": 6 }), 200),
        (Ask::post(&admin, "/v1/tenants", &json!({ "tenant": "one" })), json!({ "tenant": "two" }), 201),
    ] {
        let first = one.clone().key(&key).send().await;
        done(&first, status);
        let answer = one.clone().raw(JSON, other.to_string()).key(&key).send().await;
        answer.refused(409, "idempotency_key_mismatch");
        replays(&one.key(&key).send().await, &first);
    }
    assert_eq!(api.run(&run).await["cancel_reason"], "x");
    assert_eq!(admin.get(limits).await.expect(200)["max_running"], 5);
    assert_eq!(api.acme.get("/v1/activities/print").await.expect(200)["versions"].as_array().unwrap().len(), 1);
}

/// Bodies that are no JSON of a start.
fn malformed() -> [Vec<u8>; 8] {
    [
        b"".to_vec(),
        b"{".to_vec(),
        b"{\"input\":1".to_vec(),
        b"{\"input\":1}}".to_vec(),
        b"{\"input\":1,}".to_vec(),
        b"\xff\xfe".to_vec(),
        b"[]".to_vec(),
        b"input=1".to_vec(),
    ]
}

/// R-K13, R-C16, R-Z05: a body that cannot be read is not the one that was sent before, on whichever node and whatever
/// the first one said of the run's name.
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_body_under_a_known_key_is_another_request() {
    let api = noops().await;
    let other = another_node(&api, config()).await;
    for body in [json!({ "input": 1 }), json!({ "input": 1, "run_name": "order-1" })] {
        let key = fresh_key();
        let first = twice(&Ask::start(&api.acme, &body).key(&key), 201).await;
        for body in malformed() {
            let again = Ask::new(&api.acme, Method::POST, NOOP).raw(JSON, body).key(&key);
            mismatch(&again.send().await, &first);
            mismatch(&again.by(&other).send().await, &first);
        }
    }
    assert_eq!(runs(&api).await.len(), 2);
}

/// R-C17: under a key that nobody knows it is refused as without one.
#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_body_under_a_fresh_key_is_refused_in_the_same_words() {
    let api = noops().await;
    for body in malformed() {
        let bare = Ask::new(&api.acme, Method::POST, NOOP).raw(JSON, body);
        let refused = bare.send().await.refused(400, "validation_error");
        let key = fresh_key();
        for _ in 0..2 {
            assert_eq!(bare.clone().key(&key).send().await.refused(400, "validation_error"), refused);
            assert_eq!(bare.clone().key(&key).lenient().send().await.refused(400, "validation_error"), refused);
        }
        done(&Ask::start(&api.acme, &json!({})).key(&key).send().await, 201);
    }
}
