//! Turns of tenants at the database, on this node. Commits that tell the nodes something go through PostgreSQL one after
//! another, and connections are handed out in the order in which they are asked for: without turns, a tenant that asks for
//! very much would have its requests in front of everybody's. With them they wait for each other. A turn must be held for
//! the length of a statement or a transaction, never while a guest runs or a provider is called.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{Error, Result, STATEMENT, Store};

/// Tenants that are remembered before those that want nothing any more are forgotten.
const MANY: usize = 1_024;

/// How long a tenant counts as being there after its last turn.
const THERE: Duration = Duration::from_secs(1);

/// What a turn is for. Each kind has its own, so that none waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum For {
    /// A commit that tells the nodes of something: a request that changes something, the end of an attempt.
    Telling,
    /// A claim or a settlement.
    Ledger,
    /// A page of events for a stream, which comes again and again without being asked for.
    Reading,
}

/// Held until it is dropped.
#[derive(Debug)]
pub struct Turn(#[allow(dead_code, reason = "it is only held")] Option<OwnedSemaphorePermit>);

#[derive(Debug)]
pub(super) struct Turns {
    connections: usize,
    /// Turns of one kind that a tenant has at once while others want some as well.
    beside: usize,
    desks: Mutex<Desks>,
}

#[derive(Debug, Default)]
struct Desks {
    of: HashMap<(String, For), Weak<Semaphore>>,
    /// Who wanted a turn last, and when.
    last: Option<(String, Instant)>,
    /// When somebody else did.
    before: Option<Instant>,
}

impl Desks {
    /// Notes that a tenant wants a turn; true when nobody else has wanted any for a while.
    fn is_alone(&mut self, tenant: &str, now: Instant) -> bool {
        match &mut self.last {
            Some((last, at)) if *last == tenant => *at = now,
            last => self.before = last.replace((tenant.to_owned(), now)).map(|(_, at)| at).or(self.before),
        }
        self.before.is_none_or(|before| now.saturating_duration_since(before) > THERE)
    }

    fn of(&mut self, tenant: &str, what: For, most: usize) -> Arc<Semaphore> {
        if self.of.len() > MANY {
            self.of.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let key = (tenant.to_owned(), what);
        if let Some(semaphore) = self.of.get(&key).and_then(Weak::upgrade) {
            return semaphore;
        }
        let semaphore = Arc::new(Semaphore::new(most));
        self.of.insert(key, Arc::downgrade(&semaphore));
        semaphore
    }
}

impl Turns {
    /// Beside others a tenant has as many turns of a kind as there are processors, which is as much as a database of the
    /// node's own size can carry out at once: more of them would only make everybody's slower.
    pub(super) fn new(connections: u32) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self { connections: connections as usize, beside: processors, desks: Mutex::default() }
    }

    /// Turns of a kind while nobody else wants any. Two at least, so that one that is stuck holds up nobody of its tenant.
    fn most(&self, what: For) -> usize {
        let part = match what {
            For::Ledger => self.connections / 2,
            // These follow each other in any case.
            For::Telling | For::Reading => self.connections / 4,
        };
        part.max(2)
    }

    /// Where a tenant waits, and what a turn takes of it: more beside others, so that fewer fit.
    fn of(&self, tenant: &str, what: For, now: Instant) -> (Arc<Semaphore>, u32) {
        let mut desks = self.desks.lock().unwrap_or_else(PoisonError::into_inner);
        let most = self.most(what);
        let share = match what {
            _ if desks.is_alone(tenant, now) => most,
            For::Reading => 1,
            For::Telling | For::Ledger => self.beside.clamp(2, most),
        };
        (desks.of(tenant, what, most), u32::try_from(most / share).unwrap_or(1))
    }
}

impl Store {
    /// Waits until it is this tenant's turn, as long as a statement may take: when the database is away, whoever waits has to
    /// hear of it.
    pub async fn turn(&self, tenant: &str, what: For) -> Result<Turn> {
        let (turns, part) = self.turns.of(tenant, what, Instant::now());
        if let Ok(permit) = turns.clone().try_acquire_many_owned(part) {
            return Ok(Turn(Some(permit)));
        }
        let waited = tokio::time::timeout(STATEMENT, turns.acquire_many_owned(part)).await;
        // It is never closed.
        waited.map(|permit| Turn(permit.ok())).map_err(|_| Error::TimedOut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(connections: usize, beside: usize) -> Turns {
        Turns { connections, beside, desks: Mutex::default() }
    }

    /// As many as a tenant gets at once.
    fn all(turns: &Turns, tenant: &str, what: For, now: Instant) -> Vec<OwnedSemaphorePermit> {
        let next = || {
            let (desk, part) = turns.of(tenant, what, now);
            desk.try_acquire_many_owned(part).ok()
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn a_tenant_that_has_its_turns_waits_and_others_do_not() {
        let (turns, now) = (turns(16, 2), Instant::now());
        let ours = [For::Ledger, For::Telling, For::Reading].map(|what| all(&turns, "a", what, now));
        assert_eq!(ours.each_ref().map(Vec::len), [8, 4, 4], "it is alone");
        let others = [For::Ledger, For::Telling, For::Reading].map(|what| all(&turns, "b", what, now));
        assert_eq!(others.each_ref().map(Vec::len), [2, 2, 1], "it is not");
    }

    #[test]
    fn turns_are_fewer_while_others_want_some() {
        let (turns, now) = (turns(16, 2), Instant::now());
        let first = all(&turns, "a", For::Ledger, now);
        drop(all(&turns, "b", For::Telling, now));
        drop(first);
        assert_eq!(all(&turns, "a", For::Ledger, now).len(), 2);
        assert_eq!(all(&turns, "a", For::Ledger, now + THERE).len(), 2);
        assert_eq!(all(&turns, "a", For::Ledger, now + 2 * THERE).len(), 8, "nobody else was there for a while");
    }

    #[test]
    fn few_connections_and_many_processors_leave_two_turns_and_no_more_than_alone() {
        let now = Instant::now();
        for (connections, beside, alone_and_beside) in
            [(4, 64, [2, 2]), (16, 64, [8, 8]), (16, 1, [8, 2]), (64, 6, [32, 6])]
        {
            let turns = turns(connections, beside);
            let alone = all(&turns, "a", For::Ledger, now).len();
            let other = all(&turns, "b", For::Ledger, now).len();
            assert_eq!([alone, other], alone_and_beside, "{connections} connections, {beside} processors");
        }
    }

    #[test]
    fn tenants_that_want_nothing_are_forgotten() {
        let (turns, now) = (turns(8, 2), Instant::now());
        let (kept, _) = turns.of("kept", For::Ledger, now);
        (0..5 * MANY).for_each(|n| drop(turns.of(&n.to_string(), For::Ledger, now)));
        assert!(turns.desks.lock().unwrap().of.len() <= MANY + 1);
        assert!(Arc::ptr_eq(&kept, &turns.of("kept", For::Ledger, now).0));
    }
}
