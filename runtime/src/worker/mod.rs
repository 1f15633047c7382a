//! Workers: lease due runs, run one attempt of each, finish it. `run` is nothing but loops around `run_once`'s parts; what
//! a worker leaves undone, another takes over when its lease ends.

mod attempt;
mod finish;
mod leases;
mod reaper;
mod rescuer;
mod resolver;
mod versions;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::{RetentionConfig, WorkerConfig, ms};
use crate::gateway::Gateway;
use crate::registry::Registry;
use crate::store::{self, Store, lease::Leased};

use leases::Leases;
use versions::Versions;

/// Runs leased in one statement.
const MAX_BATCH: usize = 16;

/// How long the worker pauses after a failure of the database.
const DATABASE_PAUSE: Duration = Duration::from_millis(500);

/// One worker of one node.
pub struct Worker {
    name: String,
    store: Store,
    gateway: Arc<Gateway>,
    registry: Arc<Registry>,
    config: WorkerConfig,
    retention: RetentionConfig,
    random_secret: [u8; 32],
    leases: Leases,
    versions: Versions,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a worker is made of.
pub struct Parts {
    /// Names the worker in the record of every attempt.
    pub name: String,
    pub store: Store,
    pub gateway: Arc<Gateway>,
    pub registry: Arc<Registry>,
    pub config: WorkerConfig,
    pub retention: RetentionConfig,
    /// The deployment's secret for stable random numbers.
    pub random_secret: [u8; 32],
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Worker {
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts { name, store, gateway, registry, config, retention, random_secret } = parts;
        let leases = Leases::new(gateway.clock().clone(), &config);
        let versions = Versions::default();
        Arc::new(Self { name, store, gateway, registry, config, retention, random_secret, leases, versions })
    }

    /// Ends runs that lost their worker in their last attempt, asks about open questions that are due, then leases one due
    /// run, runs one attempt of it and finishes it. False when no run was due.
    pub async fn run_once(self: &Arc<Self>) -> Result<bool, store::Error> {
        rescuer::run_once(&self.store).await?;
        resolver::run_once(&self.gateway).await?;
        let Some((leased, deadline)) = self.lease(1).await?.pop() else { return Ok(false) };
        tokio::select! {
            () = self.attempt(leased, deadline) => {}
            never = self.leases.renew_forever(&self.store) => match never {},
        }
        Ok(true)
    }

    /// Sweeps what has outlived its time; gives the number of runs.
    pub async fn sweep(&self) -> Result<u64, store::Error> {
        reaper::run_once(&self.store, &self.retention).await
    }

    /// Works until the shutdown, then drains: no new leases, the grace time for attempts under way, then they are stopped
    /// and their runs given back.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        self.leases.begin();
        let attempts = TaskTracker::new();
        let wake = wake::Wake::default();
        tokio::select! {
            () = self.clone().lease_until(&shutdown, &attempts, &wake) => {}
            never = wake.listen_forever(&self.store) => match never {},
            never = self.leases.renew_forever(&self.store) => match never {},
            never = rescuer::run_forever(&self.store, ms(self.config.poll_ms)) => match never {},
            never = resolver::run_forever(&self.gateway, ms(self.config.poll_ms)) => match never {},
            never = reaper::run_forever(&self.store, &self.retention) => match never {},
        }
        self.drain(&attempts).await;
    }

    async fn drain(&self, attempts: &TaskTracker) {
        attempts.close();
        tracing::info!(worker.name = self.name, attempts = attempts.len(), "draining");
        let grace = tokio::time::timeout(ms(self.config.grace_ms), attempts.wait());
        let in_time = tokio::select! {
            waited = grace => waited.is_ok(),
            never = self.leases.renew_forever(&self.store) => match never {},
        };
        if !in_time {
            self.leases.end_all();
            attempts.wait().await;
        }
    }

    /// Looks at the shutdown only between statements: a lease that commits after nobody waits for it any more would be lost.
    async fn lease_until(self: Arc<Self>, shutdown: &CancellationToken, attempts: &TaskTracker, wake: &wake::Wake) {
        while !shutdown.is_cancelled() {
            let places = tokio::select! {
                () = shutdown.cancelled() => return,
                places = self.free_places() => places,
            };
            let wanted = places.len();
            let leased = match self.lease(wanted).await {
                Ok(leased) => leased,
                Err(error) => {
                    tracing::warn!(worker.name = self.name, error = %error, "leasing failed; it is tried again");
                    tokio::time::sleep(DATABASE_PAUSE).await;
                    continue;
                }
            };
            let full = leased.len() == wanted;
            for ((leased, deadline), place) in leased.into_iter().zip(places) {
                let worker = self.clone();
                attempts.spawn(async move {
                    worker.attempt(leased, deadline).await;
                    drop(place);
                });
            }
            if !full {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    () = wake.wait(ms(self.config.poll_ms)) => {}
                }
            }
        }
    }

    /// At least one place for an instance, more if they are free. A run without a place stays queued, and spends nothing.
    async fn free_places(&self) -> Vec<OwnedSemaphorePermit> {
        let instances = self.registry.engine().instances();
        let mut places = Vec::with_capacity(MAX_BATCH);
        if let Ok(first) = instances.clone().acquire_owned().await {
            places.push(first);
        }
        while places.len() < MAX_BATCH {
            let Ok(next) = instances.clone().try_acquire_owned() else { break };
            places.push(next);
        }
        places
    }

    /// Leases with their ends by this process's clock, which was read before the database was asked.
    async fn lease(&self, limit: usize) -> Result<Vec<(Leased, Duration)>, store::Error> {
        let deadline = self.gateway.clock().elapsed() + ms(self.config.lease_ms);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let leased = store::lease::lease(&self.store, &self.name, limit, self.config.lease_ms).await?;
        Ok(leased.into_iter().map(|leased| (leased, deadline)).collect())
    }
}
