//! What the benchmarks stand on: a private PostgreSQL with durable commits, a node, and a provider that keeps books.

#![allow(dead_code, reason = "each benchmark uses its own part")]

use std::path::PathBuf;
use std::sync::Arc;

use deedbox::clock::SystemClock;
use deedbox::config::Config;
use deedbox::gateway::vault::MasterKey;
use deedbox::node::{Node, NodeSettings};
use deedbox::policy::Policy;
use deedbox::postgres::{Server, Settings};
use deedbox::store::activity::NewVersion;
use deedbox::store::provenance::By;
use deedbox::store::start::NewRun;
use deedbox::{probe, store};
use deedbox_books::{Books, Options, Provider};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

pub const TENANT: &str = "bench";

/// A node on a database of its own.
pub struct Bench {
    pub runtime: Runtime,
    pub node: Arc<Node>,
    pub url: String,
    server: Option<Server>,
    dir: TempDir,
}

impl Bench {
    pub fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let dir = tempfile::Builder::new().prefix("deedbox-bench").tempdir().unwrap();
        open_to_all(&dir);
        let (server, url, node) = runtime.block_on(async {
            let settings = Settings { data_dir: dir.path().join("postgres"), bin_dir: None };
            let server = Server::start(settings).await.unwrap();
            store::create_database(&server.url("postgres"), "bench").await.unwrap();
            let url = server.url("bench");
            let mut config = Config::default();
            // This process is no compiler.
            config.host.compiler = Some(env!("CARGO_BIN_EXE_deedbox").into());
            let settings = NodeSettings {
                database_url: url.clone(),
                master_keys: MasterKey::read_or_create(&dir.path().join("master.key")).unwrap().into(),
                cache_dir: dir.path().join("cache"),
                config,
                name: "bench".to_owned(),
            };
            store::Store::connect(&url, 2).unwrap().migrate().await.unwrap();
            let node = Node::open_with(settings, Arc::new(SystemClock), probe::none()).await.unwrap();
            store::tenant::create(node.store(), TENANT).await.unwrap();
            (server, url, node)
        });
        Self { runtime, node: Arc::new(node), url, server: Some(server), dir }
    }

    /// Serves a keyed provider until the end of the process.
    pub fn provider(&self) -> Books {
        let dir = self.dir.path().join("books");
        std::fs::create_dir_all(&dir).unwrap();
        self.runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            tokio::spawn(Provider::serve(
                listener,
                dir,
                Options { keyless: false, convention: None },
                std::future::pending(),
            ));
            Books { address }
        })
    }

    /// Deploys an activity of a built component.
    pub fn deploy(&self, file: &str, activity: &str, policy: &str) {
        self.runtime.block_on(async {
            let uploaded = self.node.registry().upload(TENANT, component(file).into()).await.unwrap();
            let policy = serde_json::to_string(&Policy::parse(policy).unwrap()).unwrap();
            let store = self.node.store();
            let digest = &uploaded.digest;
            let new = NewVersion {
                activity,
                digest,
                export: activity,
                policy: &policy,
                max_running: None,
                by: &By::Operator,
                signed: None,
            };
            store::activity::deploy(store, TENANT, new).await.unwrap();
        });
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.runtime.block_on(server.stop());
        }
    }
}

pub async fn start(node: &Node, activity: &str, input: &str) -> Uuid {
    let run = NewRun::plain(Uuid::now_v7(), activity, 1, input);
    let mut tx = node.store().statement().await.unwrap();
    store::start::start(&mut tx, TENANT, &run, 100).await.unwrap();
    run.run_id
}

/// PostgreSQL's own user must be able to reach its directory.
fn open_to_all(dir: &TempDir) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[allow(clippy::disallowed_methods, reason = "the one place of the benchmarks that reads the environment")]
pub fn component(name: &str) -> Vec<u8> {
    let dir = std::env::var_os("DEEDBOX_COMPONENTS").map(PathBuf::from);
    let dir = dir.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/guests/components")));
    std::fs::read(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}; run `cargo xtask guests` first"))
}
