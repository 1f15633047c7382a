//! How many attempts a run gets, and when the next one begins.

use chrono::{DateTime, TimeDelta, Utc};
use deedbox::store::run::Attempt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use super::world_with;
use crate::harness::World;

/// R-D32, F-B17.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_gets_exactly_its_attempts_however_much_of_it_succeeds() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({ "retry": { "max_attempts": 4 } })).await;
    let named = |name: &str| json!({ "method": "POST", "url": world.charges(), "identity": { "named": name } });
    let calls = [named("one"), named("two"), named("three")];
    let run = world.start("send", json!({ "calls": calls, "then": "fail" })).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["failed"; 4]);
    assert_eq!(world.failure(run).await["code"], "asked-to-fail");
    assert_eq!(world.books.arrivals().await.unwrap().len(), 3);
    assert_eq!(world.sends(run).await.len(), 3);
}

async fn fail(world: &World, code: &str, kind: &str, retry_after_ms: Option<u64>) -> Uuid {
    let input = json!({ "code": code, "message": "m", "kind": kind, "retry_after_ms": retry_after_ms });
    let run = world.start("fail", input).await;
    world.work().await;
    run
}

/// R-D34, R-E22.
#[tokio::test(flavor = "multi_thread")]
async fn a_permanent_failure_ends_the_run_at_once() {
    let world = World::keyed().await;
    world.deploy("fail", "stripe", json!({ "retry": { "max_attempts": 5 } })).await;
    let run = fail(&world, "no", "permanent", Some(1)).await;
    assert_eq!(world.outcomes(run).await, ["failed"]);
    assert_eq!(world.failure(run).await["kind"], "permanent");
    let run = fail(&world, "no", "retryable", None).await;
    assert_eq!(world.outcomes(run).await, ["failed"; 5]);
}

/// R-D36.
#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_is_not_retryable_ends_the_run_at_once() {
    let world = World::keyed().await;
    let policy = json!({ "retry": { "max_attempts": 3, "non_retryable": ["fatal", "trap"] } });
    world.deploy("fail", "stripe", policy.clone()).await;
    world.deploy("trap", "stripe", policy).await;
    let run = fail(&world, "fatal", "retryable", Some(1)).await;
    assert_eq!(world.outcomes(run).await, ["failed"]);
    let run = fail(&world, "fatality", "retryable", None).await;
    assert_eq!(world.outcomes(run).await, ["failed"; 3], "only the very code counts");
    let run = world.start("trap", json!({})).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["trap"], "the host's own codes count too");
}

/// How long after its only attempt the run is due.
async fn pause(world: &World, run: Uuid) -> TimeDelta {
    let attempt: Vec<Attempt> = world.attempts(run).await;
    assert_eq!(attempt.len(), 1);
    world.run(run).await.due_at.unwrap() - attempt[0].ended_at.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_is_honoured_up_to_the_hosts_ceiling() {
    let world = world_with(|config| config.worker.max_retry_after_ms = 600_000).await;
    world.deploy("fail", "stripe", json!({})).await;
    for (asked, given) in [(60_000, 60_000), (600_000, 600_000), (3_600_000, 600_000), (u64::MAX, 600_000)] {
        let run = fail(&world, "later", "retryable", Some(asked)).await;
        assert_eq!(pause(&world, run).await, TimeDelta::milliseconds(given), "asked for {asked}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_after_does_not_revive_a_run_that_has_spent_its_attempts() {
    let world = World::keyed().await;
    world.deploy("fail", "stripe", json!({ "retry": { "max_attempts": 1 } })).await;
    let run = fail(&world, "later", "retryable", Some(1)).await;
    assert_eq!(world.outcomes(run).await, ["failed"]);
    assert_eq!(world.run(run).await.state, "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pause_between_attempts_is_the_policys() {
    let world = World::keyed().await;
    world.deploy("fail", "stripe", json!({ "retry": { "initial_interval": "45s" } })).await;
    let run = fail(&world, "later", "retryable", None).await;
    assert_eq!(pause(&world, run).await, TimeDelta::seconds(45));
    world.database.advance_seconds(45).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["failed"; 2]);
    let second = world.attempts(run).await[1].ended_at.unwrap();
    assert_eq!(world.run(run).await.due_at.unwrap() - second, TimeDelta::seconds(90));
}

/// R-D33, F-C10.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_timed_out_is_gone_before_the_next_begins() {
    // Nothing but the attempt's own limit ends the send.
    let world = world_with(|config| {
        config.gateway.default_send_ms = 60_000;
        config.gateway.max_send_ms = 60_000;
    })
    .await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let provider = tokio::spawn(stall_then_answer(listener));
    let policy = json!({
        "egress": { "allow": [&origin] },
        "providers": { &origin: "stripe" },
        "timeouts": { "start_to_close": "1s" },
    });
    world.deploy("send", "stripe", policy).await;
    let run = world.start("send", json!({ "calls": [{ "method": "POST", "url": origin }] })).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["timed-out", "completed"]);
    assert_eq!(world.output(run).await[0]["status"], Value::from(200));
    let [received, closed, again] = provider.await.unwrap();
    assert!(closed - received < TimeDelta::seconds(6), "open from {received} to {closed}");
    assert!(closed <= again);
    let attempts = world.attempts(run).await;
    assert!(attempts[0].ended_at.unwrap() <= attempts[1].started_at);
    let lasted = attempts[0].ended_at.unwrap() - attempts[0].started_at;
    assert!(lasted >= TimeDelta::seconds(1) && lasted < TimeDelta::seconds(6), "{lasted}");
}

/// Never answers the first request, but the second. When the first was received, when its connection was closed, and when
/// the second came.
async fn stall_then_answer(listener: TcpListener) -> [DateTime<Utc>; 3] {
    let mut first = receive(&listener).await;
    let received = Utc::now();
    assert_eq!(first.read(&mut [0; 16]).await.unwrap_or(0), 0);
    let closed = Utc::now();
    let mut second = receive(&listener).await;
    let again = Utc::now();
    second.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    [received, closed, again]
}

async fn receive(listener: &TcpListener) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut request = vec![0; 16 << 10];
    let mut read = 0;
    while !request[..read].windows(4).any(|window| window == b"\r\n\r\n") {
        read += stream.read(&mut request[read..]).await.unwrap();
    }
    stream
}
