//! Looking for work: when a worker asks the database for runs, how many, and how often.
//!
//! Every ready run wakes every idle worker. So that a crowd of them does not ask for each run, one that was woken for
//! nothing answers the next wake-ups later and later, by chance; one that got work answers at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::{Held, Seen, Worker};
use crate::config::ms;
use crate::store::lease::{Place, Rooms};

/// Runs leased in one statement.
const MAX_BATCH: usize = 16;

/// How long the worker pauses after a failure of the database.
const DATABASE_PAUSE: Duration = Duration::from_millis(500);

/// Looks in a row that may bring nothing before the worker rests, although it has not been round.
const MAX_FRUITLESS: u32 = 64;

/// The longest pause before a wake-up is answered.
const MAX_PAUSE_MS: u64 = 200;

/// The pause while another worker decides for a tenant with a limit.
const CONTENDED_MS: std::ops::Range<u64> = 5..25;

pub struct Looking {
    worker: Arc<Worker>,
    /// Where the next look begins.
    after: Place,
    /// Lease statements whose answers never came, and until when the database may still be at them.
    unanswered: Vec<(Uuid, Instant)>,
    /// Looks in a row that brought nothing, without having been round.
    looks: u32,
    /// Runs leased since the last look that began with the first lane.
    round: usize,
    /// Wake-ups in a row that brought nothing.
    misses: u32,
    /// A limit, or a tenant's share of the places, kept runs back: the end of an attempt makes room.
    held_back: Arc<AtomicBool>,
}

/// What a worker does after a look.
enum After {
    LookAgain,
    Wait(Duration),
}

impl Looking {
    pub fn new(worker: Arc<Worker>) -> Self {
        Self {
            worker,
            after: Place::default(),
            unanswered: Vec::new(),
            looks: 0,
            round: 0,
            misses: 0,
            held_back: Arc::default(),
        }
    }

    /// Looks at the shutdown only between statements: a lease that commits after nobody waits for it any more would be lost.
    pub async fn lease_until(mut self, shutdown: &CancellationToken, attempts: &TaskTracker) {
        let mut woken = false;
        while !shutdown.is_cancelled() {
            let places = tokio::select! {
                () = shutdown.cancelled() => break,
                places = self.free_places() => places,
            };
            let after = self.look(places, attempts, woken).await;
            let After::Wait(pause) = after else { continue };
            tokio::select! {
                () = shutdown.cancelled() => break,
                was_woken = self.wait(pause) => woken = was_woken,
            }
        }
        self.give_back().await;
    }

    async fn look(&mut self, places: Vec<OwnedSemaphorePermit>, attempts: &TaskTracker, woken: bool) -> After {
        if !self.give_back().await {
            return After::Wait(DATABASE_PAUSE);
        }
        let wanted = places.len();
        let (batch, rooms) = (Uuid::new_v4(), self.worker.seats.rooms());
        let seen = match self.worker.look(wanted, self.after.clone(), rooms.clone(), batch).await {
            Ok(seen) => seen,
            Err(error) => {
                tracing::warn!(worker.name = self.worker.name, error = %error, "leasing failed; it is tried again");
                let lease = ms(self.worker.config.lease_ms);
                self.unanswered.push((batch, Instant::now() + lease));
                return After::Wait(DATABASE_PAUSE);
            }
        };
        let Seen { held, next, held_back, contended } = seen;
        let (leased, whole_round) = (held.len(), next.is_first());
        let began_first = self.after.is_first();
        self.after = next;
        self.round += leased;
        let full = full(&rooms, &held);
        let kept_back = held_back || !full.is_empty();
        self.misses = match leased == 0 && woken {
            false => 0,
            // Nobody else was faster: what woke this worker is for later, and the next to call may find a place.
            true if kept_back => 1,
            true => (self.misses + 1).min(10),
        };
        self.begin(held, places, attempts);
        self.held_back.store(kept_back, Ordering::SeqCst);
        if full.iter().any(|tenant| self.worker.seats.has_room(tenant)) {
            // An attempt ended while the database was asked, and told nobody.
            return After::LookAgain;
        }
        self.looks = if whole_round || leased > 0 { 0 } else { self.looks + 1 };
        if !whole_round && self.looks < MAX_FRUITLESS {
            return After::LookAgain;
        }
        // A round of many looks that brought something may bring more; one that brought nothing must not go on for ever.
        self.looks = 0;
        let fruitful = std::mem::take(&mut self.round) > 0 && !began_first;
        match contended {
            _ if leased == wanted || fruitful => After::LookAgain,
            true => After::Wait(ms(rand::random_range(CONTENDED_MS))),
            false => After::Wait(ms(self.worker.config.poll_ms)),
        }
    }

    fn begin(&self, held: Vec<Held>, places: Vec<OwnedSemaphorePermit>, attempts: &TaskTracker) {
        for (held, place) in held.into_iter().zip(places) {
            let (worker, held_back) = (self.worker.clone(), self.held_back.clone());
            let seat = worker.seats.take(&held.leased.tenant);
            attempts.spawn(async move {
                let (gateway, tenant) = (worker.gateway.clone(), held.leased.tenant.clone());
                let attempt = worker.clone();
                gateway.threads().run(&tenant, async move { attempt.attempt(held).await }).await;
                drop((place, seat));
                if held_back.load(Ordering::SeqCst) {
                    worker.wakes().due.notify_one();
                }
            });
        }
    }

    /// Waits for a wake-up, or for the pause; true when it was woken.
    async fn wait(&self, pause: Duration) -> bool {
        let due = &self.worker.wakes().due;
        if tokio::time::timeout(pause, due.notified()).await.is_err() {
            return false;
        }
        if self.misses > 0 {
            let most = (1_u64 << (2 * self.misses)).min(MAX_PAUSE_MS);
            tokio::time::sleep(ms(rand::random_range(0..=most))).await;
            // What was said meanwhile is answered by the same look.
            let _ = due.notified().now_or_never();
        }
        true
    }

    /// Gives back what statements without an answer have leased; false while the database cannot be reached. Again and again
    /// for as long as such a lease would last: the database may carry a statement out long after nobody waits for it.
    async fn give_back(&mut self) -> bool {
        for (batch, _) in &self.unanswered {
            match crate::store::lease::give_back(&self.worker.store, *batch).await {
                Ok(0) => {}
                Ok(runs) => tracing::info!(runs, "runs were given back: the answer to their lease was lost"),
                Err(error) => {
                    tracing::warn!(error = %error, "runs could not be given back yet");
                    return false;
                }
            }
        }
        let now = Instant::now();
        self.unanswered.retain(|(_, until)| *until > now);
        true
    }

    /// At least one place for an instance, more if they are free. A run without a place stays queued, and spends nothing.
    async fn free_places(&self) -> Vec<OwnedSemaphorePermit> {
        let instances = self.worker.registry.engine().instances();
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
}

/// The tenants that have, with these runs, all the places that they may have.
fn full(rooms: &Rooms, held: &[Held]) -> Vec<String> {
    let mut left = rooms.clone();
    for Held { leased, .. } in held {
        let others = left.others;
        let room = left.of.entry(leased.tenant.clone()).or_insert(others);
        *room = room.saturating_sub(1);
    }
    left.of.into_iter().filter(|(_, room)| *room == 0).map(|(tenant, _)| tenant).collect()
}
