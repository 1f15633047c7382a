//! Callers who hang up before they are answered. What they asked for is done all the same, once, and whoever asks again
//! is told of it.

use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::*;
use crate::harness::{seed, tell};

const TIMES: usize = 200;
const LATEST_MS: u64 = 50;
/// For all runs to end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A start of `activity` as it is on the wire.
fn on_the_wire(token: &str, activity: &str, key: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST /v1/activities/{activity}/runs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n\
         content-type: application/json\r\nidempotency-key: {key}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends it and gives the open connection.
async fn send(api: &Api, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(api.origin.trim_start_matches("http://")).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Asks until it is not in flight any more.
async fn settled(ask: &Ask) -> Answer {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let answer = ask.send().await;
        if answer.status != 409 {
            return answer;
        }
        answer.refused(409, "idempotency_in_flight");
        assert!(Instant::now() < give_up, "it is in flight for ever");
    }
}

/// F-A06, R-K01, R-K20.
#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_callers_who_hang_up_start_two_hundred_runs() {
    let seed = seed();
    let mut dice = StdRng::seed_from_u64(seed);
    let api = Api::working().await;
    api.deploy("send", api.policy("stripe")).await;
    let token = mint(&api.world, "acme").await;
    let mut told = Vec::new();
    let mut repeats = 0;
    for n in 0..TIMES {
        let key = fresh_key();
        let body = json!({ "input": { "calls": [api.charge(&n.to_string())], "fail_on_error": true } });
        let stream = send(&api, &on_the_wire(&token, "send", &key, &body)).await;
        tokio::time::sleep(Duration::from_millis(dice.random_range(0..=LATEST_MS))).await;
        // Half of them hang up with a reset.
        if n % 2 == 0 {
            stream.set_zero_linger().unwrap();
        }
        drop(stream);
        let ask = Ask::post(&api.acme, "/v1/activities/send/runs", &body).key(&key);
        let first = settled(&ask).await;
        first.expect(201);
        repeats += usize::from(is_replay(&first));
        replays(&ask.send().await, &first);
        told.push(run_of(&first));
    }
    tell(&format!("hang up: seed {seed}, of {TIMES} requests {repeats} had been heard before their callers hung up"));
    assert!(repeats > TIMES / 10, "hardly any request was heard: nothing was shown");
    let mut listed = runs(&api).await;
    listed.sort();
    told.sort();
    assert_eq!(listed, told, "a run for each key, and no other");
    let give_up = Instant::now() + PATIENCE;
    while count(&api.world.database, "select count(*) from runs where ended_at is null").await > 0 {
        assert!(Instant::now() < give_up, "the runs do not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(api.world.books.applied().await.unwrap().len(), TIMES);
}

/// F-A06: the caller is gone for certain while the work is half done.
#[tokio::test(flavor = "multi_thread")]
async fn a_caller_who_hangs_up_in_the_middle_does_not_stop_the_work() {
    let api = noops().await;
    let token = mint(&api.world, "acme").await;
    for reset in [false, true] {
        let (key, body) = (fresh_key(), json!({ "input": reset }));
        let before = runs(&api).await.len() as i64;
        let gate = Gate::close(&api).await;
        let stream = send(&api, &on_the_wire(&token, "noop", &key, &body)).await;
        until_held(&api, 1).await;
        if reset {
            stream.set_zero_linger().unwrap();
        }
        drop(stream);
        // The server has seen it: it answers others on new connections meanwhile.
        for _ in 0..5 {
            api.acme.get("/healthz").await.expect(200);
        }
        until_held(&api, 1).await;
        gate.open().await;
        until("the run is there", async || count(&api.world.database, "select count(*) from runs").await == before + 1)
            .await;
        let again = Ask::start(&api.acme, &body).key(&key).send().await;
        assert_eq!((again.status, is_replay(&again)), (201, true), "{again:?}");
        assert_eq!(runs(&api).await[0], run_of(&again));
    }
}
