//! A key is its caller's secret: it is in no log, no error and, but for a signal's own, in no table. A repeat is seen
//! by the run that it is about.

use super::*;
use crate::harness::logs;

/// The key as text, as digits and as text of either alphabet of sixty-four letters.
fn spellings(key: &str) -> Vec<String> {
    let hex = data_encoding::HEXLOWER.encode(key.as_bytes());
    let base64 = data_encoding::BASE64.encode(key.as_bytes());
    // The last letters depend on what follows.
    vec![key.to_owned(), hex, base64[..base64.len() - 4].to_owned()]
}

/// Every way in which a request with a key can go, each with a key of its own; and the texts of all answers.
async fn all_ways(api: &Api) -> (Vec<String>, String) {
    let mut keys: Vec<String> = (0..8).map(|_| fresh_key()).collect();
    let mut told = String::new();
    let start = |key: &str| Ask::start(&api.acme, &json!({ "input": 1 })).key(key);
    let admin = api.admin().await;
    let mut asks = vec![
        start(&keys[0]),
        start(&keys[0]),
        start(&keys[0]).raw(JSON, r#"{"input":2}"#),
        start(&keys[1]).raw(JSON, "{"),
        start(&keys[2]).lenient(),
        start(&keys[2]).lenient().raw(JSON, "{"),
        Ask::start(&api.acme, &json!({ "idempotency_key": keys[3] })),
        Ask::start(&api.acme, &json!({ "idempotency_key": keys[3] })),
        Ask::post(&api.acme, "/v1/activities/none/runs", &json!({})).key(&keys[4]),
        Ask::put(&api.acme, "/v1/secrets/a", &json!({ "value": "x" })).key(&keys[5]),
        Ask::post(&admin, "/v1/tenants/acme/tokens", &json!({})).key(&keys[6]),
        start(&keys[7]).by(&api.nobody()),
    ];
    // Keys that are none are nobody else's business either.
    for wrong in ["k;", "k "] {
        let key = format!("{wrong}{}", fresh_key());
        asks.push(start(&key));
        asks.push(Ask::start(&api.acme, &json!({ "idempotency_key": key })));
        keys.push(key);
    }
    for ask in asks {
        told.push_str(&format!("{:?}\n", ask.send().await));
    }
    (keys, told)
}

/// R-K19.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_in_no_log_no_answer_and_no_table() {
    logs::keep();
    let short = |config: &mut Config| config.api.in_flight_wait_ms = 50;
    let api = noops_with(short).await;
    let (mut keys, told) = all_ways(&api).await;
    let held = fresh_key();
    let gate = Gate::close(&api).await;
    let first = begin(&Ask::start(&api.acme, &json!({ "input": 1 })).key(&held));
    until_held(&api, 1).await;
    let told_meanwhile = Ask::start(&api.acme, &json!({ "input": 1 })).key(&held).send().await;
    told_meanwhile.refused(409, "idempotency_in_flight");
    gate.open().await;
    first.await.unwrap().expect(201);
    keys.push(held);
    api.work().await;
    api.world.node.worker().sweep().await.unwrap();

    let (told, logged) = (format!("{told}{told_meanwhile:?}"), logs::all());
    assert!(logged.contains("http.request") && told.contains("idempotency_key_mismatch"));
    let kept = everything_kept(&api).await;
    assert!(kept.contains("request_keys ("), "the records were not looked at");
    for spelling in keys.iter().flat_map(|key| spellings(key)) {
        assert!(!logged.contains(&spelling), "{spelling} is in the log");
        assert!(!told.contains(&spelling), "{spelling} is in an answer");
        assert!(!kept.contains(&spelling), "{spelling} is in a table");
    }
}

/// All rows of all tables as text, but for signals, whose record has the key as it is.
async fn everything_kept(api: &Api) -> String {
    let mut connection = api.world.database.connect().await;
    let all = "select tablename::text from pg_tables
               where schemaname = 'public' and tablename not in ('signals', 'modules') order by 1";
    let tables: Vec<String> = sqlx::query_scalar(all).fetch_all(&mut connection).await.unwrap();
    let mut kept = String::new();
    for table in tables {
        let rows = sqlx::AssertSqlSafe(format!("select '{table} ' || t::text from {table} t"));
        let rows: Vec<String> = sqlx::query_scalar(rows).fetch_all(&mut connection).await.unwrap();
        kept.push_str(&rows.join("\n"));
        kept.push('\n');
    }
    kept
}

/// R-K19: of a signal's key, too, nothing is logged.
#[tokio::test(flavor = "multi_thread")]
async fn a_signals_key_is_in_no_log_and_no_answer() {
    logs::keep();
    let api = noops().await;
    let run = api.start("noop", json!(1)).await;
    let key = fresh_key();
    let signalling = Ask::post(&api.acme, &format!("/v1/runs/{run}/signals/go"), &json!(1)).key(&key);
    let mut told = String::new();
    for _ in 0..2 {
        told.push_str(&format!("{:?}", signalling.send().await));
    }
    told.push_str(&api.acme.get(&format!("/v1/runs/{run}/signals")).await.text);
    let logged = logs::all();
    for spelling in spellings(&key) {
        assert!(!logged.contains(&spelling) && !told.contains(&spelling), "{spelling}");
    }
}

/// F-A21.
#[tokio::test(flavor = "multi_thread")]
async fn a_repeat_is_logged_under_the_run_of_the_first() {
    logs::keep();
    let api = noops().await;
    let ask = Ask::start(&api.acme, &json!({ "input": 1 })).key(&fresh_key());
    let first = twice(&ask, 201).await;
    let run = run_of(&first);
    for again in [ask.send().await, ask.clone().lenient().send().await] {
        assert_eq!(run_of(&again), run);
        let id = again.header("x-request-id").to_owned();
        let logged = logs::all();
        let lines: Vec<&str> = logged.lines().filter(|line| line.contains(&id)).collect();
        assert!(lines.iter().any(|line| line.contains(&run)), "{lines:#?}");
        let others = |line: &&&str| line.contains("run.id=") && !line.contains(&run);
        assert_eq!(lines.iter().find(others), None, "a line of a repeat names another run");
    }
}
