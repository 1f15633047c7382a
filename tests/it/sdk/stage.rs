//! A world in which the samples of one language are deployed, and what is seen of a run afterwards: the provider's books, the
//! ledger, the output.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use deedbox::config::{Config, DirectoryConfig, HostConfig};
use deedbox::policy::Policy;
use deedbox::store::ledger;
use deedbox::store::signal::{self, Delivered, Delivery};
use deedbox_books::{Arrival, Entry, Options};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use uuid::Uuid;

use super::Language;
use crate::harness::cell::{Kind, everything, work_until_settled};
use crate::harness::nats::Nats;
use crate::harness::{TENANT, World, committed, config, deploy_version, raw};

/// What every provider of CSV files has here.
pub const CSV: &str = "name,amount_cents\nada,1000\ngrace,250\nalan,-50\n";

const ACTIVITIES: [&str; 13] = [
    "charge-once",
    "welcome-user",
    "import-csv",
    "wait-for-webhook",
    "reject-as-data",
    "keys",
    "fail",
    "panic",
    "spend",
    "checkpointed",
    "publish",
    "log",
    "echo",
];

/// The samples of a language.
#[derive(Debug)]
pub struct Samples {
    pub language: Language,
    pub component: Vec<u8>,
}

/// One world with the samples in it.
pub struct Stage {
    pub language: Language,
    pub world: World,
    pub config: Config,
    /// Where `exports/` leads.
    root: TempDir,
    /// Where the CSV file is.
    pub source: String,
    digest: [u8; 32],
    profile: &'static str,
    nats: Option<Nats>,
}

/// What a provider had before.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    arrivals: usize,
    applied: usize,
}

impl Samples {
    pub async fn stage(self, kind: Kind) -> Stage {
        self.stage_with(kind, None, json!({})).await
    }

    /// With a message server, and more said by the deployments.
    pub async fn stage_with(self, kind: Kind, nats: Option<Nats>, policy: Value) -> Stage {
        let Self { language, component } = self;
        let root = tempfile::tempdir().unwrap();
        let config = patient(&root);
        let (keyless, profile) = if kind == Kind::Keyed { (false, "stripe") } else { (true, "keyless") };
        let world = World::with(Options { keyless, convention: None }, config.clone()).await;
        let digest = upload(&world, language.name, component).await;
        let source = format!("http://{}", raw::serve_text(CSV).await);
        let stage = Stage { language, world, config, root, source, digest, profile, nats };
        for activity in ACTIVITIES {
            stage.deploy(activity, &policy).await;
        }
        stage
    }
}

impl Stage {
    /// The activity `plain-http` of another component of the language.
    pub async fn deploy_plain_http(&mut self, component: Vec<u8>) {
        self.digest = upload(&self.world, self.language.name, component).await;
        self.deploy("plain-http", &json!({})).await;
    }

    /// The next version of an activity, with more said by its deployment.
    pub async fn deploy(&self, activity: &str, more: &Value) {
        let origin = self.world.origin();
        let mut policy = json!({
            "egress": { "allow": [origin, self.source] },
            "providers": { &origin: self.profile },
            "retry": { "max_attempts": 500, "initial_interval": "20ms", "backoff_coefficient": 1.0, "jitter": "none" },
            "files": { "allow": ["exports"] },
        });
        if let Some(nats) = &self.nats {
            policy["messaging"] = json!({ "server": nats.url() });
        }
        policy.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let policy = serde_json::to_string(&Policy::parse(&policy.to_string()).unwrap()).unwrap();
        let store = self.world.node.store();
        deploy_version(store, TENANT, activity, &self.digest, activity, &policy).await.unwrap();
    }

    /// Works until the run has ended or waits.
    pub async fn settle(&self, run: Uuid) {
        work_until_settled(&self.world, &self.world.node, run).await;
    }

