//! The leases that this worker holds: renewed in one statement for all, and given up in time when that fails.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::clock::Clock;
use crate::config::{WorkerConfig, ms};
use crate::gateway::{Ending, Lease};
use crate::store::lease::Wish;
use crate::store::{self, Store};
use crate::wakes::Wakes;

#[derive(Debug)]
pub struct Leases {
    clock: Arc<dyn Clock>,
    ttl_ms: u64,
    held: Mutex<Leased>,
}

#[derive(Debug, Default)]
struct Leased {
    all: HashMap<store::lease::Lease, Arc<Lease>>,
    /// Set by a drain: a lease that comes later ends at once.
    ending: bool,
}

impl Leases {
    pub fn new(clock: Arc<dyn Clock>, config: &WorkerConfig) -> Self {
        Self { clock, ttl_ms: config.lease_ms, held: Mutex::default() }
    }

    /// Keeps a lease renewed for as long as the guard lives.
    pub fn hold(&self, lease: Arc<Lease>) -> Held<'_> {
        let record = lease.record.clone();
        let mut held = self.lock();
        if held.ending {
            lease.end(Ending::Drained);
        }
        held.all.insert(record.clone(), lease);
        drop(held);
        Held { leases: self, record }
    }

    /// Stops every attempt at once, also one that is about to begin.
    pub fn end_all(&self) {
        let mut held = self.lock();
        held.ending = true;
        held.all.values().for_each(|lease| lease.end(Ending::Drained));
    }

    /// True once the worker drains.
    pub fn is_ending(&self) -> bool {
        self.lock().ending
    }

    /// Makes ready for attempts, after an earlier drain.
    pub fn begin(&self) {
        self.lock().ending = false;
    }

    /// Renews three times within the length of a lease, and more often while the database fails.
    /// At once when the owner of a run that it holds wants something of it.
    pub async fn renew_forever(&self, store: &Store, wakes: &Wakes) -> Infallible {
        let normal = ms(self.ttl_ms / 3);
        let hurried = ms(self.ttl_ms / 20);
        let mut pause = normal;
        loop {
            let _ = tokio::time::timeout(pause, self.wished(wakes)).await;
            // A try and a pause together stay within the margin below, so that no lease can end between two looks.
            let patience = ms(self.ttl_ms / 10);
            pause = match tokio::time::timeout(patience, self.renew(store)).await {
                Ok(Ok(())) => normal,
                Ok(Err(error)) => {
                    tracing::warn!(error = %error, "leases could not be renewed; it is tried again");
                    hurried
                }
                Err(_) => {
                    tracing::warn!("leases could not be renewed in time; it is tried again");
                    hurried
                }
            };
            self.give_up_in_time();
        }
    }

    async fn renew(&self, store: &Store) -> Result<(), store::Error> {
        let asked: Vec<store::lease::Lease> = self.lock().all.keys().cloned().collect();
        if asked.is_empty() {
            return Ok(());
        }
        let deadline = self.clock.elapsed() + ms(self.ttl_ms);
        let renewed = store::lease::renew(store, &asked, self.ttl_ms).await?;
        let renewed: HashMap<_, _> = renewed.into_iter().map(|renewed| (renewed.lease, renewed.wish)).collect();
        let held = self.lock();
        for record in asked {
            let Some(lease) = held.all.get(&record) else { continue };
            match renewed.get(&record) {
                None => lease.end(Ending::Lost),
                Some(wish) => {
                    lease.renewed_until(deadline);
                    match wish {
                        Some(Wish::Cancel) => lease.end(Ending::Cancelled),
                        Some(Wish::Pause) => lease.end(Ending::Paused),
                        None => {}
                    }
                }
            }
        }
        Ok(())
    }

    /// Until a run that this worker holds is to stop.
    async fn wished(&self, wakes: &Wakes) {
        loop {
            let runs = wakes.wished().await;
            if self.lock().all.keys().any(|lease| runs.contains(&lease.run_id)) {
                return;
            }
        }
    }

    /// A worker that cannot renew must have stopped its guests before another may take over.
    fn give_up_in_time(&self) {
        let margin = ms(self.ttl_ms / 5);
        let now = self.clock.elapsed();
        let held = self.lock();
        held.all.values().filter(|lease| now + margin >= lease.deadline()).for_each(|lease| lease.end(Ending::Lost));
    }

    fn lock(&self) -> MutexGuard<'_, Leased> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of the lease's renewal when dropped.
#[derive(Debug)]
pub struct Held<'a> {
    leases: &'a Leases,
    record: store::lease::Lease,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.leases.lock().all.remove(&self.record);
    }
}
