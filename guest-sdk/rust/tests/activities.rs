//! An activity under the fake context: what it gets, what it may say, and what it sends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::time::Duration;

use deedbox_guest::http::{Error, Identity, Source};
use deedbox_guest::prelude::*;
use deedbox_guest::testing::{Answer, ConfigError, FakeContext};
use deedbox_guest::{FailureKind, KeyError};

const RUN: &str = "0190b1c2-0000-7000-8000-000000000001";
const URL: &str = "https://provider.test/v1/charges";

#[data]
struct Line {
    amount: u64,
}

#[data]
struct Order {
    order: String,
    #[serde(default)]
    lines: Vec<Line>,
}

/// Adds up an order.
///
/// And more about it.
#[activity]
fn add_up(_ctx: &Context, order: Order) -> Result<u64, Failure> {
    Ok(order.lines.iter().map(|line| line.amount).sum())
}

#[activity(name = "Renamed.1", summary = "has another name")]
fn charge(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let request = ctx.http().post(URL).business_effect("charge", &order.order);
    Ok(request.json(&order).send()?.error_for_status()?.json()?)
}

fn run(ctx: &FakeContext, name: &str, input: &str) -> Failure {
    ctx.run_named(name, input).unwrap_err()
}

fn fake() -> FakeContext {
    FakeContext::for_run(RUN).unwrap()
}

