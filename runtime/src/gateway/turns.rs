//! The order in which a guest has made calls at one place, kept while each gathers its body: the counting of positional
//! effects follows it. Nothing is counted here.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::attempt::lock;

/// The calls of one attempt that wait for their turn.
#[derive(Debug, Default)]
pub struct Turns(Arc<Queues>);

#[derive(Debug, Default)]
struct Queues {
    queues: Mutex<(u64, HashMap<String, BTreeSet<u64>>)>,
    moved: Notify,
}

impl Turns {
    /// Takes the next turn at a place.
    pub fn take(&self, slot: String) -> Turn {
        let (last, queues) = &mut *lock(&self.0.queues);
        *last += 1;
        queues.entry(slot.clone()).or_default().insert(*last);
        Turn { queues: self.0.clone(), slot, number: *last }
    }
}

/// One call's turn. It is over when this is dropped.
#[derive(Debug)]
pub struct Turn {
    queues: Arc<Queues>,
    slot: String,
    number: u64,
}

impl Turn {
    /// Waits until no earlier call at this place has a turn left.
    pub async fn come(&self) {
        loop {
            let moved = self.queues.moved.notified();
            if self.is_first() {
                return;
            }
            moved.await;
        }
    }

    fn is_first(&self) -> bool {
        let first = lock(&self.queues.queues).1.get(&self.slot).and_then(BTreeSet::first).copied();
        first == Some(self.number)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (_, queues) = &mut *lock(&self.queues.queues);
        if let Some(queue) = queues.get_mut(&self.slot) {
            queue.remove(&self.number);
            if queue.is_empty() {
                queues.remove(&self.slot);
            }
        }
        self.queues.moved.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_turn_comes_when_all_earlier_ones_at_its_place_are_over() {
        let turns = Turns::default();
        let [first, second, third] = [0; 3].map(|_| turns.take("a".to_owned()));
        let elsewhere = turns.take("b".to_owned());
        elsewhere.come().await;
        drop(second);
        assert!(third.come().now_or_never().is_none());
        let waiting = tokio::spawn(async move { third.come().await });
        drop(first);
        waiting.await.unwrap();
    }
}
