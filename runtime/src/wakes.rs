//! Wake-ups: one connection per node hears what the database tells of, and rings for whoever waits in this process. It only
//! saves waiting: whoever waits looks again by itself, more often while nothing is heard.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, MissedTickBehavior};
use uuid::Uuid;

use crate::store::notify::{Heard, Listener, echo};
use crate::store::{self, Store};

/// How often a node says a word to itself. A connection can die without saying so, and one behind a pooler hears nothing.
const ECHO_EVERY: Duration = Duration::from_secs(20);
/// How long that may take.
const ECHO_WITHIN: Duration = Duration::from_secs(5);
/// The shortest and the longest pause before a lost connection is opened again.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// Wishes that are kept until somebody asks for them.
const MAX_WISHED: usize = 10_000;

#[derive(Debug, Default)]
pub struct Wakes {
    /// Runs may have become ready.
    pub due: Notify,
    /// A run may have ended.
    pub ended: Bells,
    /// A signal may have come for a run.
    pub signals: Bells,
    wished: Mutex<HashSet<Uuid>>,
    wish: Notify,
    hearing: AtomicBool,
    /// The one who listens holds it.
    listening: tokio::sync::Mutex<()>,
}

impl Wakes {
    /// True while what is said is heard.
    pub fn hears(&self) -> bool {
        self.hearing.load(Ordering::Relaxed)
    }

    /// The running runs whose owners want them to stop, as far as was heard since the last call.
    pub async fn wished(&self) -> HashSet<Uuid> {
        self.wish.notified().await;
        std::mem::take(&mut *locked(&self.wished))
    }

    /// Listens for as long as it is polled, and connects again when the connection is lost. Of several who call it, one
    /// listens for all.
    pub async fn listen_forever(&self, store: &Store) -> Infallible {
        let _listening = self.listening.lock().await;
        let _deaf_at_the_end = Deafened(&self.hearing);
        let mut pause = MIN_PAUSE;
        loop {
            let Err(error) = self.listen(store, &mut pause).await;
            self.hearing.store(false, Ordering::Relaxed);
            self.ring_all();
            tracing::warn!(error = %error, retry_ms = pause.as_millis() as u64, "wake-ups are not heard; polling goes on");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn listen(&self, store: &Store, pause: &mut Duration) -> Result<Infallible, store::Error> {
        let mut listener = Listener::open(store).await?;
        let own = Uuid::new_v4().to_string();
        let mut say = tokio::time::interval(ECHO_EVERY);
        say.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut answer_by: Option<Instant> = None;
        loop {
            let deaf = async {
                match answer_by {
                    Some(by) => tokio::time::sleep_until(by).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                heard = listener.next() => match heard? {
                    Heard::Echo(word) if word == own => {
                        answer_by = None;
                        *pause = MIN_PAUSE;
                        if !self.hearing.swap(true, Ordering::Relaxed) {
                            // Something may have been said before anyone listened.
                            self.ring_all();
                        }
                    }
                    other => self.ring(other),
                },
                _ = say.tick() => {
                    answer_by.get_or_insert(Instant::now() + ECHO_WITHIN);
                    echo(store, &own).await?;
                }
                () = deaf => return Err(store::Error::Deaf),
            }
        }
    }

    fn ring(&self, heard: Heard) {
        let run = |payload: String| payload.rsplit_once('/').and_then(|(_, id)| Uuid::try_parse(id).ok());
        match heard {
            Heard::Due => self.due.notify_one(),
            Heard::Ended(payload) => run(payload).into_iter().for_each(|run| self.ended.ring(run)),
            Heard::Signal(payload) => run(payload).into_iter().for_each(|run| self.signals.ring(run)),
            Heard::Wish(payload) => {
                let mut wished = locked(&self.wished);
                // Where nobody works, nobody takes them. Renewals tell the same.
                if wished.len() >= MAX_WISHED {
                    wished.clear();
                }
                wished.extend(run(payload));
                self.wish.notify_one();
            }
            Heard::Echo(_) => {}
        }
    }

    fn ring_all(&self) {
        self.due.notify_one();
        self.ended.ring_all();
        self.signals.ring_all();
    }
}

struct Deafened<'a>(&'a AtomicBool);

impl Drop for Deafened<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// One bell for each run that somebody waits for.
#[derive(Debug, Default)]
pub struct Bells(Mutex<HashMap<Uuid, Bell>>);

#[derive(Debug, Default)]
struct Bell {
    notify: Arc<Notify>,
    watches: usize,
}

/// One who waits for a run.
#[derive(Debug)]
pub struct Watch<'a> {
    bells: &'a Bells,
    run_id: Uuid,
    pub bell: Arc<Notify>,
}

impl Bells {
    /// Rings `bell` whenever there may be news of the run, for as long as the watch lives.
    pub fn watch(&self, run_id: Uuid) -> Watch<'_> {
        let mut all = locked(&self.0);
        let bell = all.entry(run_id).or_default();
        bell.watches += 1;
        Watch { bells: self, run_id, bell: bell.notify.clone() }
    }

    fn ring(&self, run_id: Uuid) {
        if let Some(bell) = locked(&self.0).get(&run_id) {
            bell.notify.notify_waiters();
        }
    }

    pub fn ring_all(&self) {
        locked(&self.0).values().for_each(|bell| bell.notify.notify_waiters());
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let mut all = locked(&self.bells.0);
        let Some(bell) = all.get_mut(&self.run_id) else { return };
        bell.watches -= 1;
        if bell.watches == 0 {
            all.remove(&self.run_id);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_watch_of_a_run_hears_its_bell_and_none_is_left_behind() {
        let bells = Bells::default();
        let run_id = Uuid::now_v7();
        let (one, other) = (bells.watch(run_id), bells.watch(run_id));
        let (mut first, mut second) = (Box::pin(one.bell.notified()), Box::pin(other.bell.notified()));
        first.as_mut().enable();
        second.as_mut().enable();
        bells.ring(run_id);
        first.await;
        second.await;
        drop(one);
        assert_eq!(locked(&bells.0).len(), 1);
        drop(other);
        assert!(locked(&bells.0).is_empty());
    }
}
