//! The keys of signals: where they stand, what they look like, and for what they count. What cannot be a key is never
//! taken for none.

use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::json;

use super::super::client::Answer;
use super::{Api, KEY, OTHER_KEY, deliver, idle, listener, path, signals_of, taken, waits_for};

/// Delivers `go` with a query, and with headers that each hold these bytes.
async fn keyed(api: &Api, run: &str, query: &str, headers: &[&[u8]]) -> Answer {
    let mut request = api.acme.request(Method::POST, &format!("{}{query}", path(run, "go"))).json(&json!(1));
    for value in headers {
        request = request.header("idempotency-key", HeaderValue::from_bytes(value).unwrap());
    }
    api.acme.send(request).await
}

/// R-B03.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_stands_in_the_header_or_in_the_query_and_the_header_wins() {
    let api = idle().await;
    let run = listener(&api).await;
    taken(&keyed(&api, &run, &format!("?idempotency_key={OTHER_KEY}"), &[KEY.as_bytes()]).await, true);
    taken(&keyed(&api, &run, &format!("?idempotency_key={KEY}"), &[]).await, false);
    taken(&keyed(&api, &run, &format!("?idempotency_key={OTHER_KEY}"), &[]).await, true);
    taken(&keyed(&api, &run, "", &[OTHER_KEY.as_bytes()]).await, false);
    // What the header says is enough: nobody looks at the query.
    taken(&keyed(&api, &run, "?idempotency_key=short", &[KEY.as_bytes()]).await, false);
    assert_eq!(signals_of(&api, &run).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quoted_key_is_the_key_inside_the_quotes() {
    let api = idle().await;
    let run = listener(&api).await;
    taken(&keyed(&api, &run, "", &[format!("\"{KEY}\"").as_bytes()]).await, true);
    taken(&keyed(&api, &run, "", &[KEY.as_bytes()]).await, false);
    taken(&keyed(&api, &run, &format!("?idempotency_key=%22{KEY}%22"), &[]).await, false);
    assert_eq!(signals_of(&api, &run).await.len(), 1);
}

/// R-B13. What cannot be a key is never taken for none.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_none_is_refused_and_nothing_is_delivered() {
    let api = idle().await;
    let run = listener(&api).await;
    let (long, short) = ("a".repeat(129), "a".repeat(21));
    let wrong: [&[u8]; 9] = [
        b"",
        b"\"\"",
        b"short",
        short.as_bytes(),
        long.as_bytes(),
        b"0123456789abcdef 0123456789",
        b"0123456789abcdef/0123456789",
        "0123456789abcdef-0123456789-ä".as_bytes(),
        &[0xff; 30],
    ];
    for value in wrong {
        let answer = keyed(&api, &run, "", &[value]).await;
        assert!(answer.message(400, "idempotency_key_invalid").contains("Idempotency-Key"), "{answer:?}");
        // Not even where the query has one.
        let answer = keyed(&api, &run, &format!("?idempotency_key={KEY}"), &[value]).await;
        answer.refused(400, "idempotency_key_invalid");
    }
    for two in [[KEY.as_bytes(), KEY.as_bytes()], [KEY.as_bytes(), OTHER_KEY.as_bytes()], [KEY.as_bytes(), b""]] {
        keyed(&api, &run, "", &two).await.refused(400, "idempotency_key_invalid");
    }
    for query in ["short", "%20", "%22%22", &"a".repeat(21), &"a".repeat(129), "%C3%A4bcdefghijklmnopqrstuvwxyz"] {
        let answer = keyed(&api, &run, &format!("?idempotency_key={query}"), &[]).await;
        assert!(answer.message(400, "idempotency_key_invalid").contains("idempotency_key"), "{query}: {answer:?}");
    }
    assert!(signals_of(&api, &run).await.is_empty());
    for key in ["a".repeat(22), "a".repeat(128)] {
        taken(&keyed(&api, &run, "", &[key.as_bytes()]).await, true);
    }
}

/// R-B13: an empty parameter is none, as a form leaves it.
#[tokio::test(flavor = "multi_thread")]
async fn an_empty_key_in_the_query_is_no_key() {
    let api = idle().await;
    let run = listener(&api).await;
    for _ in 0..2 {
        taken(&keyed(&api, &run, "?idempotency_key=", &[]).await, true);
    }
    assert_eq!(signals_of(&api, &run).await.len(), 2);
}

