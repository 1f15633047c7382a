//! Keys in every kind of carrier, and keys that are written wrongly. Each is sent as a client would, by hand.
//! It must never build a request with the code that reads it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::Running;
use deedbox_books::{Carrier, Charset, Convention, Grammar};
use serde_json::json;

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");

/// A request: path, headers, body.
type Sent = (String, Vec<(&'static str, String)>, String);

fn plain(path: &str, body: String) -> Sent {
    (path.to_owned(), Vec::new(), body)
}

/// A carrier, and how a request with a key looks there.
type Carried = (Carrier, fn(&str) -> Sent);

fn carriers() -> Vec<Carried> {
    let directive = || Carrier::GraphqlDirective { directive: "idempotent".into(), argument: "key".into() };
    vec![
        (Carrier::Header("X-Own-Key".into()), |key| ("/things".into(), vec![("x-own-key", key.into())], "{}".into())),
        (Carrier::Query("requestId".into()), |key| plain(&format!("/things?a=1&requestId={key}"), "{}".into())),
        (Carrier::Json("/meta/key".into()), |key| plain("/things", json!({"meta": {"key": key}}).to_string())),
        (Carrier::Form("Key".into()), |key| {
            ("/things".into(), vec![(FORM.0, FORM.1.into())], format!("A=1&Key={key}"))
        }),
        (directive(), |key| {
            let query =
                format!("mutation {{ make(text: \"@idempotent(key: 1)\") @idempotent(key: \"{key}\") {{ id }} }}");
            plain("/graphql", json!({ "query": query }).to_string())
        }),
        (directive(), |key| {
            let query = "mutation M($k: String!) { make @idempotent(key: $k) { id } }";
            plain("/graphql", json!({"query": query, "variables": {"k": key}}).to_string())
        }),
        (Carrier::GraphqlVariable("input.key".into()), |key| {
            let query = "mutation M($input: In!) { make(input: $input) { id } }";
            plain("/graphql", json!({"query": query, "variables": {"input": {"key": key}}}).to_string())
        }),
        (Carrier::Path(2), |key| plain(&format!("/v1/things/{key}"), "{}".into())),
    ]
}

async fn send(provider: &Running, (path, headers, body): Sent) -> common::Seen {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    provider.call("POST", &path, &headers, &body).await
}

#[tokio::test]
async fn a_key_is_found_in_every_carrier_and_applies_once() {
    for (carrier, request) in carriers() {
        let dir = tempfile::tempdir().unwrap();
        let provider =
            Running::with(dir.path(), Convention { carrier: carrier.clone(), ..Convention::default() }).await;
        let first = send(&provider, request("k-1")).await;
        let again = send(&provider, request("k-1")).await;
        let other = send(&provider, request("k-2")).await;
        assert_eq!((first.status, again.status, other.status), (201, 201, 201), "{carrier:?}");
        assert_eq!((first.header("idempotent-replayed"), again.header("idempotent-replayed")), (None, Some("true")));
        let keys: Vec<_> =
            provider.books.applied().await.unwrap().into_iter().map(|entry| entry.key.unwrap()).collect();
        assert_eq!(keys, ["k-1", "k-2"], "{carrier:?}");
        let arrivals = provider.books.arrivals().await.unwrap();
        assert_eq!(arrivals[1].key.as_deref(), Some("k-1"), "{carrier:?}");
    }
}

#[tokio::test]
async fn without_a_carrier_every_arrival_applies() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention { carrier: Carrier::None, ..Convention::default() }).await;
    provider.post("/v1/charges", "k").await;
    provider.post("/v1/charges", "k").await;
    let applied = provider.books.applied().await.unwrap();
    assert_eq!((applied.len(), &applied[0].key), (2, &None));
}

