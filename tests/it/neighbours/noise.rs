//! The worst that a tenant can do, each kind for as long as it is let.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::stage::{ELSEWHERE, Stage, charge, deploy, policy};
use crate::api::GUESTS;
use crate::api::client::Client;
use crate::api::wire::address;
use crate::harness::component;
use crate::wat_component::WatComponent;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    Spin,
    Memory,
    Stack,
    Tables,
    Logs,
    HostCalls,
    Effects,
    Together,
    Silence,
    SlowReads,
    Streams,
    Starts,
    Uploads,
}

/// Runs that are wanted at once: more than there are places.
const RUNS: usize = 24;
/// Connections that read slowly or not at all.
const READERS: usize = 48;
/// Runs that wait before the first phase begins, and clients that start more.
const BACKLOG: usize = 10_000;
const STARTERS: usize = 16;
const UPLOADERS: usize = 3;
/// The guests that have an ordinary HTTP client.
const WITH_CLIENT: &str = "deedbox_test_guests_wasi_http.wasm";
const HEARD_WITHIN: Duration = Duration::from_secs(20);

/// Grows a table until it cannot, for ever.
const GROW: &str = "(loop $on (drop (table.grow 0 (ref.null func) (i32.const 1000))) (br $on))";

impl Noise {
    /// The activity that its runs are of.
    const fn activity(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Memory => "bomb",
            Self::Stack => "recurse",
            Self::Tables => "grow-tables",
            Self::Logs => "print",
            Self::HostCalls => "wait-busily",
            Self::Effects | Self::Silence => "send",
            Self::Together => "fetch",
            Self::SlowReads | Self::Streams | Self::Starts | Self::Uploads => "noop",
        }
    }

    pub fn activities() -> [&'static str; 9] {
        ["spin", "bomb", "recurse", "grow-tables", "print", "wait-busily", "send", "fetch", "noop"]
    }

    /// Deploys what the noisy tenant needs for it.
    pub async fn deploy(self, stage: &Stage) {
        let mut policy = policy(&stage.noisy_provider);
        policy["limits"] = json!({ "memory_bytes": 64 << 20 });
        let tables = WatComponent {
            names: vec!["grow-tables"],
            core: "(table 1 funcref)",
            run: GROW,
            ..WatComponent::default()
        };
        let bytes = match self {
            Self::Tables => tables.bytes(),
            Self::Together => component(WITH_CLIENT),
            _ => component(GUESTS),
        };
        // A log is written when its attempt ends.
        let time = if self == Self::Logs { "1s" } else { "60s" };
        policy["timeouts"] = json!({ "start_to_close": time });
        deploy(&stage.noisy, bytes, self.activity(), policy).await;
        if self == Self::Starts {
            backlog(stage).await;
        }
    }
}

/// Noise that is being made. Its clients stop when it is dropped.
pub struct Din {
    noise: Noise,
    clients: JoinSet<()>,
}

/// Begins, and returns once it can be heard.
pub async fn begin(stage: &Stage, noise: Noise) -> Din {
    let mut din = Din { noise, clients: JoinSet::new() };
    let before = stage.attempts().await.1;
    match noise {
        Noise::Spin | Noise::Memory | Noise::Stack | Noise::Tables | Noise::HostCalls => {
            start_many(stage, noise, json!({})).await;
        }
        Noise::Logs => start_many(stage, noise, json!({ "lines": u32::MAX, "bytes": 60 })).await,
        Noise::Effects => start_many(stage, noise, json!({ "calls": many_charges(stage) })).await,
        Noise::Together => start_many(stage, noise, json!({ "calls": many_posts(stage), "together": true })).await,
        Noise::Silence => silence(stage, &mut din).await,
        Noise::SlowReads | Noise::Streams => readers(stage, noise, &mut din).await,
        Noise::Starts => starts(stage, &mut din).await,
        Noise::Uploads => (0..UPLOADERS).for_each(|_| din.spawn(uploads(stage.noisy.clone()))),
    }
    if !matches!(noise, Noise::SlowReads | Noise::Streams | Noise::Uploads) {
        heard(stage, before).await;
    }
    din
}

impl Din {
    fn spawn(&mut self, client: impl Future<Output = ()> + Send + 'static) {
        self.clients.spawn_on(client, ELSEWHERE.handle());
    }

    pub async fn end(mut self, stage: &Stage) {
        assert!(self.clients.try_join_next().is_none(), "a noisy client has ended by itself");
        self.clients.shutdown().await;
        if self.noise == Noise::Starts {
            // Those that wait are the next phase's.
            stage.noisy.post("/v1/activities/noop/pause", &json!({})).await;
            return stage.idle().await;
        }
        stage.calm().await;
    }
}

