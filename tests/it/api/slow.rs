//! Clients that take their time: with the head, with the body, between two requests, with the answer. Each is waited for so
//! long and no longer. And answers that take too long.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::limits::{head, with};
use super::wire::{Wire, address};
use super::{Api, mint, no_run};
use crate::harness::{config, node};

const MEGABYTE: usize = 1 << 20;

/// Sends a text byte by byte until the server hangs up or has taken all; gives what it said.
async fn trickle(origin: &str, begin: &str, rest: &str, pause: Duration) -> String {
    let stream = tokio::net::TcpStream::connect(address(origin)).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    writing.write_all(begin.as_bytes()).await.unwrap();
    let rest = rest.to_owned().into_bytes();
    let sending = tokio::spawn(async move {
        let mut ticks = tokio::time::interval(pause);
        for byte in rest {
            ticks.tick().await;
            if writing.write_all(&[byte]).await.is_err() {
                break;
            }
        }
        // Kept open: a client that goes on waiting.
        writing
    });
    let mut said = Vec::new();
    let listening = async {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = reading.read(&mut part).await {
            said.extend_from_slice(&part[..count]);
            if said.ends_with(b"}") {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), listening).await.unwrap();
    sending.abort();
    String::from_utf8(said).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_trickles_is_answered_and_cut_off() {
    let api = with(|api| api.header_ms = 1_000).await;
    let pause = Duration::from_millis(20);
    let said = trickle(&api.origin, "GET /healthz HTTP/1.1\r\nx: ", &"a".repeat(10_000), pause).await;
    assert!(said.starts_with("HTTP/1.1 408 ") && said.contains("deedbox.request_timeout"), "{said}");
    assert!(said.contains("x-request-id: ") && said.contains("connection: close"), "{said}");
    // One that says nothing at all has asked for nothing.
    let silent = Wire::open(&api.origin).await;
    assert_eq!(silent.rest().await, b"");
    // The second head of a connection as well.
    let mut wire = Wire::open(&api.origin).await;
    assert_eq!(wire.get("/healthz", "").await.status, 200);
    assert!(wire.send("GET /healthz HT").await);
    wire.answer().await.refused(408, "deedbox.request_timeout");
    assert_eq!(wire.rest().await, b"");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_kept_between_requests_for_its_own_time() {
    let patient = with(|api| (api.header_ms, api.idle_ms) = (1_000, 60_000)).await;
    let mut wire = Wire::open(&patient.origin).await;
    assert_eq!(wire.get("/healthz", "").await.status, 200);
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(wire.get("/healthz", "").await.status, 200);

    let brisk = with(|api| api.idle_ms = 300).await;
    let mut wire = Wire::open(&brisk.origin).await;
    assert_eq!(wire.get("/healthz", "").await.status, 200);
    assert_eq!(wire.rest().await, b"");
}

/// Starts a run in a body that comes byte by byte.
async fn slow_start(api: &Api, pause: Duration) -> String {
    api.deploy("noop", json!({})).await;
    let head = head("POST", "/v1/activities/noop/runs", &mint(&api.world, "acme").await, "application/json");
    let body = "{\"input\": \"a text of fifty\"}";
    trickle(&api.origin, &format!("{head}content-length: {}\r\n\r\n", body.len()), body, pause).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_stalls_or_takes_too_long_is_refused() {
    let stalling = with(|api| api.body_silence_ms = 300).await;
    let said = slow_start(&stalling, Duration::from_secs(60)).await;
    assert!(said.starts_with("HTTP/1.1 408 ") && said.contains("deedbox.request_timeout"), "{said}");

    let endless = with(|api| api.body_ms = 400).await;
    let said = slow_start(&endless, Duration::from_millis(50)).await;
    assert!(said.starts_with("HTTP/1.1 408 ") && said.contains("deedbox.request_timeout"), "{said}");
    let runs = endless.acme.get("/v1/runs").await.expect(200);
    assert_eq!(runs["items"], json!([]), "nothing came of half a body");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_takes_too_long_is_given_up_but_not_for_the_time_of_the_body() {
    let api = with(|api| api.max_request_ms = 3_000).await;
    let said = slow_start(&api, Duration::from_millis(150)).await;
    assert!(said.starts_with("HTTP/1.1 201 "), "{said}");
    let run = api.start("noop", json!(1)).await;
    let answer = api.acme.get(&format!("/v1/runs/{run}?wait=30")).await;
    assert!(answer.message(503, "deedbox.request_too_slow").contains("3000 ms"), "{answer:?}");
    assert_eq!(answer.header("retry-after"), "5");
    assert_eq!(answer.header("connection"), "close");
    api.acme.get(&format!("/v1/runs/{}?wait=30", no_run())).await.refused(404, "not_found");
}

/// A run whose snapshot is larger than what any socket keeps for a reader, and the request for it.
async fn large(api: &Api) -> String {
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!("x".repeat(24 * MEGABYTE))).await;
    let token = mint(&api.world, "acme").await;
    format!("GET /v1/runs/{run} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_never_reads_is_given_up() {
    let api = with(|api| (api.max_body_bytes, api.write_ms) = (25 * MEGABYTE, 200)).await;
    let request = large(&api).await;
    let mut wire = Wire::open(&api.origin).await;
    assert!(wire.send(request).await);
    wire.io.readable().await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let received = wire.rest().await.len();
    assert!(received < 24 * MEGABYTE, "all of it was kept for a reader who did not read: {received}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_reads_slowly_gets_all_of_it() {
    let api = with(|api| (api.max_body_bytes, api.write_ms) = (25 * MEGABYTE, 2_000)).await;
    let request = large(&api).await;
    let mut wire = Wire::open(&api.origin).await;
    assert!(wire.send(request).await);
    let begin = Instant::now();
    let (mut received, mut part) = (0, vec![0; MEGABYTE / 2]);
    while received < 24 * MEGABYTE {
        received += wire.io.read_exact(&mut part).await.unwrap();
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert!(begin.elapsed() > Duration::from_secs(2), "slower than the time for one part");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_ends_what_is_idle_and_answers_what_is_open() {
    let api = with(|_| {}).await;
    api.deploy("noop", json!({})).await;
    let node = node(&api.world.database, "another", config(), deedbox::probe::none()).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let stop = CancellationToken::new();
    let serving = tokio::spawn({
        let stop = stop.clone();
        async move { node.serve(listener, stop).await }
    });
    let mut idle = Wire::open(&origin).await;
    assert_eq!(idle.get("/healthz", "").await.status, 200);
    let unused = Wire::open(&origin).await;
    let head = head("POST", "/v1/activities/noop/runs", &mint(&api.world, "acme").await, "application/json");
    let body = "{\"input\": 1}";
    let mut asked = Wire::open(&origin).await;
    assert!(asked.send(format!("{head}expect: 100-continue\r\ncontent-length: {}\r\n\r\n", body.len())).await);
    assert_eq!(asked.answer().await.status, 100, "it is being read");
    stop.cancel();
    for wire in [idle, unused] {
        assert_eq!(wire.rest().await, b"");
    }
    assert!(asked.send(body).await);
    let said = asked.answer().await;
    assert!(said.status == 201 && said.head.contains("connection: close"), "{said:?}");
    assert_eq!(asked.rest().await, b"");
    tokio::time::timeout(Duration::from_secs(8), serving).await.unwrap().unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(address(&origin)).await.is_err());
}
