//! A tenant on a node, with a provider beside it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deedbox::clock::{Clock, SystemClock};
use deedbox::config::Config;
use deedbox::node::{Node, NodeSettings};
use deedbox::policy::{Policy, Span};
use deedbox::probe::{self, Probe};
use deedbox::store::activity::NewVersion;
use deedbox::store::duty::Rescued;
use deedbox::store::lease::{Leased, Place, Rooms, Wanted};
use deedbox::store::provenance::By;
use deedbox::store::start::NewRun;
use deedbox::store::{self, Store};
use deedbox_books::{Behaviour, Books, Options, Provider};
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::{Database, committed, component, process, shared};

pub const TENANT: &str = "acme";

/// A node, its database and a provider. The provider stops with it.
pub struct World {
    pub database: Database,
    pub node: Node,
    pub books: Books,
    pub dir: TempDir,
    _provider: tokio::task::JoinHandle<()>,
}

/// A started run.
pub type Run = Uuid;

impl World {
    /// A keyed provider.
    pub async fn keyed() -> Self {
        Self::with(Options { keyless: false, convention: None }, config()).await
    }

    /// A provider that takes no keys.
    pub async fn keyless() -> Self {
        Self::with(Options { keyless: true, convention: None }, config()).await
    }

    pub async fn with(options: Options, config: Config) -> Self {
        Self::on(Database::fresh().await, options, config).await
    }

    /// On a database that has the schema and no tenant.
    pub async fn on(database: Database, options: Options, config: Config) -> Self {
        shared::compile_guests_once(&database).await;
        let dir = tempfile::tempdir().unwrap();
        let (books, provider) = provider(dir.path().join("books"), options).await;
        let node = node(&database, "one", config, probe::none()).await;
        store::tenant::create(node.store(), TENANT).await.unwrap();
        Self { database, node, books, dir, _provider: provider }
    }

    /// Another worker on the same database.
    pub async fn second(&self, name: &str, probe: Arc<dyn Probe>) -> Node {
        node(&self.database, name, config(), probe).await
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.books.address)
    }

    pub fn charges(&self) -> String {
        format!("{}/v1/charges", self.origin())
    }

    pub async fn script(&self, behaviours: &[Behaviour]) {
        self.books.script(behaviours).await.unwrap();
    }

    /// Uploads the test guests and deploys one of their activities with a policy that merges over the usual one: egress to
    /// the provider, under a profile, and quick retries.
    pub async fn deploy(&self, activity: &str, profile: &str, policy: Value) {
        self.deploy_from("deedbox_test_guests.wasm", activity, profile, policy).await;
    }

    pub async fn deploy_from(&self, file: &str, activity: &str, profile: &str, policy: Value) {
        let mut whole = json!({
            "egress": { "allow": [self.origin()] },
            "providers": { self.origin(): profile },
            "retry": { "initial_interval": "1ms", "jitter": "none" },
        });
        merge(&mut whole, policy);
        let uploaded = self.node.registry().upload(TENANT, component(file).into()).await.unwrap();
        let policy = serde_json::to_string(&Policy::parse(&whole.to_string()).unwrap()).unwrap();
        deploy_version(self.node.store(), TENANT, activity, &uploaded.digest, activity, &policy).await.unwrap();
    }

    pub async fn start(&self, activity: &str, input: Value) -> Run {
        self.start_as(Uuid::now_v7(), activity, input).await
    }

    /// A run with an id that the test chooses: runs of one id in two worlds have the same keys.
    pub async fn start_as(&self, run_id: Uuid, activity: &str, input: Value) -> Run {
        let version = store::activity::find_latest(self.node.store(), TENANT, activity).await.unwrap().unwrap();
        let Policy { retry, timeouts, .. } = Policy::parse(&version.policy).unwrap();
        let ms = |span: Option<Span>| span.map(|span| span.0.as_millis() as u64);
        let run = NewRun {
            max_attempts: retry.max_attempts as i32,
            retry: serde_json::to_string(&retry).unwrap(),
            schedule_to_start_ms: ms(timeouts.schedule_to_start),
            schedule_to_close_ms: ms(timeouts.schedule_to_close),
            ..NewRun::plain(run_id, activity, version.version, &input.to_string())
        };
        committed(self.node.store(), async |tx| store::start::start(tx, TENANT, &run, 100).await).await;
        run.run_id
    }

    /// Works until nothing is due for half a second, in this process.
    pub async fn work(&self) {
        work(&self.node).await;
    }

    pub async fn run(&self, run: Run) -> store::run::Run {
        store::run::find(self.node.store(), TENANT, run).await.unwrap().unwrap()
    }

    pub async fn output(&self, run: Run) -> Value {
        let run = self.run(run).await;
        assert_eq!(run.state, "completed", "{run:?}");
        serde_json::from_str(&run.output.unwrap()).unwrap()
    }

    pub async fn failure(&self, run: Run) -> Value {
        let run = self.run(run).await;
        assert_eq!(run.state, "failed", "{run:?}");
        serde_json::from_str(&run.failure.unwrap()).unwrap()
    }

    pub async fn attempts(&self, run: Run) -> Vec<store::run::Attempt> {
        store::run::list_attempts(self.node.store(), TENANT, run, None, 10_000).await.unwrap()
    }

    /// The outcomes of a run's attempts, `-` for one that has not ended.
    pub async fn outcomes(&self, run: Run) -> Vec<String> {
        let attempts = self.attempts(run).await;
        attempts.into_iter().map(|a| a.outcome.unwrap_or_else(|| "-".to_owned())).collect()
    }

    pub async fn sends(&self, run: Run) -> Vec<store::send::Send> {
        store::send::list_of_run(self.node.store(), TENANT, run).await.unwrap()
    }

    /// Lets every lease run out.
    pub async fn expire_leases(&self) {
        self.database
            .execute("update runs set due_at = deedbox_now() - interval '1 second' where state = 'running'")
            .await;
    }
}

