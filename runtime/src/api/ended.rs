//! Who waits for which run to end. One listener per node hears of ended runs from the database and rings for those who
//! wait; it only saves waiting: whoever waits looks again by itself, more often while nothing is heard.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::store::{self, Store, notify};

/// How often those who wait look again while the listener hears nothing.
const POLL_DEAF: Duration = Duration::from_millis(500);
/// The same while it hears: a connection can die without saying so.
const POLL: Duration = Duration::from_secs(5);
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const LONGEST_BACKOFF: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Ended {
    waiting: Mutex<HashMap<Uuid, Bell>>,
    hearing: AtomicBool,
    /// Cancelled when the node shuts down: every wait ends then.
    pub stop: CancellationToken,
}

#[derive(Debug, Default)]
struct Bell {
    notify: Arc<Notify>,
    watches: usize,
}

/// One who waits for a run.
pub struct Watch<'a> {
    ended: &'a Ended,
    run_id: Uuid,
    pub bell: Arc<Notify>,
}

impl Ended {
    /// Rings `bell` whenever the run may have ended, for as long as the watch lives.
    pub fn watch(&self, run_id: Uuid) -> Watch<'_> {
        let mut waiting = self.waiting();
        let bell = waiting.entry(run_id).or_default();
        bell.watches += 1;
        Watch { ended: self, run_id, bell: bell.notify.clone() }
    }

    /// When to look again without having heard anything.
    pub fn poll(&self) -> Duration {
        if self.hearing.load(Ordering::Relaxed) { POLL } else { POLL_DEAF }
    }

    /// Hears of ended runs until the node stops; connects again when the connection is lost.
    pub async fn listen(&self, store: &Store) {
        let mut backoff = FIRST_BACKOFF;
        while !self.stop.is_cancelled() {
            let lost = tokio::select! {
                () = self.stop.cancelled() => break,
                Err(lost) = self.hear(store, &mut backoff) => lost,
            };
            self.hearing.store(false, Ordering::Relaxed);
            self.ring_all();
            tracing::warn!(error.cause = %lost, retry_ms = backoff.as_millis() as u64, "ended runs are not heard of: polling");
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = tokio::time::sleep(backoff) => {}
            }
            backoff = (backoff * 2).min(LONGEST_BACKOFF);
        }
        self.hearing.store(false, Ordering::Relaxed);
    }

    async fn hear(&self, store: &Store, backoff: &mut Duration) -> store::Result<Infallible> {
        let mut listener = notify::Listener::open(store, notify::ENDED).await?;
        self.hearing.store(true, Ordering::Relaxed);
        self.ring_all();
        *backoff = FIRST_BACKOFF;
        loop {
            let payload = listener.next().await?;
            let run_id = payload.rsplit_once('/').and_then(|(_, id)| Uuid::try_parse(id).ok());
            if let Some(bell) = run_id.and_then(|id| self.waiting().get(&id).map(|bell| bell.notify.clone())) {
                bell.notify_waiters();
            }
        }
    }

    fn ring_all(&self) {
        self.waiting().values().for_each(|bell| bell.notify.notify_waiters());
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Uuid, Bell>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut waiting = self.ended.waiting();
        let Some(bell) = waiting.get_mut(&self.run_id) else { return };
        bell.watches -= 1;
        if bell.watches == 0 {
            waiting.remove(&self.run_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_watch_of_a_run_hears_its_bell_and_none_is_left_behind() {
        let ended = Ended::default();
        let run_id = Uuid::now_v7();
        let (one, other) = (ended.watch(run_id), ended.watch(run_id));
        let (mut first, mut second) = (Box::pin(one.bell.notified()), Box::pin(other.bell.notified()));
        first.as_mut().enable();
        second.as_mut().enable();
        ended.ring_all();
        first.await;
        second.await;
        drop(one);
        assert_eq!(ended.waiting().len(), 1);
        drop(other);
        assert!(ended.waiting().is_empty());
    }
}
