//! What a delivery becomes: a run whose input is what was delivered to the byte, or a signal.

use super::*;

/// Numbers, white space and order that a parser would not keep.
const EXACT: &str = r#"{ "n":9007199254740993,"f" : 1.0, "e":1E+2, "z":{"b":1 , "a":[ 1.50 ]}, "a":"\u00e4" }"#;

async fn send(api: &Api, hook: &str, id: &str, body: &str) -> Answer {
    github("s", id, body).to(&api.nobody(), &format!("acme.{hook}")).await
}

/// The snapshot of a run as text, where nothing was parsed.
async fn snapshot(api: &Api, run: &str) -> String {
    api.acme.get(&format!("/v1/runs/{run}")).await.text
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_s_input_is_the_body_to_the_byte() {
    let api = api("s").await;
    put(&api.acme, "whole", &starting(&json!({}))).await;
    put(&api.acme, "part", &starting(&json!({ "start": { "activity": "noop", "input": { "pointer": "/z" } } }))).await;
    put(&api.acme, "word", &starting(&json!({ "start": { "activity": "noop", "input": "body" } }))).await;
    for (hook, input) in [("whole", EXACT), ("part", r#"{"b":1 , "a":[ 1.50 ]}"#), ("word", EXACT)] {
        let run = accepted(&send(&api, hook, "1", &format!("\n{EXACT}\n")).await);
        let snapshot = snapshot(&api, &run).await;
        assert!(snapshot.contains(&format!("\"input\":{input},")), "{hook}: {snapshot}");
    }
    for body in ["7", "null", "\"x\"", "[]"] {
        let run = accepted(&send(&api, "whole", body, body).await);
        assert!(snapshot(&api, &run).await.contains(&format!("\"input\":{body},")), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_gets_its_name_and_labels_from_the_delivery() {
    let api = api("s").await;
    let start = json!({
        "activity": "noop", "reuse": "reject_alive", "run_name": { "template": "order-{/data/order}" },
        "labels": { "shop": { "pointer": "/data/shop" }, "event": { "header": "X-GitHub-Event" }, "by": { "value": "hook" } },
    });
    put(&api.acme, "hook", &starting(&json!({ "start": start }))).await;
    let body = r#"{"data": {"order": 9007199254740993, "shop": "b\u00e4r"}}"#;
    let run = accepted(&send(&api, "hook", "1", body).await);
    let there = api.run(&run).await;
    assert_eq!(there["run_name"], "order-9007199254740993");
    assert_eq!(there["labels"], json!({ "shop": "bär", "event": "push", "by": "hook" }));
    // Another delivery of the same order: nothing that its sender could do better.
    let declined = send(&api, "hook", "2", body).await;
    let expected = json!({ "accepted": false, "run_id": run, "reason": "run_already_active" });
    assert_eq!(declined.expect(202), expected);
    api.work().await;
    let again = send(&api, "hook", "2", body).await;
    assert_eq!((again.expect(202), is_replay(&again)), (expected, true), "an answer stands");
    assert_ne!(accepted(&send(&api, "hook", "3", body).await), run);
    for (id, body) in [("4", r#"{"data": {"order": 1}}"#), ("5", r#"{"data": {"order": 1, "shop": "a\nb"}}"#)] {
        let words = send(&api, "hook", id, body).await.message(422, "deedbox.hook_unmapped");
        assert!(words.starts_with("start.labels.shop: "), "{words}");
    }
    let long = format!(r#"{{"data": {{"order": "{}", "shop": "x"}}}}"#, "x".repeat(300));
    let words = send(&api, "hook", "6", &long).await.message(422, "deedbox.hook_unmapped");
    assert!(words.starts_with("start.run_name: "), "{words}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attaching_deliveries_share_a_run() {
    let api = api("s").await;
    let start = json!({ "activity": "noop", "reuse": "attach", "run_name": { "pointer": "/order" } });
    put(&api.acme, "hook", &starting(&json!({ "start": start }))).await;
    let run = accepted(&send(&api, "hook", "1", r#"{"order": "7"}"#).await);
    assert_eq!(accepted(&send(&api, "hook", "2", r#"{"order": "7"}"#).await), run);
    assert_ne!(accepted(&send(&api, "hook", "3", r#"{"order": "8"}"#).await), run);
    put(
        &api.acme,
        "strict",
        &starting(&json!({ "start": { "activity": "noop", "run_name": { "pointer": "/order" } } })),
    )
    .await;
    api.work().await;
    let declined = send(&api, "strict", "1", r#"{"order": "7"}"#).await.expect(202);
    assert_eq!(declined, json!({ "accepted": false, "run_id": run, "reason": "deedbox.run_name_taken" }));
}

/// A run that waits for two signals, and has the business id `order-7`.
async fn listener(api: &Api) -> String {
    api.deploy("listen", json!({})).await;
    let input = json!({ "asks": [{ "wait": { "name": "paid" } }, { "wait": { "name": "paid" } }] });
    let start = json!({ "input": input, "run_name": "order-7" });
    let run = api.acme.post("/v1/activities/listen/runs", &start).await.expect(201);
    run["run_id"].as_str().unwrap().to_owned()
}

/// R-E23, R-B01.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_signals_the_run_that_it_names() {
    let api = api("s").await;
    let run = listener(&api).await;
    let by_id = json!({ "run": { "pointer": "/meta/run" }, "name": { "pointer": "/type" } });
    put(&api.acme, "by-id", &signalling(by_id)).await;
    let named = json!({ "run_name": { "activity": "listen", "template": "order-{/meta/order}" } });
    let by_name = json!({ "run": named, "name": { "value": "paid" }, "payload": { "pointer": "/data" } });
    put(&api.acme, "by-name", &signalling(by_name)).await;
    let body = format!(r#"{{"meta": {{"run": "{run}", "order": 7}}, "type": "paid", "data": [ 1.0 ]}}"#);
    // The senders of two hooks may number alike.
    for hook in ["by-id", "by-name", "by-id", "by-name"] {
        assert_eq!(accepted(&send(&api, hook, "1", &body).await), run);
    }
    let signals = api.acme.get(&format!("/v1/runs/{run}/signals")).await;
    assert!(
        signals.text.contains(&format!("\"payload\":{body},")) && signals.text.contains("\"payload\":[ 1.0 ],"),
        "{signals:?}"
    );
    assert_eq!(whole_list(&signals).len(), 2);
    api.work().await;
    assert_eq!(api.ended(&run).await["output"][1], json!([1.0]));
    // A provider can do nothing about a run that has ended.
    for hook in ["by-id", "by-name"] {
        let declined = send(&api, hook, "2", &body).await.expect(202);
        assert_eq!(declined, json!({ "accepted": false, "run_id": run, "reason": "run_terminal" }));
    }
    assert_eq!(accepted(&send(&api, "by-id", "1", &body).await), run, "what was taken before stays taken");
}

/// The run may be about to be started: the sender comes again.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_a_run_that_is_not_there_is_taken_once_it_is() {
    let api = api("s").await;
    let named = json!({ "run_name": { "activity": "listen", "pointer": "/order" } });
    put(&api.acme, "by-name", &signalling(json!({ "run": named, "name": { "value": "paid" } }))).await;
    put(&api.acme, "by-id", &signalling(json!({ "run": { "pointer": "/run" }, "name": { "value": "paid" } }))).await;
    let body = r#"{"order": "order-7"}"#;
    let words = send(&api, "by-name", "1", body).await.message(422, "deedbox.hook_unmapped");
    assert!(words.starts_with("signal.run.run_name: "), "{words}");
    let run = listener(&api).await;
    assert_eq!(accepted(&send(&api, "by-name", "1", body).await), run);
    let no_run = super::super::no_run();
    for (id, named) in [("1", no_run.as_str()), ("2", "x"), ("3", "ORDER")] {
        let words =
            send(&api, "by-id", id, &json!({ "run": named }).to_string()).await.message(422, "deedbox.hook_unmapped");
        assert!(words.starts_with("signal.run: "), "{words}");
    }
}

/// F-K01.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_never_reaches_the_run_of_another_tenant() {
    let api = api("s").await;
    let run = listener(&api).await;
    let other = api.tenant("other").await;
    put_secret(&other, "key", "s").await;
    put(&other, "by-id", &signalling(json!({ "run": { "pointer": "/run" }, "name": { "value": "paid" } }))).await;
    let named = json!({ "run_name": { "activity": "listen", "pointer": "/order" } });
    put(&other, "by-name", &signalling(json!({ "run": named, "name": { "value": "paid" } }))).await;
    let body = json!({ "run": run, "order": "order-7" }).to_string();
    for hook in ["other.by-id", "other.by-name"] {
        github("s", "1", &body).to(&api.nobody(), hook).await.refused(422, "deedbox.hook_unmapped");
    }
    assert!(whole_list(&api.acme.get(&format!("/v1/runs/{run}/signals")).await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_no_run_could_take_is_refused_with_the_part_that_is_wrong() {
    let api = api("s").await;
    let run = listener(&api).await;
    put(&api.acme, "hook", &signalling(json!({ "run": { "pointer": "/run" }, "name": { "pointer": "/name" } }))).await;
    let large = "x".repeat(70_000);
    let deliveries = [
        ("1", json!({ "run": run, "name": "a b" }), "signal.name: "),
        ("2", json!({ "run": run }), "signal.name: "),
        ("3", json!({ "run": run, "name": "paid", "more": large }), "signal.payload: "),
    ];
    for (id, body, words) in deliveries {
        let said = send(&api, "hook", id, &body.to_string()).await.message(422, "deedbox.hook_unmapped");
        assert!(said.starts_with(words) && !said.contains("a b"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_not_wanted_does_nothing_and_is_answered_well() {
    let api = api("s").await;
    let when = json!([{ "pointer": "/type", "in": ["charge.succeeded", "charge.failed"] },
                      { "header": "x-github-event", "in": ["push"] }]);
    put(&api.acme, "hook", &starting(&json!({ "when": when }))).await;
    for body in [r#"{"type": "charge.updated"}"#, "{}", r#"{"type": null}"#] {
        let answer = send(&api, "hook", "1", body).await;
        assert_eq!(answer.expect(200), json!({ "accepted": false }), "{body}");
    }
    let wanted = github("s", "1", r#"{"type": "charge.failed"}"#);
    let ping = wanted.with("x-github-event", Some("ping")).to(&api.nobody(), "acme.hook").await;
    assert_eq!(ping.expect(200), json!({ "accepted": false }));
    assert!(runs(&api).await.is_empty() && deliveries(&api, "hook").await.is_empty());
    let taken = wanted.to(&api.nobody(), "acme.hook").await;
    accepted(&taken);
    assert!(!is_replay(&taken), "what was not wanted has not used up its id");
    let form = send(&api, "hook", "2", "payload=%7B%7D").await;
    assert!(form.message(422, "deedbox.hook_unmapped").contains("not JSON"));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert!(send(&api, "hook", "3", &deep).await.message(422, "deedbox.hook_unmapped").contains("too deeply"));
}