/// Deploys a version, as the API does.
pub async fn deploy_version(
    store: &Store,
    tenant: &str,
    activity: &str,
    digest: &[u8],
    export: &str,
    policy: &str,
) -> store::Result<i32> {
    let max_running = Policy::parse(policy).unwrap().limits.max_running.map(|most| most as i32);
    let by = &By::Operator;
    let new = NewVersion { activity, digest, export, policy, max_running, by, signed: None };
    store::activity::deploy(store, tenant, new).await
}

/// Leases runs as a worker does, after what maintenance makes ready.
pub async fn lease(store: &Store, worker: &str, limit: i64, ttl_ms: u64) -> Vec<Leased> {
    rescue(store).await;
    store::duty::promote(store, 1_000).await.unwrap();
    let (after, rooms) = (Place::default(), Rooms::default());
    let wanted = Wanted { worker: worker.to_owned(), limit, ttl_ms, batch: Uuid::new_v4(), after, rooms };
    store::lease::lease(store, &wanted).await.unwrap().leased
}

/// Takes back all runs whose lease is over.
pub async fn rescue(store: &Store) -> Rescued {
    store::duty::rescue(store, 1_000_000, r#"{"code":"worker-lost"}"#, r#"{"code":"timed-out"}"#).await.unwrap()
}

/// Settings with short times, for tests.
pub fn config() -> Config {
    let mut config = Config::default();
    config.worker.poll_ms = 50;
    config.worker.grace_ms = 2_000;
    config.gateway.default_send_ms = 5_000;
    config.gateway.max_send_ms = 10_000;
    config.gateway.in_flight_wait_ms = 300;
    config.host.max_instances = 16;
    // This process is no compiler.
    config.host.compiler = Some(process::program("deedbox"));
    config
}

pub async fn work(node: &Node) {
    let mut idle = 0;
    while idle < 10 {
        if node.worker().run_once().await.unwrap() {
            idle = 0;
        } else {
            idle += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// One attempt, once one is due.
pub async fn work_once(node: &Node) {
    let give_up = Instant::now() + Duration::from_secs(30);
    while !node.worker().run_once().await.unwrap() {
        assert!(Instant::now() < give_up, "no attempt is due");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub async fn node(database: &Database, name: &str, config: Config, probe: Arc<dyn Probe>) -> Node {
    node_by(database, name, config, Arc::new(SystemClock), probe).await
}

/// A node that goes by another clock.
pub async fn node_by(
    database: &Database,
    name: &str,
    config: Config,
    clock: Arc<dyn Clock>,
    probe: Arc<dyn Probe>,
) -> Node {
    let settings = NodeSettings {
        database_url: database.url.clone(),
        master_keys: shared::master_keys(),
        cache_dir: shared::cache_dir(),
        config,
        name: name.to_owned(),
    };
    Node::open_with(settings, clock, probe).await.unwrap()
}

/// A provider that keeps its books there, and the task that serves it.
pub async fn provider(dir: PathBuf, options: Options) -> (Books, tokio::task::JoinHandle<()>) {
    std::fs::create_dir_all(&dir).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address: SocketAddr = listener.local_addr().unwrap();
    let serving = tokio::spawn(async move {
        Provider::serve(listener, dir, options, std::future::pending()).await.unwrap();
    });
    (Books { address }, serving)
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Value::Null), value));
        }
        (into, from) => *into = from,
    }
}
