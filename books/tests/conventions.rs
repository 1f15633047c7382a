//! What each kind of provider answers when a key comes again, with the same request, with another one, and too early.
//! It must never trust an answer without looking into the books.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::{LONG, Running, Seen};
use deedbox_books::{Behaviour, Convention, KINDS};
use serde_json::{Value, json};

const KEY: &str = "0192f0c1-2345-8abc-9def-0123456789ab";

/// A kind of provider and how a request with the key looks there; `{}` in the path and body stands for the key.
struct Kind {
    convention: fn() -> Convention,
    path: &'static str,
    headers: &'static [(&'static str, &'static str)],
    /// Of the first request, and of another one.
    bodies: [&'static str; 2],
}

impl Kind {
    const fn header(convention: fn() -> Convention, header: &'static [(&'static str, &'static str)]) -> Self {
        Self { convention, path: "/v1/charges", headers: header, bodies: [r#"{"a":1}"#, r#"{"a":2}"#] }
    }

    const fn body(convention: fn() -> Convention, bodies: [&'static str; 2]) -> Self {
        Self { convention, path: "/v1/charges", headers: &[], bodies }
    }

    async fn send(&self, provider: &Running, body: usize) -> Seen {
        let (path, body) = (self.path.replace("{}", KEY), self.bodies[body].replace("{}", KEY));
        provider.call("POST", &path, self.headers, &body).await
    }

    async fn started(&self) -> (tempfile::TempDir, Running) {
        let dir = tempfile::tempdir().unwrap();
        let provider = Running::with(dir.path(), (self.convention)()).await;
        (dir, provider)
    }
}

const STRIPE: Kind = Kind::header(Convention::stripe, &[("Idempotency-Key", KEY)]);
const FULLSTORY: Kind = Kind::header(Convention::fullstory, &[("Idempotency-Key", KEY)]);
const GOCARDLESS: Kind = Kind::header(Convention::gocardless, &[("Idempotency-Key", KEY)]);
const INCREASE: Kind = Kind::header(Convention::increase, &[("Idempotency-Key", KEY)]);
const RESEND: Kind = Kind::header(Convention::resend, &[("Idempotency-Key", KEY)]);
const QONTO: Kind = Kind::header(Convention::qonto, &[("X-Qonto-Idempotency-Key", KEY)]);
const SVIX: Kind = Kind::header(Convention::svix, &[("Idempotency-Key", KEY)]);
const PAYPAL: Kind = Kind::header(Convention::paypal, &[("PayPal-Request-Id", KEY)]);
const CHECKOUT: Kind = Kind::header(Convention::checkout, &[("Cko-Idempotency-Key", KEY)]);
const COLUMN: Kind = Kind::header(Convention::column, &[("Idempotency-Key", KEY)]);
const ZUORA: Kind = Kind::header(Convention::zuora, &[("Idempotency-Key", KEY)]);
const RAZORPAY: Kind = Kind::header(Convention::razorpay, &[("X-Payout-Idempotency", KEY)]);
const AZURE: Kind = Kind::header(
    Convention::azure,
    &[("Repeatability-Request-ID", KEY), ("Repeatability-First-Sent", "Sat, 31 Jan 2026 10:00:00 GMT")],
);
const SQS: Kind = Kind::body(
    Convention::sqs,
    [r#"{"MessageDeduplicationId":"{}","a":1}"#, r#"{"MessageDeduplicationId":"{}","a":2}"#],
);
const SNS: Kind = Kind {
    headers: &[("Content-Type", "application/x-www-form-urlencoded")],
    ..Kind::body(Convention::sns, ["Message=a&MessageDeduplicationId={}", "Message=b&MessageDeduplicationId={}"])
};
const DYNAMODB: Kind =
    Kind::body(Convention::dynamodb, [r#"{"ClientRequestToken":"{}"}"#, r#"{"ClientRequestToken":"{}","a":2}"#]);
const SQUARE: Kind =
    Kind::body(Convention::square, [r#"{"idempotency_key":"{}"}"#, r#"{"idempotency_key":"{}","a":2}"#]);
const PLAID: Kind = Kind::body(Convention::plaid, [r#"{"idempotency_key":"{}"}"#, r#"{"idempotency_key":"{}","a":2}"#]);
const CLOUD_TASKS: Kind = Kind::body(
    Convention::cloud_tasks,
    [r#"{"task":{"name":"projects/p/tasks/{}"}}"#, r#"{"task":{"name":"projects/p/tasks/{}","a":2}}"#],
);
const COMPUTE: Kind = Kind {
    path: "/compute/v1/instances?requestId={}",
    ..Kind::body(Convention::google_compute, [r#"{"a":1}"#, r#"{"a":2}"#])
};
const SHOPIFY: Kind = Kind::body(
    Convention::shopify,
    [
        r#"{"query":"mutation { adjust(by: 1) @idempotent(key: \"{}\") { id } }"}"#,
        r#"{"query":"mutation { adjust(by: 2) @idempotent(key: \"{}\") { id } }"}"#,
    ],
);

/// What must be seen: a status, and values at pointers into the body.
type Expected = (u16, &'static [(&'static str, &'static str)]);

fn check(kind: &str, seen: &Seen, (status, members): &Expected) {
    assert_eq!(seen.status, *status, "{kind}: {seen:?}");
    for (pointer, value) in *members {
        assert_eq!(seen.json().pointer(pointer), Some(&Value::from(*value)), "{kind}: {pointer} of {seen:?}");
    }
}

/// The first answer, byte for byte.
const REPLAY: Expected = (0, &[]);

#[tokio::test]
async fn a_repeat_applies_nothing_and_is_answered_as_the_convention_says() {
    const GOCARDLESS_CONFLICT: Expected = (
        409,
        &[
            ("/error/reason", "idempotent_creation_conflict"),
            ("/error/links/conflicting_resource_id", "PM1"),
            ("/error/errors/0/links/conflicting_resource_id", "PM1"),
        ],
    );
    let kinds: [(&str, Kind, u16, Expected); 21] = [
        ("stripe", STRIPE, 201, REPLAY),
        ("fullstory", FULLSTORY, 201, REPLAY),
        ("gocardless", GOCARDLESS, 201, GOCARDLESS_CONFLICT),
        ("increase", INCREASE, 200, REPLAY),
        ("resend", RESEND, 200, REPLAY),
        ("qonto", QONTO, 201, REPLAY),
        ("svix", SVIX, 201, REPLAY),
        ("paypal", PAYPAL, 201, (200, &[("/id", "ORDER-1"), ("/status", "APPROVED")])),
        ("checkout", CHECKOUT, 201, REPLAY),
        ("column", COLUMN, 201, REPLAY),
        ("zuora", ZUORA, 201, REPLAY),
        ("razorpay", RAZORPAY, 200, (200, &[("/id", "pout_1"), ("/status", "processed")])),
        ("azure", AZURE, 201, REPLAY),
        ("sqs", SQS, 200, REPLAY),
        ("sns", SNS, 200, REPLAY),
        ("dynamodb", DYNAMODB, 200, REPLAY),
        ("square", SQUARE, 201, REPLAY),
        ("plaid", PLAID, 200, REPLAY),
        ("cloud_tasks", CLOUD_TASKS, 200, (409, &[("/error/status", "ALREADY_EXISTS")])),
        ("google_compute", COMPUTE, 200, REPLAY),
        ("shopify", SHOPIFY, 200, REPLAY),
    ];
    for (name, kind, status, expected) in kinds {
        let (_dir, provider) = kind.started().await;
        let first = kind.send(&provider, 0).await;
        assert_eq!(first.status, status, "{name}: {first:?}");
        let again = kind.send(&provider, 0).await;
        if expected == REPLAY {
            assert_eq!((again.status, &again.body), (first.status, &first.body), "{name}");
        } else {
            check(name, &again, &expected);
        }
        let applied = provider.books.applied().await.unwrap();
        assert_eq!(applied.len(), 1, "{name}");
        assert!(applied[0].key.as_ref().unwrap().ends_with(KEY), "{name}");
    }
}

#[tokio::test]
async fn another_request_under_the_key_applies_nothing_and_is_answered_as_the_convention_says() {
    let kinds: [(&str, Kind, Expected); 16] = [
        ("stripe", STRIPE, (400, &[("/error/type", "idempotency_error")])),
        ("fullstory", FULLSTORY, (409, &[("/code", "idempotency_key_conflict")])),
        ("gocardless", GOCARDLESS, (409, &[("/error/links/conflicting_resource_id", "PM1")])),
        ("increase", INCREASE, (409, &[("/type", "idempotency_key_already_used_error"), ("/resource_id", "object_1")])),
        ("resend", RESEND, (409, &[("/name", "invalid_idempotent_request")])),
        ("qonto", QONTO, REPLAY),
        ("svix", SVIX, REPLAY),
        ("paypal", PAYPAL, (422, &[("/details/0/issue", "PAYPAL_REQUEST_ID_PREVIOUSLY_USED")])),
        ("zuora", ZUORA, (422, &[])),
        ("sqs", SQS, REPLAY),
        (
            "dynamodb",
            DYNAMODB,
            (400, &[("/__type", "com.amazonaws.dynamodb.v20120810#IdempotentParameterMismatchException")]),
        ),
        ("square", SQUARE, (400, &[("/errors/0/code", "IDEMPOTENCY_KEY_REUSED")])),
        ("plaid", PLAID, REPLAY),
        ("cloud_tasks", CLOUD_TASKS, (409, &[("/error/status", "ALREADY_EXISTS")])),
        ("google_compute", COMPUTE, REPLAY),
        ("shopify", SHOPIFY, (200, &[("/data/adjust/userErrors/0/code", "IDEMPOTENCY_KEY_PARAMETER_MISMATCH")])),
    ];
    for (name, kind, expected) in kinds {
        let (_dir, provider) = kind.started().await;
        let first = kind.send(&provider, 0).await;
        let other = kind.send(&provider, 1).await;
        if expected == REPLAY {
            assert_eq!((other.status, &other.body), (first.status, &first.body), "{name}");
        } else {
            check(name, &other, &expected);
        }
        assert_eq!(provider.applied().await, 1, "{name}");
    }
}

#[tokio::test]
async fn a_key_in_flight_is_answered_as_the_convention_says_scripted_or_real() {
    let kinds: [(&str, Kind, Expected); 6] = [
        ("stripe", STRIPE, (409, &[("/error/code", "idempotency_key_in_use")])),
        ("resend", RESEND, (409, &[("/name", "concurrent_idempotent_requests")])),
        ("gocardless", GOCARDLESS, (409, &[("/error/reason", "idempotent_creation_conflict")])),
        ("zuora", ZUORA, (409, &[])),
        (
            "dynamodb",
            DYNAMODB,
            (400, &[("/__type", "com.amazonaws.dynamodb.v20120810#TransactionInProgressException")]),
        ),
        ("shopify", SHOPIFY, (200, &[("/data/adjust/userErrors/0/code", "IDEMPOTENCY_CONCURRENT_REQUEST")])),
    ];
    for (name, kind, expected) in kinds {
        let (_dir, provider) = kind.started().await;
        provider.books.script(&[Behaviour::InFlight, Behaviour::InFlight, Behaviour::HoldAfterApply]).await.unwrap();
        check(name, &kind.send(&provider, 0).await, &expected);
        check(name, &kind.send(&provider, 0).await, &expected);
        assert_eq!(provider.applied().await, 0, "{name}");
        let (first, ()) = tokio::join!(kind.send(&provider, 0), async {
            provider.books.wait_for_applied(1, LONG).await.unwrap();
            check(name, &kind.send(&provider, 0).await, &expected);
            provider.books.release().await.unwrap();
        });
        assert!((200..300).contains(&first.status), "{name}: {first:?}");
        assert_eq!(provider.applied().await, 1, "{name}");
    }
}

#[tokio::test]
async fn where_the_convention_waits_a_second_request_gets_the_first_ones_answer() {
    for kind in [SVIX, SQS, COMPUTE] {
        let (_dir, provider) = kind.started().await;
        provider.books.script(&[Behaviour::HoldAfterApply]).await.unwrap();
        let (first, second, ()) = tokio::join!(
            kind.send(&provider, 0),
            async {
                provider.books.wait_for_applied(1, LONG).await.unwrap();
                kind.send(&provider, 0).await
            },
            async {
                provider.books.wait_for_arrivals(2, LONG).await.unwrap();
                provider.books.release().await.unwrap();
            }
        );
        assert_eq!((second.status, &second.body), (first.status, &first.body));
        assert_eq!(provider.applied().await, 1);
    }
}

#[tokio::test]
async fn a_wait_is_bounded_and_a_waiting_request_applies_when_the_first_came_to_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let then = deedbox_books::Template::new(423, json!({"busy": true}));
    let convention =
        |ms| Convention { in_flight: deedbox_books::InFlight::Wait { ms, then: then.clone() }, ..Convention::svix() };
    let provider = Running::with(dir.path(), convention(30)).await;
    provider.books.script(&[Behaviour::HoldBeforeApply]).await.unwrap();
    let (first, second) = tokio::join!(provider.post("/v1/charges", "k"), async {
        provider.books.wait_for_arrivals(1, LONG).await.unwrap();
        let second = provider.post("/v1/charges", "k").await;
        provider.books.release().await.unwrap();
        second
    });
    assert_eq!((first.status, second.status, second.json()), (201, 423, json!({"busy": true})));
    provider.stop().await;

    let provider = Running::with(dir.path(), convention(20_000)).await;
    provider.books.script(&[Behaviour::HoldBeforeApply]).await.unwrap();
    let held = common::request("POST", "/v1/charges", "l", common::BODY);
    let held = common::send(provider.books.address, &held).await;
    provider.books.wait_for_arrivals(3, LONG).await.unwrap();
    let (second, ()) = tokio::join!(provider.post("/v1/charges", "l"), async {
        provider.books.wait_for_arrivals(4, LONG).await.unwrap();
        drop(held);
    });
    assert_eq!((second.status, provider.applied().await), (201, 2));
}

#[tokio::test]
async fn replays_are_marked_only_where_the_provider_marks_them() {
    for (kind, marker) in [(STRIPE, Some("true")), (INCREASE, Some("true")), (RESEND, None), (QONTO, None), (SQS, None)]
    {
        let (_dir, provider) = kind.started().await;
        assert_eq!(kind.send(&provider, 0).await.header("idempotent-replayed"), None);
        assert_eq!(kind.send(&provider, 0).await.header("idempotent-replayed"), marker);
    }
}

#[tokio::test]
async fn azure_wants_both_headers_and_the_same_ones_on_a_repeat() {
    let (_dir, provider) = AZURE.started().await;
    let first = AZURE.send(&provider, 0).await;
    let again = AZURE.send(&provider, 0).await;
    assert_eq!(
        (first.header("repeatability-result"), again.header("repeatability-result")),
        (Some("accepted"), Some("accepted"))
    );
    let later = [AZURE.headers[0], ("Repeatability-First-Sent", "Sat, 31 Jan 2026 10:00:01 GMT")];
    for (headers, status) in [(&later[..], 412), (&AZURE.headers[..1], 400)] {
        let seen = provider.call("POST", AZURE.path, headers, AZURE.bodies[0]).await;
        assert_eq!((seen.status, seen.header("repeatability-result")), (status, Some("rejected")));
    }
    assert_eq!(provider.applied().await, 1);
}

#[tokio::test]
async fn stated_lengths_and_characters_are_checked() {
    let header = |name: &'static str, key: &str| (vec![(name, key.to_owned())], "/x".to_owned(), "{}".to_owned());
    let body = |body: String| (Vec::new(), "/x".to_owned(), body);
    let long = |length| "k".repeat(length);
    let zero = "00000000-0000-0000-0000-000000000000";
    for (convention, (headers, path, body)) in [
        (Convention::stripe(), header("Idempotency-Key", &long(256))),
        (Convention::increase(), header("Idempotency-Key", &long(201))),
        (Convention::resend(), header("Idempotency-Key", "")),
        (Convention::paypal(), header("PayPal-Request-Id", &long(109))),
        (Convention::razorpay(), header("X-Payout-Idempotency", "a/bcd")),
        (Convention::razorpay(), header("X-Other", "abcd")),
        (Convention::qonto(), header("X-Qonto-Idempotency-Key", "k")),
        (Convention::square(), body(json!({"idempotency_key": long(46)}).to_string())),
        (Convention::plaid(), body(json!({"idempotency_key": long(51)}).to_string())),
        (Convention::dynamodb(), body(json!({"ClientRequestToken": long(37)}).to_string())),
        (Convention::sqs(), body(json!({"MessageDeduplicationId": "a b"}).to_string())),
        (Convention::cloud_tasks(), body(json!({"task": {"name": "tasks/a.b"}}).to_string())),
        (Convention::google_calendar(), body(json!({"id": KEY}).to_string())),
        (Convention::google_compute(), (Vec::new(), format!("/x?requestId={zero}"), String::new())),
        (Convention::google_compute(), (Vec::new(), "/x?requestId=k".to_owned(), String::new())),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let provider = Running::with(dir.path(), convention).await;
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let seen = provider.call("POST", &path, &headers, &body).await;
        assert_eq!((seen.status, provider.applied().await), (400, 0), "{headers:?} {path} {body}");
    }
}

#[tokio::test]
async fn every_kind_is_usable_and_survives_its_json() {
    for (name, kind) in KINDS {
        let convention = kind();
        let text = serde_json::to_string(&convention).unwrap();
        assert_eq!(Convention::parse(&text).unwrap(), convention, "{name}");
    }
    assert_eq!(Convention::parse("{}").unwrap(), Convention::default());
}

#[tokio::test]
async fn a_convention_that_cannot_be_acted_on_is_refused_with_words() {
    for (text, words) in [
        (r#"{"carier": "none"}"#, "carier"),
        (r#"{"carrier": {"json": "key"}}"#, "pointer"),
        (r#"{"methods": ["GET"]}"#, "methods"),
        (r#"{"on_mismatch": "conflict"}"#, "conflict"),
        (r#"{"invalid": {"status": 100}}"#, "status"),
        (r#"{"on_repeat": {"replay": {"mark": 1}}}"#, "mark"),
        (r#"{"grammar": {"min_length": 2, "max_length": 1}}"#, "max_length"),
    ] {
        let refused = Convention::parse(text).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

#[tokio::test]
async fn the_program_refuses_a_convention_that_cannot_be_acted_on() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("convention.json");
    std::fs::write(&file, r#"{"methods": ["GET"]}"#).unwrap();
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_deedbox-books"));
    let ended = program.arg("--dir").arg(dir.path()).arg("--convention").arg(&file).output();
    let ended = tokio::time::timeout(LONG, ended).await.unwrap().unwrap();
    let words = String::from_utf8(ended.stderr).unwrap();
    assert!(!ended.status.success() && words.contains("methods are POST"), "{words}");
}
