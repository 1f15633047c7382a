//! Nodes that die and connections that are cut while a request with a key is worked on. There is the whole or there is
//! nothing, and whoever asks again is told of the whole, or does it now; a key is never stuck.

use std::path::Path;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::cli::program::{Running, deedbox};
use crate::harness::own_server::user;
use crate::harness::proxy::{Proxy, Target, Way};
use crate::harness::severed::Severed;
use crate::harness::{long, seed, shared, tell};

/// A key whose node has died is free again at the latest after this. In fact as soon as the database has seen it.
const BOUND: Duration = Duration::from_secs(10);

/// `deedbox serve` as a process of its own.
struct Served {
    running: Running,
    client: Client,
}

impl Served {
    async fn start(api: &Api, token: &str, name: &str) -> Self {
        let mut command = deedbox(&["serve", "--listen", "127.0.0.1:0", "--name", name]);
        command.args(["--database-url", &api.world.database.url]);
        command.arg("--master-key-file").arg(shared::master_key_file());
        command.arg("--cache-dir").arg(shared::cache_dir());
        let mut running = Running::start(command, log(api.world.dir.path(), name));
        let said = running.line().await;
        let client = Client::new(said.strip_prefix("listening on ").unwrap(), Some(token.to_owned()));
        Self { running, client }
    }

    /// SIGKILL; it is gone when this returns.
    async fn kill(mut self) {
        self.running.signal("KILL").await;
        let give_up = Instant::now() + BOUND;
        while !self.running.has_ended() {
            assert!(Instant::now() < give_up, "a killed process is still there");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

fn log(dir: &Path, name: &str) -> std::path::PathBuf {
    dir.join(format!("{name}.log"))
}

/// Asks until it is done, now or before. It must not be in flight for longer than the bound.
async fn settled(ask: &Ask) -> Answer {
    let give_up = Instant::now() + BOUND;
    loop {
        let answer = ask.send().await;
        if answer.status == 201 {
            return answer;
        }
        answer.refused(409, "idempotency_in_flight");
        assert!(Instant::now() < give_up, "it is in flight for ever");
    }
}

/// F-A05, R-K26: the node dies in the middle of the transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_in_the_middle_of_a_start_has_not_started() {
    let api = noops().await;
    let token = mint(&api.world, "acme").await;
    let first = Served::start(&api, &token, "first").await;
    let body = json!({ "input": 1, "run_name": "order-1", "labels": { "a": "b" } });
    let ask = Ask::start(&first.client, &body).key(&fresh_key());
    let gate = Gate::close(&api).await;
    let lost = tokio::spawn(ask.request().send());
    until_held(&api, 1).await;
    first.kill().await;
    assert!(lost.await.unwrap().is_err(), "it was answered before the node died");
    gate.open().await;
    let second = Served::start(&api, &token, "second").await;
    let answer = settled(&ask.clone().by(&second.client)).await;
    done(&answer, 201);
    // By whichever node and however often it is asked for.
    replays(&ask.clone().by(&api.acme).send().await, &answer);
    assert_eq!(runs(&api).await, [run_of(&answer)]);
    second.kill().await;
}

/// F-A05, R-C26, R-K01: the node dies after the transaction and before the answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_before_it_answers_has_started_and_says_so_when_it_is_back() {
    let api = noops().await;
    let token = mint(&api.world, "acme").await;
    let first = Served::start(&api, &token, "first").await;
    let severed = Severed::start(origin_of(&first.client), "/noop/runs", 1).await;
    let lossy = Client::new(&format!("http://{}", severed.address), Some(token.clone()));
    let ask = Ask::start(&lossy, &json!({ "input": 1 })).key(&fresh_key());
    let lost = ask.request().send().await;
    assert!(lost.is_err(), "the answer was to be lost: {lost:?}");
    first.kill().await;
    let started = runs(&api).await;
    assert_eq!(started.len(), 1, "and yet it was done");
    let second = Served::start(&api, &token, "second").await;
    let answer = settled(&ask.clone().by(&second.client)).await;
    assert_eq!((is_replay(&answer), vec![run_of(&answer)]), (true, started.clone()));
    replays(&ask.by(&api.acme).send().await, &answer);
    assert_eq!(runs(&api).await, started);
    second.kill().await;
}

/// Where a client's server listens.
fn origin_of(client: &Client) -> String {
    let request = client.request(Method::GET, "/").build().unwrap();
    let url = request.url();
    format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())
}

