//! One node in a process of its own, its two tenants, and the provider of one of them.

use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use deedbox::store::{self, Store};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::noise::Noise;
use crate::api::GUESTS;
use crate::api::client::Client;
use crate::cli::program::{Running, deedbox, place, provider};
use crate::harness::{Database, component, shared, tokens};

/// Few places, so that they are soon taken.
pub const SETTINGS: &str = "
    host = { max_instances = 16 }
    gateway = { default_send_ms = 5000, max_send_ms = 10000 }
    worker = { grace_ms = 200 }";

/// The same without threads of the guests' own.
pub const SHARED_THREADS: &str = "
    host = { max_instances = 16, guest_threads = 0 }
    gateway = { default_send_ms = 5000, max_send_ms = 10000 }
    worker = { grace_ms = 200 }";

/// The other tenant's runs of one kind are wanted to end soon after they are asked to.
const CALM_WITHIN: Duration = Duration::from_secs(40);

/// Stands for other machines: here the noisy tenant's clients and its provider run, and take no processor from whoever else wants
/// one.
pub static ELSEWHERE: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1).enable_all().on_thread_start(|| _ = rustix::process::nice(19));
    builder.build().unwrap()
});

pub struct Stage {
    running: Running,
    pub origin: String,
    pub database: Database,
    store: Store,
    /// The tenant that goes on.
    pub quiet: Client,
    /// The tenant that does its worst.
    pub noisy: Client,
    pub noisy_token: String,
    /// A provider of each.
    quiet_provider: String,
    pub noisy_provider: String,
    _place: TempDir,
}

impl Stage {
    pub async fn set_up(settings: &str, noise: Noise) -> Self {
        let (place, database) = (place(), Database::fresh().await);
        let (running, origin) = node(place.path().join("node"), settings, &database).await;
        let quiet_provider = provider(place.path()).await.0;
        let other = place.path().join("other");
        std::fs::create_dir(&other).unwrap();
        let noisy_provider = ELSEWHERE.spawn(async move { provider(&other).await.0 }).await.unwrap();
        let store = Store::connect(&database.url, 2).unwrap();
        let mut clients = Vec::new();
        for tenant in ["quiet", "noisy"] {
            store::tenant::create(&store, tenant).await.unwrap();
            clients.push(tokens::mint(&store, tenant).await);
        }
        let nobody = Client::new(&origin, None);
        let (quiet, noisy) = (nobody.with_token(&clients[0]), nobody.with_token(&clients[1]));
        let noisy_token = clients.swap_remove(1);
        let stage = Self {
            running,
            origin,
            database,
            store,
            quiet,
            noisy,
            noisy_token,
            quiet_provider,
            noisy_provider,
            _place: place,
        };
        deploy(&stage.quiet, component(GUESTS), "send", policy(&stage.quiet_provider)).await;
        noise.deploy(&stage).await;
        stage
    }

    /// The input of `send` for one effect of the tenant that goes on.
    pub fn charge(&self, n: usize) -> Value {
        json!({ "calls": [charge(&self.quiet_provider, n)] })
    }

    /// How many of the noisy tenant's attempts are under way, and how many have begun at all.
    pub async fn attempts(&self) -> (i64, i64) {
        let counts = "select count(*) filter (where ended_at is null), count(*) from attempts where tenant = 'noisy'";
        sqlx::query_as(counts).fetch_one(&mut self.database.connect().await).await.unwrap()
    }

    /// Ends all runs of the noisy tenant.
    pub async fn calm(&self) {
        let give_up = std::time::Instant::now() + CALM_WITHIN;
        loop {
            for activity in Noise::activities() {
                self.noisy.post("/v1/runs/cancel", &json!({ "activity": activity })).await;
            }
            let alive = "select count(*) from runs where tenant = 'noisy' and ended_at is null";
            let alive: i64 = sqlx::query_scalar(alive).fetch_one(&mut self.database.connect().await).await.unwrap();
            if alive == 0 {
                return;
            }
            assert!(std::time::Instant::now() < give_up, "{alive} runs do not end");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Waits until no attempt of the noisy tenant is under way.
    pub async fn idle(&self) {
        let give_up = std::time::Instant::now() + CALM_WITHIN;
        while self.attempts().await.0 > 0 {
            assert!(std::time::Instant::now() < give_up, "attempts do not end");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub async fn end(mut self) {
        assert!(!self.running.has_ended(), "the node has ended by itself");
        self.store.close().await;
        self.running.signal("TERM").await;
        let ended = self.running.end().await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(!ended.err.contains("panicked"), "{ended:?}");
    }
}

/// Reaches a provider, and tries again for as long as a phase may last.
pub fn policy(provider: &str) -> Value {
    json!({
        "egress": { "allow": [provider] },
        "providers": { provider: "stripe" },
        "retry": { "max_attempts": 1_000, "initial_interval": "1ms", "max_interval": "1ms", "jitter": "none" },
    })
}

/// A call for `send`.
pub fn charge(provider: &str, n: usize) -> Value {
    let url = format!("{provider}/v1/charges");
    let named = json!({ "named": format!("charge-{n}") });
    json!({ "method": "POST", "url": url, "json": { "n": n }, "identity": named, "expect": 201 })
}

/// Uploads a component and deploys one of its activities.
pub async fn deploy(client: &Client, component: Vec<u8>, activity: &str, policy: Value) {
    let uploaded = client.upload(component).await;
    assert!(matches!(uploaded.status, 200 | 201), "{uploaded:?}");
    let body = json!({ "module": uploaded.json()["digest"], "policy": policy });
    client.put(&format!("/v1/activities/{activity}"), &body).await.expect(201);
}

/// A node that is everything, on a database of the tests' server; gives where it listens.
async fn node(dir: PathBuf, settings: &str, database: &Database) -> (Running, String) {
    let file = dir.with_extension("toml");
    std::fs::write(&file, settings).unwrap();
    let mut command = deedbox(&["--json", "up", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(&dir).arg("--config").arg(file).args(["--database-url", &database.url]);
    command.arg("--master-key-file").arg(shared::master_key_file());
    let mut running = Running::start(command, dir.with_extension("log"));
    let said: Value = serde_json::from_str(&running.line().await).unwrap();
    (running, said["address"].as_str().unwrap().to_owned())
}
