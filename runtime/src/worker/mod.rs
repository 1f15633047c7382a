//! Workers: lease due runs, run one attempt of each, finish it. `run` is nothing but loops around `run_once`'s parts; what
//! a worker leaves undone, another takes over when its lease ends.

mod attempt;
mod callbacks;
mod deadlines;
mod finish;
mod leases;
mod looking;
mod reaper;
mod rescuer;
mod resolver;
mod seats;
mod timers;
mod versions;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use zeroize::Zeroizing;

use crate::config::{RetentionConfig, WorkerConfig, ms};
use crate::gateway::Gateway;
use crate::registry::Registry;
use crate::store::lease::{Leased, Place, Rooms};
use crate::store::{self, Store};
use crate::wakes::Wakes;

use leases::Leases;
use looking::Looking;
use seats::Seats;
use versions::Versions;

/// One worker of one node.
pub struct Worker {
    name: String,
    store: Store,
    gateway: Arc<Gateway>,
    registry: Arc<Registry>,
    config: WorkerConfig,
    retention: RetentionConfig,
    random_secret: Zeroizing<[u8; 32]>,
    leases: Leases,
    versions: Versions,
    seats: Arc<Seats>,
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
    pub random_secret: Zeroizing<[u8; 32]>,
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
        let (versions, seats) = (Versions::default(), Seats::new(registry.engine().config()));
        Arc::new(Self { name, store, gateway, registry, config, retention, random_secret, leases, versions, seats })
    }

    /// Does what maintenance is due (lost runs, timers, deadlines, open questions, callbacks), then leases one ready run, runs one
    /// attempt of it and finishes it. False when no run was ready.
    pub async fn run_once(self: &Arc<Self>) -> Result<bool, store::Error> {
        rescuer::run_once(&self.store).await?;
        deadlines::run_once(&self.store).await?;
        timers::run_once(&self.store).await?;
        resolver::run_once(&self.gateway).await?;
        callbacks::run_once(&self.gateway).await?;
        let look = self.look(1, Place::default(), Rooms::default(), uuid::Uuid::new_v4()).await?;
        let Some(held) = look.held.into_iter().next() else { return Ok(false) };
        tokio::select! {
            () = self.attempt(held) => {}
            never = self.leases.renew_forever(&self.store, self.wakes()) => match never {},
            never = self.wakes().listen_forever(&self.store) => match never {},
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
        let poll = ms(self.config.poll_ms);
        let lease = ms(self.config.lease_ms);
        tokio::select! {
            () = Looking::new(self.clone()).lease_until(&shutdown, &attempts) => {}
            never = self.wakes().listen_forever(&self.store) => match never {},
            never = self.leases.renew_forever(&self.store, self.wakes()) => match never {},
            never = rescuer::run_forever(&self.store, poll, lease) => match never {},
            never = timers::run_forever(&self.store, poll) => match never {},
            never = deadlines::run_forever(&self.store, poll) => match never {},
            never = resolver::run_forever(&self.gateway, poll) => match never {},
            never = callbacks::run_forever(&self.gateway, poll) => match never {},
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
            never = self.leases.renew_forever(&self.store, self.wakes()) => match never {},
            never = self.wakes().listen_forever(&self.store) => match never {},
        };
        if !in_time {
            self.leases.end_all();
            tokio::select! {
                () = attempts.wait() => {}
                never = self.leases.renew_forever(&self.store, self.wakes()) => match never {},
            }
        }
    }

    fn lease_end(&self) -> Duration {
        self.gateway.clock().elapsed() + ms(self.config.lease_ms)
    }

    fn wakes(&self) -> &Wakes {
        self.gateway.wakes()
    }

    /// Leases with their ends by this process's clocks, which were read before the database was asked.
    async fn look(&self, limit: usize, after: Place, rooms: Rooms, batch: uuid::Uuid) -> Result<Seen, store::Error> {
        let mut deadline = self.lease_end();
        let now = Instant::now();
        let wanted = store::lease::Wanted {
            worker: self.name.clone(),
            limit: i64::try_from(limit).unwrap_or(i64::MAX),
            ttl_ms: self.config.lease_ms,
            batch,
            after,
            rooms,
        };
        let mut look = store::lease::lease(&self.store, &wanted).await?;
        // Where the database was long away, little or nothing of this end is left: each attempt would be refused its first
        // byte, and be spent for nothing.
        let late = self.gateway.clock().elapsed() + ms(self.config.lease_ms / 2) > deadline;
        if late && !look.leased.is_empty() {
            deadline = self.lease_end();
            let records: Vec<_> = look.leased.iter().map(record_of).collect();
            let held = store::lease::renew(&self.store, &records, self.config.lease_ms).await?;
            look.leased.retain(|leased| held.iter().any(|held| held.lease == record_of(leased)));
        }
        let held = look.leased.into_iter().map(|leased| {
            let close_at = leased.close_in_ms.map(|left| now + ms(left.max(0).unsigned_abs()));
            Held { leased, deadline, close_at }
        });
        Ok(Seen { held: held.collect(), next: look.next, held_back: look.held_back, contended: look.contended })
    }
}

fn record_of(leased: &Leased) -> store::lease::Lease {
    store::lease::Lease { tenant: leased.tenant.clone(), run_id: leased.run_id, token: leased.token }
}

/// A run that this worker holds.
struct Held {
    leased: Leased,
    /// The lease's end, by the clock of the gateway.
    deadline: Duration,
    /// The end of `schedule_to_close`.
    close_at: Option<Instant>,
}

/// What a look for work found.
struct Seen {
    held: Vec<Held>,
    next: Place,
    held_back: bool,
    contended: bool,
}
