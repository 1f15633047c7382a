//! Floods of calls: to the host, which are counted and slowed down; to providers, of which few are open at once; and answers
//! that nobody takes.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{ALONE, WASI_GUESTS, once, world_with};
use crate::harness::World;

fn with(limits: Value) -> Value {
    let mut policy = once("60s");
    policy["limits"] = limits;
    policy
}

/// A provider that answers slowly, and counts.
#[derive(Debug, Default)]
struct Counted {
    open: AtomicUsize,
    most_open: AtomicUsize,
    all: AtomicUsize,
}

async fn provider(answer: Vec<u8>, delay: Duration) -> (SocketAddr, Arc<Counted>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let counted = Arc::new(Counted::default());
    let counts = counted.clone();
    let answer = Arc::new(answer);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (counts, answer) = (counts.clone(), answer.clone());
            counts.all.fetch_add(1, Ordering::SeqCst);
            counts.most_open.fetch_max(counts.open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::spawn(async move { serve(stream, &answer, delay, &counts).await });
        }
    });
    (address, counted)
}

async fn serve(mut stream: TcpStream, body: &[u8], delay: Duration, counts: &Counted) {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(read) if read > 0 => request.extend_from_slice(&piece[..read]),
            _ => break,
        }
    }
    // Slow on purpose: that is what it stands for.
    tokio::time::sleep(delay).await;
    // Not open any more once the last byte is on its way: the guest may send the next at once.
    counts.open.fetch_sub(1, Ordering::SeqCst);
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).await.ok();
    stream.shutdown().await.ok();
}

/// F-E22.
#[tokio::test(flavor = "multi_thread")]
async fn calls_to_the_host_without_end_are_ended_at_the_cap() {
    let _alone = ALONE.lock().await;
    let world = World::keyed().await;
    let limits = json!({ "host_calls": 100_000, "host_calls_per_s": 1_000_000 });
    world.deploy_from(WASI_GUESTS, "call-often", "stripe", with(limits)).await;
    let run = world.start("call-often", json!({ "count": 100_000_000 })).await;
    let within = world.start("call-often", json!({ "count": 90_000 })).await;
    world.work().await;
    assert_eq!(world.outcomes(run).await, ["out-of-calls"]);
    let failure = world.failure(run).await;
    let words = failure["message"].as_str().unwrap();
    assert!(words.contains("100000 calls") && words.contains("policy.limits.host_calls"), "{words}");
    let counted = world.attempts(run).await[0].host_calls.unwrap();
    assert!((100_001..1_000_000).contains(&counted), "the cap is looked at every epoch: {counted}");
    assert_eq!(world.output(within).await, json!(90_000));
    assert!((90_000..91_000).contains(&world.attempts(within).await[0].host_calls.unwrap()));
}

/// F-E22. Slowed down, not ended: what it makes at once is a second's worth, and what an epoch lets through unseen.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_calls_too_fast_is_slowed_down() {
    let _alone = ALONE.lock().await;
    let world = World::keyed().await;
    let limits = json!({ "host_calls_per_s": 50_000 });
    world.deploy_from(WASI_GUESTS, "call-often", "stripe", with(limits)).await;
    let run = world.start("call-often", json!({ "count": 250_000 })).await;
    world.work().await;
    assert_eq!(world.output(run).await, json!(250_000));
    let lasted = world.lasted(run).await;
    assert!(lasted > Duration::from_millis(1_500), "{lasted:?}");
}