#[test]
fn an_activity_runs_by_its_name_on_json() {
    let output = fake().run_named("add-up", r#"{"order": "42", "lines": [{"amount": 1}, {"amount": 2}]}"#);
    assert_eq!(output.unwrap(), "3");
}

#[test]
fn an_input_that_does_not_fit_names_the_place() {
    let ctx = fake();
    let cases = [
        (r#"{"order": "42", "lines": [{"amount": 1}, {"amount": "x"}]}"#, "input.lines[1].amount: invalid type"),
        (r#"{"lines": []}"#, "missing field `order`"),
        (r#"{"order": "42"} trailing"#, "input: trailing characters"),
        ("", "input: EOF"),
    ];
    for (input, expected) in cases {
        let failure = run(&ctx, "add-up", input);
        assert_eq!((failure.code(), failure.kind()), ("invalid-input", FailureKind::Permanent));
        assert!(failure.message().contains(expected), "{input}: {}", failure.message());
    }
}

#[test]
fn an_unknown_name_is_a_permanent_failure_that_lists_the_known() {
    let failure = run(&fake(), "nobody", "null");
    assert_eq!((failure.code(), failure.kind()), ("unknown-activity", FailureKind::Permanent));
    assert!(failure.message().contains("Renamed.1, add-up"), "{}", failure.message());
}

#[test]
fn names_summaries_and_schemas_come_from_the_function() {
    use deedbox_guest::__private::{Registration, inventory};

    let all: Vec<_> = inventory::iter::<Registration>.into_iter().collect();
    let add_up = all.iter().find(|it| it.name == "add-up").unwrap();
    assert_eq!(add_up.summary, "Adds up an order.");
    assert_eq!(all.iter().find(|it| it.name == "Renamed.1").unwrap().summary, "has another name");
    let schemas = (add_up.schemas)();
    let input: Value = deedbox_guest::serde_json::from_str(&schemas.input.unwrap()).unwrap();
    assert_eq!(input["required"], json!(["order"]));
    let output: Value = deedbox_guest::serde_json::from_str(&schemas.output.unwrap()).unwrap();
    assert_eq!(output["type"], "integer");
}

#[test]
fn a_request_reaches_the_host_as_it_was_written() {
    let ctx = fake();
    ctx.answer(Answer::json(&json!({ "id": "ch_1" })).replayed());
    let answer = ctx
        .http()
        .request("PROPFIND", URL)
        .header("Content-Type", "application/vnd.x+json")
        .json(&json!([1]))
        .timeout(Duration::from_micros(1500))
        .on_unknown(OnUnknown::AtMostOnce)
        .effect("first")
        .send()
        .unwrap();
    assert_eq!((answer.source(), answer.header("CONTENT-TYPE")), (Source::Replayed, Some("application/json")));
    let sent = &ctx.sent()[0];
    assert_eq!((sent.method.as_str(), sent.url.as_str()), ("PROPFIND", URL));
    assert_eq!(sent.headers, [("Content-Type".to_owned(), b"application/vnd.x+json".to_vec())]);
    assert_eq!((sent.body.as_slice(), sent.timeout), (&b"[1]"[..], Some(Duration::from_millis(2))));
    assert_eq!((&sent.identity, sent.on_unknown), (&Identity::Named("first".to_owned()), OnUnknown::AtMostOnce));
}

#[test]
fn a_business_effect_carries_operation_and_key() {
    let ctx = fake();
    ctx.answer(Answer::json(&json!({ "id": "ch_1" })));
    assert_eq!(ctx.run_named("Renamed.1", r#"{"order": "42"}"#).unwrap(), r#"{"id":"ch_1"}"#);
    let sent = &ctx.sent()[0];
    assert_eq!(sent.json(), json!({ "order": "42", "lines": [] }));
    match &sent.identity {
        Identity::Business(key) => {
            assert_eq!((key.operation.as_str(), key.key.as_str()), ("charge", "42"))
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn errors_become_failures_of_the_right_kind() {
    let text = || "why".to_owned();
    let retryable = [Error::InFlight, Error::Unreachable(text()), Error::TimedOut, Error::ConnectionLost(text())];
    let permanent = [
        Error::Denied(text()),
        Error::EffectMismatch(text()),
        Error::OutcomeUnknown(text()),
        Error::InvalidRequest(text()),
        Error::ResponseTooLarge(1),
    ];
    for (errors, kind) in [(&retryable[..], FailureKind::Retryable), (&permanent[..], FailureKind::Permanent)] {
        for error in errors {
            let ctx = fake();
            ctx.answer(Answer::error(error.clone()));
            let failure = run(&ctx, "Renamed.1", r#"{"order": "42"}"#);
            assert_eq!((failure.code(), failure.kind()), (error.code(), kind));
        }
    }
}

#[test]
fn a_status_becomes_a_failure_only_when_asked() {
    for (status, kind) in [(503, FailureKind::Retryable), (429, FailureKind::Retryable), (402, FailureKind::Permanent)]
    {
        let ctx = fake();
        ctx.answer(Answer::status(status));
        let failure = run(&ctx, "Renamed.1", r#"{"order": "42"}"#);
        assert_eq!((failure.code(), failure.kind()), ("http-status", kind));
        assert_eq!(failure.details_json(), Some(format!(r#"{{"status":{status}}}"#).as_str()));
    }
    let ctx = fake();
    ctx.answer(Answer::status(402));
    assert_eq!(ctx.http().get(URL).send().unwrap().status(), 402);
}

#[test]
fn a_body_that_was_not_kept_is_an_error_and_never_empty() {
    let ctx = fake();
    ctx.answer(Answer::status(200).without_body());
    let answer = ctx.http().post(URL).send().unwrap();
    assert_eq!(answer.bytes(), Err(Error::BodyNotKept));
    assert_eq!(answer.text(), Err(Error::BodyNotKept));
    assert_eq!(answer.json::<Value>(), Err(Error::BodyNotKept));
}

#[test]
fn a_body_that_cannot_be_written_is_never_sent() {
    let ctx = fake();
    let bad: std::collections::BTreeMap<[u8; 1], u8> = [([1], 1)].into();
    let error = ctx.http().post(URL).json(&bad).send().unwrap_err();
    assert_eq!(error.code(), "invalid-request");
    assert!(ctx.sent().is_empty());
}

#[test]
fn keys_are_the_hosts_and_the_same_in_every_attempt() {
    let ctx = fake();
    let (run_key, email) = (ctx.idempotency_key(), ctx.subkey("email").unwrap());
    ctx.set_attempt(2);
    assert_eq!((ctx.idempotency_key(), ctx.subkey("email").unwrap()), (run_key.clone(), email.clone()));
    // Computed apart from this code, by the rules of the contract.
    assert_eq!(run_key.as_str(), "47a1d591-cf63-80d1-adb0-be313336025e");
    assert_eq!(email.as_str(), "6aada6a9-665d-8c7d-b588-85d5c2f3bfa0");
    assert_ne!(email, ctx.subkey("Email").unwrap());
    assert_ne!(run_key, FakeContext::for_run(&RUN.replace("01", "02")).unwrap().idempotency_key());
    assert_eq!(ctx.subkey(""), Err(KeyError::InvalidName));
    assert_eq!(ctx.subkey(&"x".repeat(257)), Err(KeyError::InvalidName));
    assert_eq!(Failure::from(KeyError::InvalidName).code(), "invalid-name");
}

#[test]
fn a_context_without_a_run_id_is_refused() {
    assert_eq!(FakeContext::for_run("").unwrap_err(), ConfigError::NoRunId);
    for run_id in ["42", "0190B1C2-0000-7000-8000-000000000001", "0190b1c20000700080000000000000001"] {
        assert_eq!(FakeContext::for_run(run_id).unwrap_err(), ConfigError::InvalidRunId(run_id.to_owned()));
    }
}

#[test]
fn a_signal_is_read_once_and_given_again_in_every_attempt() {
    let ctx = FakeContext::for_run(RUN).unwrap();
    assert_eq!(ctx.signals().poll("go").unwrap(), None);
    ctx.deliver("go", &json!({ "n": 1 }));
    ctx.deliver("other", "x");
    let given = ctx.signals().wait("go").unwrap();
    assert_eq!((given.json::<Value>().unwrap(), given.sequence(), given.name()), (json!({ "n": 1 }), 1, "go"));
    assert_eq!(ctx.signals().wait_for("go", Duration::from_secs(1)).unwrap(), None);
    ctx.set_attempt(2);
    ctx.deliver("go", &2);
    assert_eq!(ctx.signals().poll("go").unwrap(), None, "as the attempt before");
    assert_eq!(ctx.signals().wait("go").unwrap(), given);
    assert_eq!(ctx.signals().wait_for("go", Duration::from_secs(1)).unwrap(), None);
    assert_eq!(ctx.signals().poll("go").unwrap().unwrap().payload(), "2");
    assert_eq!(ctx.signals().poll("").unwrap_err().code(), "signal-invalid-name");
}

#[test]
fn a_checkpoint_outlives_the_attempt_and_has_a_limit() {
    let ctx = fake();
    assert_eq!(ctx.checkpoint().load::<Vec<u8>>().unwrap(), None);
    ctx.checkpoint().save(&vec![1, 2]).unwrap();
    ctx.set_attempt(2);
    assert_eq!(ctx.checkpoint().load::<Vec<u8>>().unwrap(), Some(vec![1, 2]));
    assert_eq!(ctx.checkpoint().load_bytes().unwrap(), b"[1,2]");
    assert_eq!(ctx.checkpoint().load::<String>().unwrap_err().code(), "checkpoint-format");
    assert_eq!(ctx.checkpoint().save_bytes(&[0; 65_537]).unwrap_err().code(), "checkpoint-too-large");
}

#[test]
fn the_run_is_known_and_can_be_asked_to_stop() {
    let ctx = fake();
    ctx.set_attempt(2);
    ctx.set_activity("charge-once");
    ctx.set_remaining(Duration::from_secs(5));
    let run = ctx.run();
    assert_eq!((run.run_id(), run.tenant(), run.activity()), (RUN, "test", "charge-once"));
    assert_eq!((run.attempt(), run.max_attempts(), run.remaining()), (2, 3, Duration::from_secs(5)));
    assert!(!ctx.cancelled());
    ctx.cancel();
    assert!(ctx.cancelled());
}