#[tokio::test]
async fn a_graphql_query_reads_and_uses_up_no_behaviour() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::shopify()).await;
    provider.books.script(&[deedbox_books::Behaviour::CutAfterApply]).await.unwrap();
    let query = json!({"query": "{ orders { id } }"}).to_string();
    assert_eq!(provider.call("POST", "/graphql", &[], &query).await.status, 404);
    assert_eq!(provider.applied().await, 0);
    let mutation = json!({"query": "mutation { make @idempotent(key: \"k\") { id } }"}).to_string();
    assert_eq!(provider.call("POST", "/graphql", &[], &mutation).await, common::Seen::NOTHING);
    assert_eq!(provider.applied().await, 1);
    assert_eq!(provider.call("POST", "/tables/t/rows", &[], "{}").await.status, 201);
    assert_eq!(provider.applied().await, 2);
}

#[tokio::test]
async fn only_the_named_methods_and_paths_take_part() {
    let dir = tempfile::tempdir().unwrap();
    let convention =
        Convention { methods: vec!["PATCH".into()], path_prefix: Some("/keyed/".into()), ..Convention::default() };
    let provider = Running::with(dir.path(), convention).await;
    let key = [("Idempotency-Key", "k")];
    for (method, path, applied) in
        [("POST", "/keyed/a", 2), ("PATCH", "/other/a", 4), ("PATCH", "/keyed/a", 5), ("PATCH", "/keyed/a", 5)]
    {
        provider.call(method, path, &key, "{}").await;
        if applied != 5 {
            provider.call(method, path, &key, "{}").await;
        }
        assert_eq!(provider.applied().await, applied, "{method} {path}");
    }
    let applied = provider.books.applied().await.unwrap();
    assert_eq!(applied.iter().filter(|entry| entry.key.is_some()).count(), 1);
}

#[tokio::test]
async fn a_key_that_breaks_the_grammar_is_refused_and_nothing_is_applied() {
    let charset = |charset| Grammar { charset, ..Grammar::default() };
    let length = |min_length, max| Grammar { min_length, max_length: Some(max), ..Grammar::default() };
    let segment = Grammar { last_segment: true, ..length(1, 3) };
    let uuid = "0192f0c1-2345-8abc-9def-0123456789ab";
    for (grammar, good, bad) in [
        (length(4, 6), vec!["abcd", "abcdef"], vec!["abc", "abcdefg", ""]),
        (
            charset(Charset::Uuid),
            vec![uuid],
            vec!["00000000-0000-0000-0000-000000000000", "0192f0c123458abc9def0123456789ab"],
        ),
        (charset(Charset::AlphanumericAnd("_-".into())), vec!["a_B-9"], vec!["a/b", "a b"]),
        (charset(Charset::VisibleAscii), vec!["a/b~!"], vec!["a b"]),
        (charset(Charset::Base32Hex), vec!["0v9a"], vec!["0w", "AB"]),
        (segment, vec!["long/name/abc"], vec!["a/abcd", "a/"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let convention =
            Convention { carrier: Carrier::Json("/key".into()), grammar: grammar.clone(), ..Convention::default() };
        let provider = Running::with(dir.path(), convention).await;
        for key in &bad {
            let seen = provider.call("POST", "/things", &[], &json!({ "key": key }).to_string()).await;
            assert_eq!(seen.status, 400, "{grammar:?} {key}");
            assert_eq!(seen.json()["error"]["code"], "idempotency_key_invalid");
        }
        assert_eq!(provider.applied().await, 0, "{grammar:?}");
        for key in &good {
            let seen = provider.call("POST", "/things", &[], &json!({ "key": key }).to_string()).await;
            assert_eq!(seen.status, 201, "{grammar:?} {key}");
        }
        assert_eq!(provider.applied().await, good.len());
    }
}

#[tokio::test]
async fn a_missing_key_is_refused_where_one_is_required() {
    let dir = tempfile::tempdir().unwrap();
    let provider = Running::with(dir.path(), Convention::square()).await;
    let seen = provider.call("POST", "/v2/payments", &[], "{}").await;
    assert_eq!((seen.status, &seen.json()["errors"][0]["code"]), (400, &json!("INVALID_VALUE")));
    assert_eq!(provider.applied().await, 0);
}