/// R-B07.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_counts_for_its_run_whatever_the_name_of_the_signal() {
    let api = idle().await;
    let (first, second) = (listener(&api).await, listener(&api).await);
    taken(&deliver(&api.acme, &first, "go", Some(KEY), &json!(1)).await, true);
    taken(&deliver(&api.acme, &second, "go", Some(KEY), &json!(2)).await, true);
    taken(&deliver(&api.acme, &first, "stop", Some(KEY), &json!(3)).await, false);
    taken(&deliver(&api.acme, &first, "go", Some(OTHER_KEY), &json!(4)).await, true);
    let names: Vec<_> = signals_of(&api, &first).await.iter().map(|signal| signal["name"].clone()).collect();
    assert_eq!(names, ["go", "go"]);
    api.work().await;
    for (run, n) in [(first, 1), (second, 2)] {
        assert_eq!(api.ended(&run).await["output"], json!([n]));
    }
}

/// R-B12.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_without_a_key_is_delivered_as_often_as_it_is_sent() {
    let api = idle().await;
    api.deploy("listen", json!({})).await;
    let run = api.start("listen", waits_for(&["go", "go"])).await;
    for _ in 0..2 {
        taken(&deliver(&api.acme, &run, "go", None, &json!("same")).await, true);
    }
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!(["same", "same"]));
}

/// R-B06.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_that_comes_with_the_start_has_a_key_of_its_own() {
    let api = idle().await;
    api.deploy("listen", json!({})).await;
    let body = |key: &str| {
        let signal = json!({ "name": "go", "payload": { "n": 1 }, "idempotency_key": key });
        json!({ "input": waits_for(&["go"]), "signal": signal })
    };
    let start = |body: serde_json::Value| {
        let acme = api.acme.clone();
        async move { acme.post("/v1/activities/listen/runs", &body).await }
    };
    let run = start(body(KEY)).await.expect(201)["run_id"].as_str().unwrap().to_owned();
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!({ "n": 2 })).await, false);
    assert_eq!(signals_of(&api, &run).await.len(), 1);
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!([{ "n": 1 }]));
    assert_eq!(api.outcomes(&run).await, ["completed"], "it was there before the run began");
    taken(&deliver(&api.acme, &run, "go", Some(KEY), &json!(3)).await, false);

    // Another start is another run, and the key is free there; without a key there is no record of one.
    let second = start(body(KEY)).await.expect(201)["run_id"].as_str().unwrap().to_owned();
    assert_eq!(signals_of(&api, &second).await.len(), 1);
    let mut bare = body(KEY);
    bare["signal"] = json!({ "name": "go" });
    let third = start(bare).await.expect(201)["run_id"].as_str().unwrap().to_owned();
    taken(&deliver(&api.acme, &third, "go", Some(KEY), &json!(4)).await, true);
    let payloads: Vec<_> = signals_of(&api, &third).await.iter().map(|signal| signal["payload"].clone()).collect();
    assert_eq!(payloads, [json!(null), json!(4)]);
}

/// A start whose signal is refused starts nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_with_a_wrong_signal_is_refused_whole() {
    let api = super::with(|config| config.signals.max_payload_bytes = 100).await;
    api.deploy("listen", json!({})).await;
    let wrong = [
        (json!({ "name": "go", "idempotency_key": "short" }), 400, "idempotency_key_invalid"),
        (json!({ "name": "go", "idempotency_key": "" }), 400, "idempotency_key_invalid"),
        (json!({ "name": "a b" }), 400, "validation_error"),
        (json!({ "payload": 1 }), 400, "validation_error"),
        (json!({ "name": "go", "colour": 1 }), 400, "validation_error"),
        (json!({ "name": "go", "payload": "x".repeat(99) }), 413, "payload_too_large"),
    ];
    for (signal, status, code) in wrong {
        let body = json!({ "input": waits_for(&["go"]), "signal": signal });
        api.acme.post("/v1/activities/listen/runs", &body).await.refused(status, code);
    }
    let runs: i64 = sqlx::query_scalar("select count(*) from runs")
        .fetch_one(&mut api.world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(runs, 0);
}
