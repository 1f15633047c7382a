//! Turns of tenants at the database, on this node. Commits that tell the nodes something go through PostgreSQL one after
//! another, and connections are handed out in the order in which they are asked for: without turns, a tenant that asks for
//! very much would have its requests in front of everybody's. With them they wait for each other. A turn must be held for
//! the length of a statement or a transaction, never while a guest runs or a provider is called.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Error, Result, STATEMENT, Store};

/// Tenants that are remembered before those that want nothing any more are forgotten.
const MANY: usize = 1_024;

/// What a turn is for. Each kind has its own, so that none waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum For {
    /// A commit that tells the nodes of something: a request that changes something, the end of an attempt.
    Telling,
    /// A claim or a settlement.
    Ledger,
}

/// Held until it is dropped.
#[derive(Debug)]
pub struct Turn(#[allow(dead_code, reason = "it is only held")] Option<OwnedSemaphorePermit>);

#[derive(Debug)]
pub(super) struct Turns {
    telling: usize,
    ledger: usize,
    of: Mutex<HashMap<(String, For), Weak<Semaphore>>>,
}

impl Turns {
    /// A quarter of the connections for what is carried out one after another in any case, and half of them for the ledger;
    /// two at least, so that one that is stuck holds up nobody of its tenant.
    pub(super) fn new(connections: u32) -> Self {
        let part = |of: usize| (connections as usize / of).max(2);
        Self { telling: part(4), ledger: part(2), of: Mutex::default() }
    }

    fn of(&self, tenant: &str, what: For) -> Arc<Semaphore> {
        let mut all = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() > MANY {
            all.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let key = (tenant.to_owned(), what);
        if let Some(semaphore) = all.get(&key).and_then(Weak::upgrade) {
            return semaphore;
        }
        let most = if what == For::Telling { self.telling } else { self.ledger };
        let semaphore = Arc::new(Semaphore::new(most));
        all.insert(key, Arc::downgrade(&semaphore));
        semaphore
    }
}

impl Store {
    /// Waits until it is this tenant's turn, as long as a statement may take: when the database is away, whoever waits has to
    /// hear of it.
    pub async fn turn(&self, tenant: &str, what: For) -> Result<Turn> {
        let turns = self.turns.of(tenant, what);
        if let Ok(permit) = turns.clone().try_acquire_owned() {
            return Ok(Turn(Some(permit)));
        }
        let waited = tokio::time::timeout(STATEMENT, turns.acquire_owned()).await;
        // It is never closed.
        waited.map(|permit| Turn(permit.ok())).map_err(|_| Error::TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_tenant_that_has_its_turns_waits_and_others_do_not() {
        let store = Store::connect("postgres://nobody@localhost/nothing", 8).unwrap();
        let first = store.turn("a", For::Telling).await;
        let _second = store.turn("a", For::Telling).await;
        assert!(store.turn("a", For::Telling).now_or_never().is_none());
        assert!(store.turn("b", For::Telling).now_or_never().is_some());
        assert!(store.turn("a", For::Ledger).now_or_never().is_some());
        drop(first);
        assert!(store.turn("a", For::Telling).now_or_never().is_some());
    }

    #[test]
    fn tenants_that_want_nothing_are_forgotten() {
        let turns = Turns::new(8);
        let kept = turns.of("kept", For::Ledger);
        (0..5 * MANY).for_each(|n| drop(turns.of(&n.to_string(), For::Ledger)));
        assert!(turns.of.lock().unwrap().len() <= MANY + 1);
        assert!(Arc::ptr_eq(&kept, &turns.of("kept", For::Ledger)));
    }
}
