//! Messages and files of an activity under the fake context.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use deedbox_guest::http::{Identity, Source};
use deedbox_guest::prelude::*;
use deedbox_guest::testing::FakeContext;
use deedbox_guest::{FailureKind, files, messaging};

const RUN: &str = "0190b1c2-0000-7000-8000-000000000001";

fn fake() -> FakeContext {
    FakeContext::for_run(RUN).unwrap()
}

/// Announces an order, and writes it down.
#[activity]
fn announce(ctx: &Context, order: String) -> Result<u64, Failure> {
    let message = ctx.messages().publish("orders.paid").business_effect("order-paid", &order);
    let published = message.json(&json!({ "order": &order })).send()?;
    ctx.files().write(format!("exports/{order}.txt"), order.as_str()).effect("export").send()?;
    Ok(published.sequence)
}

/// R-D08, R-D13.
#[test]
fn a_message_and_a_file_reach_the_host_as_they_were_written() {
    let ctx = fake();
    assert_eq!(announce(&ctx, "42".to_owned()).unwrap(), 1);
    let message = &ctx.sent_messages()[0];
    assert_eq!((message.subject.as_str(), message.json()), ("orders.paid", json!({ "order": "42" })));
    assert_eq!(message.headers, [("Content-Type".to_owned(), "application/json".to_owned())]);
    assert!(matches!(&message.identity, Identity::Business(key) if key.operation == "order-paid" && key.key == "42"));
    let file = &ctx.written_files()[0];
    assert_eq!((file.path.as_str(), file.bytes.as_slice()), ("exports/42.txt", &b"42"[..]));
    assert_eq!(file.identity, Identity::Named("export".to_owned()));
}

#[test]
fn a_message_may_have_headers_a_choice_and_no_payload() {
    let ctx = fake();
    let message = ctx.messages().publish("a").header("Content-Type", "text/plain").on_unknown(OnUnknown::AtMostOnce);
    let published = message.send().unwrap();
    assert_eq!((published.source, published.duplicate), (Source::Sent, false));
    let sent = &ctx.sent_messages()[0];
    assert_eq!((sent.payload.len(), sent.on_unknown), (0, OnUnknown::AtMostOnce));
    assert_eq!(sent.identity, Identity::Positional);
}

#[test]
fn a_payload_that_cannot_be_written_is_never_published() {
    let ctx = fake();
    let bad: std::collections::BTreeMap<[u8; 1], u8> = [([1], 1)].into();
    assert_eq!(ctx.messages().publish("a").json(&bad).send().unwrap_err().code(), "invalid-request");
    assert!(ctx.sent_messages().is_empty());
}

/// R-D13.
#[test]
fn an_append_is_refused_with_advice() {
    let ctx = fake();
    let error = ctx.files().append("exports/log", b"line").unwrap_err();
    assert_eq!(error.code(), "denied");
    assert!(error.to_string().contains("idempotency-key"), "{error}");
    assert!(ctx.written_files().is_empty());
}

#[test]
fn errors_become_failures_of_the_right_kind() {
    use messaging::Error;
    let text = || "why".to_owned();
    for (error, kind) in [
        (Error::InFlight, FailureKind::Retryable),
        (Error::Unreachable(text()), FailureKind::Retryable),
        (Error::TimedOut, FailureKind::Retryable),
        (Error::ConnectionLost(text()), FailureKind::Retryable),
        (Error::Refused(text()), FailureKind::Retryable),
        (Error::Denied(text()), FailureKind::Permanent),
        (Error::EffectMismatch(text()), FailureKind::Permanent),
        (Error::OutcomeUnknown(text()), FailureKind::Permanent),
        (Error::InvalidRequest(text()), FailureKind::Permanent),
    ] {
        let ctx = fake();
        ctx.refuse_message(error.clone());
        let failure = announce(&ctx, "42".to_owned()).unwrap_err();
        assert_eq!((failure.code(), failure.kind()), (error.code(), kind));
    }
    for (error, kind) in [
        (files::Error::InFlight, FailureKind::Retryable),
        (files::Error::Failed(text()), FailureKind::Retryable),
        (files::Error::Denied(text()), FailureKind::Permanent),
        (files::Error::EffectMismatch(text()), FailureKind::Permanent),
        (files::Error::InvalidRequest(text()), FailureKind::Permanent),
    ] {
        let ctx = fake();
        ctx.refuse_write(error.clone());
        let failure = announce(&ctx, "42".to_owned()).unwrap_err();
        assert_eq!((failure.code(), failure.kind()), (error.code(), kind));
    }
}