/// F-E22. Of ten thousand calls at once few are under way, each of the others has its error, and afterwards the places are free.
#[tokio::test(flavor = "multi_thread")]
async fn of_ten_thousand_calls_at_once_few_are_open_and_the_others_are_told() {
    const CALLS: usize = 10_000;
    let _alone = ALONE.lock().await;
    let (address, counted) = provider(b"ok".to_vec(), Duration::from_millis(300)).await;
    let origin = format!("http://{address}");
    let world = world_with(|config| {
        config.host.max_resources = 20 * CALLS;
        config.host.max_output_bytes = 16 << 20;
    })
    .await;
    let mut policy = once("60s");
    policy["egress"] = json!({ "allow": [origin] });
    world.deploy_from(WASI_GUESTS, "fetch", "keyless", policy).await;
    let call = json!({ "method": "GET", "url": format!("{origin}/x") });
    let input = json!({ "calls": vec![call.clone(); CALLS], "together": true });
    let run = world.start("fetch", input).await;
    world.work().await;
    let output = world.output(run).await;
    let outcomes = output.as_array().unwrap();
    let answered = outcomes.iter().filter(|outcome| outcome["status"] == 200).count();
    let refused = |outcome: &&Value| outcome["error"].as_str().is_some_and(|why| why.contains("16 calls under way"));
    let other = outcomes.iter().find(|outcome| outcome["status"] != 200 && !refused(outcome));
    let refused = outcomes.iter().filter(refused).count();
    assert_eq!(answered + refused, CALLS, "nothing else came of a call: {other:?}");
    assert!(answered >= 1 && refused > CALLS / 2, "{answered} were answered, {refused} refused");
    assert_eq!(counted.all.load(Ordering::SeqCst), answered, "what was refused never connected");
    assert!(counted.most_open.load(Ordering::SeqCst) <= 16, "{counted:?}");

    let later = world.start("fetch", json!({ "calls": [call] })).await;
    world.work().await;
    assert_eq!(world.output(later).await[0]["status"], 200);
}

/// F-E22.
#[tokio::test(flavor = "multi_thread")]
async fn more_calls_than_resources_end_the_attempt_and_a_deployment_may_have_fewer_open() {
    let (address, counted) = provider(b"ok".to_vec(), Duration::from_millis(300)).await;
    let origin = format!("http://{address}");
    let world = world_with(|config| config.host.max_resources = 500).await;
    let mut policy = with(json!({ "open_sends": 2 }));
    policy["egress"] = json!({ "allow": [origin] });
    world.deploy_from(WASI_GUESTS, "fetch", "keyless", policy).await;
    let calls = |count| vec![json!({ "method": "GET", "url": format!("{origin}/x") }); count];
    let many = world.start("fetch", json!({ "calls": calls(5_000), "together": true })).await;
    world.work().await;
    assert_eq!(world.outcomes(many).await, ["out-of-resources"]);
    counted.most_open.store(0, Ordering::SeqCst);
    let few = world.start("fetch", json!({ "calls": calls(5), "together": true })).await;
    world.work().await;
    let output = world.output(few).await;
    assert!(output.as_array().unwrap().iter().any(|outcome| outcome["status"] == 200), "{output}");
    assert!(counted.most_open.load(Ordering::SeqCst) <= 2, "{counted:?}");
}

/// F-F09, F-E22. What a guest leaves lying is bounded; what it has dropped makes room.
#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_takes_have_one_room() {
    const ROOM: usize = 3_000_000;
    let (address, counted) = provider(vec![b'x'; 1_000_000], Duration::ZERO).await;
    let origin = format!("http://{address}");
    let world = world_with(|config| {
        config.gateway.max_response_bytes = 1 << 20;
        config.host.max_untaken_bytes = ROOM;
    })
    .await;
    let mut policy = once("60s");
    policy["egress"] = json!({ "allow": [origin] });
    world.deploy_from(WASI_GUESTS, "leave-answers", "keyless", policy).await;
    let run = world.start("leave-answers", json!({ "authority": address.to_string(), "path": "/x", "count": 5 })).await;
    world.work().await;
    let output = world.output(run).await;
    let told: Vec<&str> = output.as_array().unwrap().iter().map(|told| told.as_str().unwrap()).collect();
    assert_eq!(told[..3], ["status 200"; 3]);
    let beyond = |told: &&str| told.contains("HttpResponseBodySize") && told.contains(&ROOM.to_string());
    assert!(told[3..5].iter().all(beyond), "{told:?}");
    assert_eq!(told[5], "status 200", "the room is free again");
    assert_eq!(counted.all.load(Ordering::SeqCst), 6);
}
