//! The HTTP API, over sockets: a node serves, with or without working, and everything is asked of it as any client would.

mod activities;
pub mod client;
mod control;
mod described;
mod effects;
mod events;
mod fuzzed;
pub mod hooks;
mod isolation;
mod limits;
mod modules;
mod openapi;
mod outage;
mod pages;
mod provenance;
mod providers;
mod refusals;
mod request_keys;
mod routes;
mod runs;
mod scopes;
mod signals;
mod signatures;
mod slow;
mod states;
pub mod tenant_limits;
mod tenants;
pub mod tls;
mod versions;
pub mod wire;
mod witness;

use std::sync::Arc;
use std::time::Duration;

use deedbox::config::Config;
use deedbox::{probe, store};
use deedbox_books::Options;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::own_server::user;
use crate::harness::proxy::{Proxy, Target, Way};
use crate::harness::{Database, World, component, config, node, tokens};
use crate::worker::until;
use client::Client;

const WORKED_WITHIN: Duration = Duration::from_secs(30);
pub const GUESTS: &str = "deedbox_test_guests.wasm";

/// A served world. Its tenant `acme` has a token.
pub struct Api {
    pub world: World,
    pub acme: Client,
    pub origin: String,
    stop: CancellationToken,
}

impl Drop for Api {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Api {
    /// A node that serves and works.
    pub async fn working() -> Self {
        let api = Self::idle().await;
        let worker = Arc::new(node(&api.world.database, "worker", config(), probe::none()).await);
        let stop = api.stop.clone();
        tokio::spawn(async move { worker.work(stop).await });
        api
    }

    /// A node that only serves; runs are worked on by `work`.
    pub async fn idle() -> Self {
        Self::with(World::keyed().await, config()).await
    }

    /// The same, beside a provider that takes no keys.
    pub async fn keyless() -> Self {
        Self::with(World::with(Options { keyless: true, convention: None }, config()).await, config()).await
    }

    pub async fn with(world: World, config: Config) -> Self {
        let stop = CancellationToken::new();
        let origin = serve(&world.database, config, stop.clone()).await;
        let acme = Client::new(&origin, Some(mint(&world, "acme").await));
        Self { world, acme, origin, stop }
    }

    /// A client of another tenant, which is made if need be.
    pub async fn tenant(&self, name: &str) -> Client {
        store::tenant::create(self.world.node.store(), name).await.unwrap();
        self.acme.with_token(&mint(&self.world, name).await)
    }

    pub async fn admin(&self) -> Client {
        self.acme.with_token(&mint(&self.world, store::tenant::ADMIN).await)
    }

    pub fn nobody(&self) -> Client {
        Client::new(&self.origin, None)
    }

    /// Uploads a component as `acme`; gives its digest.
    pub async fn upload(&self, file: &str) -> String {
        let answer = self.acme.upload(component(file)).await;
        assert!(matches!(answer.status, 200 | 201), "{answer:?}");
        answer.json()["digest"].as_str().unwrap().to_owned()
    }

    /// Uploads the test guests and deploys the activity of this name.
    pub async fn deploy(&self, activity: &str, policy: Value) -> Value {
        let module = self.upload(GUESTS).await;
        let body = json!({ "module": module, "policy": policy });
        self.acme.put(&format!("/v1/activities/{activity}"), &body).await.expect(201)
    }

    /// Lets a deployment reach the provider under a profile, and retry quickly.
    pub fn policy(&self, profile: &str) -> Value {
        let origin = self.world.origin();
        json!({
            "egress": { "allow": [origin] },
            "providers": { origin: profile },
            "retry": { "initial_interval": "1ms", "jitter": "none" },
        })
    }

    /// Starts a run; gives its id.
    pub async fn start(&self, activity: &str, input: Value) -> String {
        let answer = self.acme.post(&format!("/v1/activities/{activity}/runs"), &json!({ "input": input })).await;
        answer.expect(201)["run_id"].as_str().unwrap().to_owned()
    }

    /// Works in this process until every run has ended or waits for an answer.
    pub async fn work(&self) {
        let mut connection = self.world.database.connect().await;
        let open = "select count(*) from runs where paused_at is null and (rank is not null or due_at is not null)";
        let working = async {
            while sqlx::query_scalar::<_, i64>(open).fetch_one(&mut connection).await.unwrap() > 0 {
                if !self.world.node.worker().run_once().await.unwrap() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
        };
        tokio::time::timeout(WORKED_WITHIN, working).await.unwrap();
    }

    /// A worker of this process, at work for as long as the world lives.
    pub fn begin_working(&self) {
        tokio::spawn(self.world.node.worker().clone().run(self.stop.clone()));
    }

    /// A run as it is now.
    pub async fn run(&self, run: &str) -> Value {
        self.acme.get(&format!("/v1/runs/{run}")).await.expect(200)
    }

    /// Waits until a run has come to a state.
    pub async fn until_state(&self, run: &str, state: &str) {
        until(&format!("the run is {state}"), async || self.run(run).await["state"] == state).await;
    }

    /// The outcomes of a run's attempts, `-` for one that has not ended.
    pub async fn outcomes(&self, run: &str) -> Vec<String> {
        let attempts = client::whole_list(&self.acme.get(&format!("/v1/runs/{run}/attempts")).await);
        attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap_or("-").to_owned()).collect()
    }

    /// Waits for a run to end; gives its snapshot.
    pub async fn ended(&self, run: &str) -> Value {
        // A machine at work on many tests takes its time.
        for _ in 0..5 {
            let run = self.acme.get(&format!("/v1/runs/{run}?wait=30")).await.expect(200);
            if run["ended_at"] != Value::Null {
                return run;
            }
        }
        panic!("the run {run} does not end");
    }

    pub async fn effects_of(&self, run: &str) -> Vec<Value> {
        client::whole_list(&self.acme.get(&format!("/v1/runs/{run}/effects")).await)
    }

    /// A call of the guest `send` to the provider's charges.
    pub fn charge(&self, name: &str) -> Value {
        json!({ "method": "POST", "url": self.world.charges(), "json": { "n": 1 }, "identity": { "named": name } })
    }
}

/// Serves the database on a port of its own; gives the address.
pub async fn serve(database: &Database, config: Config, stop: CancellationToken) -> String {
    let node = Arc::new(node(database, "api", config, probe::none()).await);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { node.serve(listener, stop).await.unwrap() });
    origin
}

/// Serves a database that is away for as long as the proxy is there; gives the address.
pub async fn serve_alone(stop: CancellationToken) -> (String, Proxy) {
    let database = Database::fresh().await;
    let proxy = Proxy::start(Target::of_url(&database.url), 1).await;
    let behind = Database { url: proxy.url(user(), database.name()) };
    let origin = serve(&behind, config(), stop).await;
    proxy.set(Way::Refuse);
    proxy.cut();
    (origin, proxy)
}

/// Makes a token of a tenant.
pub async fn mint(world: &World, tenant: &str) -> String {
    tokens::mint(world.node.store(), tenant).await
}

/// An id that no run has.
pub fn no_run() -> String {
    Uuid::now_v7().to_string()
}

/// An id that no module and no effect has.
pub fn no_hash() -> String {
    "0".repeat(64)
}
