//! One node of a fleet, put together from its settings: what `serve`, `worker` and `up` run.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::{self, Api};
use crate::clock::{Clock, SystemClock};
use crate::config::Config;
use crate::gateway::files::{GrantError, Grants};
use crate::gateway::provider::ProfileError;
use crate::gateway::vault::{self, MasterKeys, Vault};
use crate::gateway::{self, ClosedWorld, Gateway};
use crate::host::Engine;
use crate::probe::{self, Probe};
use crate::registry::{Artefacts, CacheError, Registry};
use crate::store::{self, Store};
use crate::threads::{Kind, Threads};
use crate::wakes::Wakes;
use crate::worker::{self, Worker};

/// What one node needs to know.
pub struct NodeSettings {
    pub database_url: String,
    pub master_keys: MasterKeys,
    /// For compiled code. Each node has its own.
    pub cache_dir: PathBuf,
    pub config: Config,
    /// The worker's name.
    pub name: String,
}

impl std::fmt::Debug for NodeSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeSettings").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why a node cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Keys(vault::Error),
    #[error(transparent)]
    Cache(#[from] CacheError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Files(#[from] GrantError),
    #[error("the WebAssembly engine cannot start: {0}")]
    Engine(String),
    #[error("this node stands in a closed world and serves nobody")]
    Closed,
    #[error("the server stopped: {0}")]
    Serve(#[from] std::io::Error),
}

impl From<vault::Error> for Error {
    fn from(error: vault::Error) -> Self {
        match error {
            vault::Error::Store(error) => Self::Store(error),
            other => Self::Keys(other),
        }
    }
}

/// A node whose parts share one database pool, one engine and one gateway.
#[derive(Debug)]
pub struct Node {
    store: Store,
    gateway: Arc<Gateway>,
    registry: Arc<Registry>,
    worker: Arc<Worker>,
    config: Arc<Config>,
    /// It stands in a closed world.
    closed: bool,
}

impl Node {
    /// Puts the node together. Fails when the database cannot be reached, has not this version's schema, or has keys that none of
    /// the node's master keys opens. The schema is not touched.
    pub async fn open(settings: NodeSettings) -> Result<Self, Error> {
        Self::open_with(settings, Arc::new(SystemClock), probe::none()).await
    }

    /// The same, with a clock and a probe of a test's own.
    pub async fn open_with(
        settings: NodeSettings,
        clock: Arc<dyn Clock>,
        probe: Arc<dyn Probe>,
    ) -> Result<Self, Error> {
        Self::assemble(settings, clock, probe, None).await
    }

    /// A node whose calls go to the stand-ins of a closed world. It works, and never serves.
    pub async fn open_closed(
        settings: NodeSettings,
        clock: Arc<dyn Clock>,
        probe: Arc<dyn Probe>,
        world: Arc<dyn ClosedWorld>,
    ) -> Result<Self, Error> {
        Self::assemble(settings, clock, probe, Some(world)).await
    }

    async fn assemble(
        settings: NodeSettings,
        clock: Arc<dyn Clock>,
        probe: Arc<dyn Probe>,
        closed: Option<Arc<dyn ClosedWorld>>,
    ) -> Result<Self, Error> {
        let is_closed = closed.is_some();
        let NodeSettings { database_url, master_keys, cache_dir, config, name } = settings;
        let store = Store::connect(&database_url, config.database.max_connections)?;
        let engine = Engine::new(config.host.clone()).map_err(|e| Error::Engine(format!("{e:#}")))?;
        store.check_schema().await?;
        let vault = Vault::open(store.clone(), master_keys, clock.clone()).await?;
        let artefacts = Artefacts::open(&cache_dir, vault.artefact_key(), config.host.max_cache_bytes)?;
        let registry = Arc::new(Registry::new(store.clone(), engine, artefacts));
        let random_secret = vault.random_secret();
        let grants = Grants::open_all(&config.files)?;
        let wakes = Arc::new(Wakes::default());
        let threads = Threads::start(Kind::Runs, config.gateway.threads).map_err(|e| Error::Engine(e.to_string()))?;
        let gateway = Arc::new(Gateway::new(gateway::Parts {
            store: store.clone(),
            vault,
            config: config.gateway.clone(),
            signals: config.signals.clone(),
            webhooks: config.webhooks.clone(),
            grants,
            wakes,
            clock,
            probe,
            threads,
            closed,
        })?);
        let worker = Worker::new(worker::Parts {
            name,
            store: store.clone(),
            gateway: gateway.clone(),
            registry: registry.clone(),
            config: config.worker.clone(),
            retention: config.retention.clone(),
            random_secret,
        });
        Ok(Self { store, gateway, registry, worker, config: Arc::new(config), closed: is_closed })
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    pub fn worker(&self) -> &Arc<Worker> {
        &self.worker
    }

    /// Serves the API until the shutdown.
    pub async fn serve(&self, listener: TcpListener, shutdown: CancellationToken) -> Result<(), Error> {
        if self.closed {
            return Err(Error::Closed);
        }
        let api = Api::new(self.store.clone(), self.registry.clone(), self.gateway.clone(), self.config.clone());
        Ok(api::serve(listener, api, shutdown.cancelled_owned()).await?)
    }

    /// Works until the shutdown, then drains.
    pub async fn work(&self, shutdown: CancellationToken) {
        self.worker.clone().run(shutdown).await;
    }

    pub async fn close(self) {
        self.store.close().await;
    }
}
