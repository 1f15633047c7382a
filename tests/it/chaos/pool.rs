//! Few connections and many guests that wait for their provider: nobody holds a connection while it waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deedbox_books::{Behaviour, Options};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{SOON, until};
use crate::api::client::Client;
use crate::harness::{TENANT, World, config, long, tell};
use deedbox::store::token::NewToken;
use deedbox::{store, token};

const POOL: u32 = 5;
const WAITING: usize = 50;
/// One request in a hundred may take longer. A connection that is held would cost as long as the provider takes.
const FINE: Duration = Duration::from_millis(1_500);

struct Served {
    world: World,
    client: Client,
    stop: CancellationToken,
    parts: tokio::task::JoinHandle<()>,
}

impl Served {
    /// A node that serves and works over a pool of few connections.
    async fn begin() -> Self {
        let mut config = config();
        config.database.max_connections = POOL;
        config.host.max_instances = 2 * WAITING as u32;
        config.gateway.default_send_ms = 60_000;
        config.gateway.max_send_ms = 60_000;
        config.worker.lease_ms = 3_000;
        let world = World::with(Options { keyless: false, convention: None }, config.clone()).await;
        let node = Arc::new(crate::harness::node(&world.database, "few", config, deedbox::probe::none()).await);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let (token_id, text, hash) = token::mint(TENANT);
        let new = NewToken::whole(TENANT, token_id, hash, "a test");
        store::token::create(world.node.store(), TENANT, &new).await.unwrap();
        let stop = CancellationToken::new();
        let ended = stop.clone();
        let parts = tokio::spawn(async move {
            let (served, ()) = tokio::join!(node.serve(listener, ended.clone()), node.work(ended.clone()));
            served.unwrap();
        });
        Self { client: Client::new(&origin, Some(text)), world, stop, parts }
    }

    /// The times of requests of all kinds, and the longest time that a session was idle in a transaction, while the
    /// providers are waited for.
    async fn measure(&self, run: &str, lasts: Duration) -> (Vec<Duration>, f64) {
        let mut connection = self.world.database.connect().await;
        let idle = "select coalesce(max(extract(epoch from clock_timestamp() - state_change)), 0)::float8
                    from pg_stat_activity
                    where datname = current_database() and state like 'idle in transaction%'";
        let (began, mut times, mut longest) = (Instant::now(), Vec::new(), 0.0_f64);
        while began.elapsed() < lasts || times.len() < 100 {
            for path in ["/v1/runs?limit=5".to_owned(), format!("/v1/runs/{run}"), "/readyz".to_owned()] {
                let asked = Instant::now();
                self.client.get(&path).await.expect(200);
                times.push(asked.elapsed());
            }
            let asked = Instant::now();
            self.client.post("/v1/activities/noop/runs", &json!({})).await.expect(201);
            times.push(asked.elapsed());
            longest = longest.max(sqlx::query_scalar(idle).fetch_one(&mut connection).await.unwrap());
        }
        times.sort_unstable();
        (times, longest)
    }
}

/// F-I05.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_guests_that_wait_for_their_provider_hold_no_connection() {
    let served = Served::begin().await;
    let world = &served.world;
    world.script(&vec![Behaviour::HoldAfterApply; WAITING]).await;
    world.deploy("send", "stripe", json!({ "timeouts": { "start_to_close": "120s" } })).await;
    world.deploy("noop", "stripe", json!({})).await;
    let call = json!({ "method": "POST", "url": world.charges(), "json": {} });
    let mut runs = Vec::new();
    for _ in 0..WAITING {
        runs.push(world.start("send", json!({ "calls": [call], "fail_on_error": true })).await);
    }
    world.books.wait_for_applied(WAITING as u64, SOON).await.unwrap();

    let lasts = Duration::from_secs(if long() { 20 } else { 3 });
    let (times, idle) = served.measure(&runs[0].to_string(), lasts).await;
    let p99 = times[times.len() * 99 / 100];
    world.books.release().await.unwrap();
    for run in &runs {
        until("the run has ended", async || world.run(*run).await.ended_at.is_some()).await;
        // A lease that could not be renewed would have cost an attempt.
        assert_eq!(world.outcomes(*run).await, ["completed"]);
    }
    tell(&format!(
        "chaos pool: {POOL} connections, {WAITING} guests at the provider for {} s; {} requests, p50 {:?}, p99 {p99:?}, \
         longest idle in a transaction {idle:.3} s; {} applied",
        lasts.as_secs(),
        times.len(),
        times[times.len() / 2],
        world.books.applied().await.unwrap().len()
    ));
    assert!(p99 < FINE, "{p99:?}");
    assert!(idle <= 1.0, "{idle}");
    assert_eq!(world.books.applied().await.unwrap().len(), WAITING);
    served.stop.cancel();
    served.parts.await.unwrap();
}