/// Waits until attempts of this phase have begun.
async fn heard(stage: &Stage, before: i64) {
    let give_up = Instant::now() + HEARD_WITHIN;
    while stage.attempts().await.1 < before + 8 {
        assert!(Instant::now() < give_up, "nothing is heard of the noisy tenant");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn start(client: &Client, activity: &str, input: &Value) -> String {
    let started = client.post(&format!("/v1/activities/{activity}/runs"), &json!({ "input": input })).await;
    started.expect(201)["run_id"].as_str().unwrap().to_owned()
}

async fn start_many(stage: &Stage, noise: Noise, input: Value) {
    for _ in 0..RUNS {
        start(&stage.noisy, noise.activity(), &input).await;
    }
}

fn many_charges(stage: &Stage) -> Vec<Value> {
    (0..3_000).map(|n| charge(&stage.noisy_provider, n)).collect()
}

fn many_posts(stage: &Stage) -> Vec<Value> {
    let url = format!("{}/v1/charges", stage.noisy_provider);
    let post = |n: usize| json!({ "method": "POST", "url": url, "headers": [["deedbox-effect", format!("post-{n}")]] });
    (0..300).map(post).collect()
}

/// A provider that takes every connection and says nothing.
async fn silence(stage: &Stage, din: &mut Din) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    din.spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            kept.push(stream);
        }
    });
    deploy(&stage.noisy, component(GUESTS), "send", policy(&origin)).await;
    let call = json!({ "method": "POST", "url": format!("{origin}/v1/charges"), "json": {}, "repeat": 1_000 });
    start_many(stage, Noise::Silence, json!({ "calls": [call] })).await;
}

/// Clients that ask for much and take a byte a second, or nothing. It begins once each has the begin of its answer: what is
/// to be seen here is what it costs to wait for them, not to answer them.
async fn readers(stage: &Stage, noise: Noise, din: &mut Din) {
    let large = start(&stage.noisy, "noop", &json!("x".repeat(900 << 10))).await;
    let path = match noise {
        Noise::Streams => "/v1/events?from=oldest".to_owned(),
        _ => format!("/v1/runs/{large}"),
    };
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", stage.noisy_token);
    let mut streams = Vec::new();
    for _ in 0..READERS {
        let mut stream = TcpStream::connect(address(&stage.origin)).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    for mut stream in streams {
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"HTTP/1.1 200");
        din.spawn(read_slowly(stream, noise == Noise::SlowReads));
    }
    // Something must go on that the streams would tell of.
    for n in 0..if noise == Noise::Streams { 4 } else { 0 } {
        din.spawn(start_for_ever(stage.noisy.clone(), n));
    }
}

async fn read_slowly(mut stream: TcpStream, at_all: bool) {
    let mut byte = [0];
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if at_all && stream.read_exact(&mut byte).await.is_err() {
            // Given up by the server: that is its right.
            std::future::pending::<()>().await;
        }
    }
}

/// What waits and more that comes, without end.
async fn starts(stage: &Stage, din: &mut Din) {
    stage.noisy.post("/v1/activities/noop/resume", &json!({})).await;
    for n in 0..STARTERS {
        din.spawn(start_for_ever(stage.noisy.clone(), n));
    }
}

/// Puts the runs there that all wait at once, until the first phase.
async fn backlog(stage: &Stage) {
    stage.noisy.post("/v1/activities/noop/pause", &json!({})).await;
    stage
        .database
        .execute(&format!(
            "insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, rank)
             select 'noisy', gen_random_uuid(), 'noop', 1, 'queued', 'null', '{{}}', 3, deedbox_now()
             from generate_series(1, {BACKLOG}) n"
        ))
        .await;
}

async fn start_for_ever(client: Client, number: usize) {
    loop {
        client.post("/v1/activities/noop/runs", &json!({ "input": number })).await;
    }
}

/// Components that nobody has compiled yet.
async fn uploads(client: Client) {
    static SALT: AtomicUsize = AtomicUsize::new(0);
    loop {
        let taken = client.upload(heavy(SALT.fetch_add(1, Ordering::Relaxed))).await;
        assert!(matches!(taken.status, 201 | 400 | 403 | 413 | 422 | 429 | 503), "{taken:?}");
    }
}

/// A component with thousands of functions that take time to compile, and in which `salt` makes all the difference.
fn heavy(salt: usize) -> Vec<u8> {
    let step = "(local.set 0 (i64.add (i64.mul (local.get 0) (local.get 0)) (i64.rotl (local.get 0) (i64.const 7))))";
    let functions = (0..1_500).map(|n| {
        format!(
            "(func (param i64) (result i64) (local.set 0 (i64.const {})) {} (local.get 0))",
            salt * 4096 + n,
            step.repeat(24)
        )
    });
    let functions: &'static str = functions.collect::<String>().leak();
    WatComponent { core: functions, ..WatComponent::default() }.bytes()
}