    /// Starts a run, works until it has ended or waits, and gives it.
    pub async fn run(&self, activity: &str, input: Value) -> Uuid {
        let run = self.world.start(activity, input).await;
        self.settle(run).await;
        run
    }

    pub async fn mark(&self) -> Mark {
        let (arrivals, applied) = (self.world.books.arrivals().await, self.world.books.applied().await);
        Mark { arrivals: arrivals.unwrap().len(), applied: applied.unwrap().len() }
    }

    /// Every request since then.
    pub async fn arrivals(&self, since: Mark) -> Vec<Arrival> {
        self.world.books.arrivals().await.unwrap().split_off(since.arrivals)
    }

    /// Everything that was applied since then.
    pub async fn applied(&self, since: Mark) -> Vec<Entry> {
        self.world.books.applied().await.unwrap().split_off(since.applied)
    }

    /// The effects of a run, in the order of their first sends.
    pub async fn effects(&self, run: Uuid) -> Vec<ledger::Entry> {
        ledger::list_of_run(self.world.node.store(), TENANT, run, &everything()).await.unwrap()
    }

    pub async fn signal(&self, run: Uuid, name: &str, payload: Value) {
        let delivery = Delivery { name: name.to_owned(), payload: payload.to_string(), idempotency_key: None };
        let store = self.world.node.store();
        let delivered = committed(store, async |tx| signal::deliver(tx, TENANT, run, &delivery, 100).await).await;
        assert_eq!(delivered, Delivered::Fresh);
    }

    /// How many requests ever arrived before this mark.
    pub fn arrived(&self, since: Mark) -> u64 {
        since.arrivals as u64
    }

    /// How many were ever applied before this mark.
    pub fn booked(&self, since: Mark) -> u64 {
        since.applied as u64
    }

    /// The file that a run wrote to `exports/NAME`.
    pub fn file(&self, name: &str) -> String {
        let path = self.folder().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// The names of all files that runs have left.
    pub fn files(&self) -> Vec<String> {
        let entries: Vec<std::fs::DirEntry> =
            std::fs::read_dir(self.folder()).map(|entries| entries.flatten().collect()).unwrap_or_default();
        let mut names: Vec<_> = entries.iter().map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn nats(&self) -> &Nats {
        self.nats.as_ref().unwrap()
    }

    fn folder(&self) -> PathBuf {
        self.root.path().join(TENANT)
    }
}

/// A server with the stream `ORDERS`, which takes `orders.>`.
pub async fn orders() -> Nats {
    let server = Nats::start().await;
    server.stream("ORDERS", Duration::from_secs(120)).await;
    server
}

/// The limits of guests are those of a node for which nobody has set any. No lease, renewal or time-out is due by itself.
fn patient(root: &TempDir) -> Config {
    let mut config = config();
    let HostConfig { max_instances, compiler, .. } = config.host;
    // The limits of a node whose operator has set none.
    config.host = HostConfig { max_instances, compiler, ..HostConfig::default() };
    config.worker.lease_ms = 300_000;
    config.gateway.default_send_ms = 300_000;
    config.gateway.max_send_ms = 300_000;
    config.signals.wait_ms = 200;
    let exports = DirectoryConfig { path: root.path().to_owned(), tenants: Vec::new() };
    config.files.directories.insert("exports".to_owned(), exports);
    config
}

type Compiled = Mutex<HashMap<&'static str, Arc<OnceCell<()>>>>;

/// Large components take many seconds to compile, so only one test of the process does.
static COMPILED: LazyLock<Compiled> = LazyLock::new(Compiled::default);

/// Stores the samples in the world of a test; compiled code comes from the cache that all share.
async fn upload(world: &World, language: &'static str, component: Vec<u8>) -> [u8; 32] {
    let once = COMPILED.lock().unwrap().entry(language).or_default().clone();
    let upload = async || world.node.registry().upload(TENANT, component.clone().into()).await.unwrap().digest;
    once.get_or_init(async || _ = upload().await).await;
    upload().await
}