/// F-A05, R-K26: the node dies at any moment.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_dies_at_any_moment_leaves_one_run_for_each_key() {
    let (seed, rounds) = (seed(), if long() { 40 } else { 6 });
    let mut dice = StdRng::seed_from_u64(seed);
    let api = noops().await;
    let token = mint(&api.world, "acme").await;
    let mut node = Served::start(&api, &token, "node-0").await;
    let (mut told, mut repeats) = (Vec::new(), 0);
    for round in 1..=rounds {
        // The first request of a node opens its connections.
        node.client.get("/readyz").await.expect(200);
        let ask = Ask::start(&node.client, &json!({ "input": round })).key(&fresh_key());
        let sent = tokio::spawn(ask.request().send());
        tokio::time::sleep(Duration::from_micros(dice.random_range(0..30_000))).await;
        node.kill().await;
        // Answered or not.
        sent.await.unwrap().ok();
        node = Served::start(&api, &token, &format!("node-{round}")).await;
        let answer = settled(&ask.by(&node.client)).await;
        repeats += usize::from(is_replay(&answer));
        told.push(run_of(&answer));
    }
    tell(&format!("killed nodes: seed {seed}, {rounds} rounds, {repeats} starts were done before the node died"));
    told.reverse();
    assert_eq!(runs(&api).await, told);
    node.kill().await;
}

/// A node in this process whose way to the database goes through a proxy.
async fn behind(api: &Api, seed: u64) -> (Proxy, Client) {
    let proxy = Proxy::start(Target::of_url(&api.world.database.url), seed).await;
    let database = Database { url: proxy.url(user(), api.world.database.name()) };
    let origin = serve(&database, config(), api.stop.clone()).await;
    (proxy, Client::new(&origin, Some(mint(&api.world, "acme").await)))
}

/// R-C26, R-K26: the connection is cut in the middle of the transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_in_the_middle_leaves_nothing_half_done() {
    let api = noops().await;
    let (proxy, client) = behind(&api, 1).await;
    let body = json!({ "input": 1, "run_name": "order-1", "labels": { "a": "b" }, "signal": { "name": "go" } });
    let ask = Ask::start(&client, &body).key(&fresh_key());
    let gate = Gate::close(&api).await;
    let first = begin(&ask);
    until_held(&api, 1).await;
    proxy.set(Way::Refuse);
    proxy.cut();
    let first = first.await.unwrap();
    first.refused(503, "runner_unavailable");
    gate.open().await;
    let nothing =
        "select (select count(*) from runs) + (select count(*) from run_names) + (select count(*) from run_labels)
                     + (select count(*) from signals) + (select count(*) from request_keys)";
    until_held(&api, 0).await;
    assert_eq!(count(&api.world.database, nothing).await, 0);
    let answer = settled(&ask.by(&api.acme)).await;
    done(&answer, 201);
    assert_eq!(runs(&api).await, [run_of(&answer)]);
}

/// R-C26, R-K01, R-K16: answers of the database are lost, also those to a commit: whoever asks again finds what there
/// is.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_found_by_whoever_asks_again() {
    let seed = seed();
    let api = noops().await;
    let (proxy, client) = behind(&api, seed).await;
    client.get("/readyz").await.expect(200);
    proxy.lose(15);
    let (mut told, mut lost, mut repeats) = (Vec::new(), 0, 0);
    for n in 0..30 {
        let ask = Ask::start(&client, &json!({ "input": n, "labels": { "n": n.to_string() } })).key(&fresh_key());
        let mut tries = 0;
        let answer = loop {
            tries += 1;
            assert!(tries < 200, "it never came through");
            let answer = ask.send().await;
            match answer.status {
                201 => break answer,
                409 => drop(answer.refused(409, "idempotency_in_flight")),
                _ => drop(answer.refused(503, "runner_unavailable")),
            }
        };
        lost += tries - 1;
        repeats += usize::from(is_replay(&answer));
        told.push(run_of(&answer));
    }
    tell(&format!("lost answers: seed {seed}, {lost} requests failed, {repeats} of them had been done"));
    assert!(lost > 0, "no answer was lost: nothing was shown");
    told.reverse();
    assert_eq!(runs(&api).await, told);
}
