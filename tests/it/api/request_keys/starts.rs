//! Starts under a key: where the key stands, what the answer says of it, and how it goes together with a run's name.

use super::super::client::assert_members;
use super::*;

const PLAIN: [&str; 5] = ["run_id", "state", "activity", "version", "created_at"];

/// What an answer says of the run and the key.
#[track_caller]
fn told(answer: &Answer, status: u16) -> (Value, Value) {
    let body = answer.expect(status);
    (body["started_fresh"].clone(), body["deduplicated"].clone())
}

/// R-C01, R-C02.
#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_under_a_key_says_so() {
    let api = noops().await;
    let first = twice(&Ask::start(&api.acme, &json!({ "input": 1 })).key(&fresh_key()), 201).await;
    assert_members(&first.json(), &[&PLAIN[..], &["started_fresh", "deduplicated"]].concat());
    assert_eq!(told(&first, 201), (json!(true), json!(false)));
}

/// R-C07.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_a_key_does_not_know_of_keys() {
    let api = noops().await;
    for prefer in [None, Some("handling=lenient")] {
        let ask = Ask::start(&api.acme, &json!({ "input": 1 }));
        let ask = prefer.map_or(ask.clone(), |prefer| ask.header("prefer", prefer));
        assert_members(&done(&ask.send().await, 201), &PLAIN);
    }
    let named = done(&Ask::start(&api.acme, &json!({ "run_name": "order-1" })).send().await, 201);
    assert_members(&named, &[&PLAIN[..], &["started_fresh"]].concat());
    let attached = Ask::start(&api.acme, &json!({ "run_name": "order-1", "reuse": "attach" })).send().await;
    assert_members(&done(&attached, 200), &[&PLAIN[..], &["started_fresh"]].concat());
    assert_eq!(records(&api).await, 0);
}

/// R-C04.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_may_stand_in_the_body_and_the_header_wins() {
    let api = noops().await;
    let (key, other) = (fresh_key(), fresh_key());
    let in_body = Ask::start(&api.acme, &json!({ "input": 1, "idempotency_key": key }));
    let first = twice(&in_body, 201).await;
    assert_eq!(told(&first, 201), (json!(true), json!(false)));
    // Wherever it stands, it is the same key, and the rest is the same request.
    replays(&in_body.clone().key(&key).send().await, &first);
    replays(&Ask::start(&api.acme, &json!({ "input": 1 })).key(&key).send().await, &first);
    let quoted = Ask::start(&api.acme, &json!({ "input": 1, "idempotency_key": format!("\"{key}\"") }));
    replays(&quoted.send().await, &first);

    let both = in_body.key(&other);
    let second = twice(&both, 201).await;
    assert_ne!(run_of(&second), run_of(&first));
    let third = fresh_key();
    let both = Ask::start(&api.acme, &json!({ "input": 1, "idempotency_key": third })).key(&other);
    replays(&both.send().await, &second);
    // The key that lost is as free as before.
    done(&both.without_key().send().await, 201);
    assert_eq!(runs(&api).await.len(), 3);
}

/// R-C04, R-C18, R-K07.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_the_body_keeps_to_the_grammar() {
    let api = noops().await;
    for wrong in ["", "short", "0123456789 0123456789ab", "0123456789:0123456789ab"] {
        let in_body = Ask::start(&api.acme, &json!({ "idempotency_key": wrong }));
        in_body.send().await.refused(400, "idempotency_key_invalid");
    }
    for wrong in [json!(7), json!(["0123456789-0123456789ab"]), json!({})] {
        let in_body = Ask::start(&api.acme, &json!({ "idempotency_key": wrong }));
        assert_eq!(in_body.send().await.status, 400);
    }
    for wrong in ["", "a b", &"a".repeat(256)] {
        let in_body = Ask::start(&api.acme, &json!({ "idempotency_key": wrong })).lenient();
        in_body.send().await.refused(400, "idempotency_key_invalid");
    }
    assert!(runs(&api).await.is_empty());
}

/// R-C15: nobody looks for a key in what cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_in_a_malformed_body_is_not_recognised() {
    let api = noops().await;
    let key = fresh_key();
    twice(&Ask::start(&api.acme, &json!({ "input": 1, "idempotency_key": key })), 201).await;
    let body = format!("{{\"input\": 1, \"idempotency_key\": \"{key}\"");
    for rest in ["", ",}", "}}", " \"x\"}"] {
        let broken = Ask::new(&api.acme, Method::POST, NOOP).raw(JSON, format!("{body}{rest}"));
        for ask in [broken.clone(), broken.lenient()] {
            let refused = ask.send().await;
            refused.refused(400, "validation_error");
            assert!(!is_replay(&refused));
        }
    }
    assert_eq!(runs(&api).await.len(), 1);
}

/// R-C03: whoever asks again is not told that his own run stands in the way.
#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_looked_at_before_the_name() {
    for reuse in ["reject", "reject_alive", "attach", "allow"] {
        let api = noops().await;
        let body = json!({ "run_name": "order-1", "reuse": reuse });
        let starting = Ask::start(&api.acme, &body).key(&fresh_key());
        let first = twice(&starting, 201).await;
        assert_eq!(told(&first, 201), (json!(true), json!(false)), "{reuse}");
        api.work().await;
        replays(&starting.send().await, &first);
        let lenient = starting.lenient().send().await;
        assert_eq!((told(&lenient, 200), run_of(&lenient)), ((json!(false), json!(true)), run_of(&first)), "{reuse}");
        assert_eq!(runs(&api).await.len(), 1, "{reuse}");
    }
}

/// R-C27.
#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_key_attaches_to_the_run_of_the_name() {
    let api = noops().await;
    let body = json!({ "run_name": "order-1", "reuse": "attach", "signal": { "name": "go" } });
    let run = run_of(&twice(&Ask::start(&api.acme, &body).key(&fresh_key()), 201).await);
    let attaching = Ask::start(&api.acme, &body).key(&fresh_key());
    let attached = twice(&attaching, 200).await;
    assert_eq!((told(&attached, 200), run_of(&attached)), ((json!(false), json!(false)), run.clone()));
    assert_eq!(attached.header("location"), format!("/v1/runs/{run}"));
    let signals = whole_list(&api.acme.get(&format!("/v1/runs/{run}/signals")).await);
    assert_eq!(signals.len(), 2, "each request brought its signal once");
    // Long after, the name is free, and yet this request was answered.
    api.work().await;
    replays(&attaching.send().await, &attached);
    assert_eq!(runs(&api).await, [run]);
}

/// R-C27: a name that is taken is told to a fresh key as to none.
#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_key_does_not_get_past_a_name_that_is_taken() {
    let api = noops().await;
    let body = json!({ "run_name": "order-1", "reuse": "reject" });
    twice(&Ask::start(&api.acme, &body).key(&fresh_key()), 201).await;
    let refused = Ask::start(&api.acme, &body).send().await.refused(409, "run_already_active");
    for prefer in ["handling=strict", "handling=lenient"] {
        let answer = Ask::start(&api.acme, &body).key(&fresh_key()).header("prefer", prefer).send().await;
        assert_eq!(answer.refused(409, "run_already_active"), refused);
    }
    assert_eq!(runs(&api).await.len(), 1);
}
