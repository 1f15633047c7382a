//! Threads on which tenants take turns. A node has two sets of them: one for guests, which compute, and one for what is done on
//! behalf of runs, which is short and very much of it. Neither must hold up a socket, a timer or a request of the node.
//!
//! No tenant has all threads of a set at once, so that whoever comes next finds one. A turn lasts until the work waits for
//! something; that of a guest ends with the epoch at the latest. What the work starts with tokio runs on the runtime that asked.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use async_task::Runnable;
use tokio::runtime::Handle;
use tracing::Instrument;

/// Work that is ready to go on, with its tenant.
type Turn = Runnable<Arc<str>>;

/// Which set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// They give way to whatever else the node does, and to a database on the same machine.
    Guests,
    /// What the host does for runs: their attempts, calls and pages of events.
    Runs,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Guests => "guests",
            Self::Runs => "runs",
        }
    }

    /// What is added to the node's own niceness.
    #[cfg(target_os = "linux")]
    const fn nice(self) -> i32 {
        match self {
            Self::Guests => 5,
            Self::Runs => 0,
        }
    }
}

/// So many that one tenant that is busy has every processor, and not every thread: one for each and a quarter more, one at least.
pub fn enough() -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    processors + processors.div_ceil(4)
}

/// Threads for tenants' work; none: it is done where it is asked for.
pub struct Threads(Option<Arc<Shared>>);

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Threads").finish_non_exhaustive()
    }
}

struct Shared {
    kind: Kind,
    queues: Mutex<Queues>,
    more: Condvar,
    /// Threads that one tenant has at once.
    most: usize,
}

#[derive(Default)]
struct Queues {
    /// What is ready, each tenant's in its order. Nobody's is empty.
    ready: HashMap<Arc<str>, VecDeque<Turn>>,
    /// Those tenants, in the order of their turns.
    order: VecDeque<Arc<str>>,
    /// How many threads each tenant has now.
    taken: HashMap<Arc<str>, usize>,
    closed: bool,
}

impl Threads {
    /// So many threads; with 0 there are none. An error: the system refuses a thread.
    pub fn start(kind: Kind, count: u32) -> io::Result<Self> {
        let count = count as usize;
        if count == 0 {
            return Ok(Self(None));
        }
        let shared =
            Arc::new(Shared { kind, queues: Mutex::default(), more: Condvar::new(), most: most_of_one(count) });
        let threads = Self(Some(shared.clone()));
        for number in 0..count {
            let shared = shared.clone();
            std::thread::Builder::new().name(format!("{}-{number}", kind.name())).spawn(move || shared.work())?;
        }
        Ok(threads)
    }

    /// Carries out a piece of a tenant's work, and gives it up when nobody waits for it any more. None: the threads ended first.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: &str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let Some(shared) = &self.0 else { return Some(work.await) };
        let work = Away { runtime: Handle::current(), work: Some(Box::pin(work.in_current_span())) };
        let queues = Arc::downgrade(shared);
        let task = async_task::Builder::new().propagate_panic(true).metadata(Arc::<str>::from(tenant));
        let (turn, task) = task.spawn(move |_| work, move |turn| push(&queues, turn));
        turn.schedule();
        task.fallible().await
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let Some(shared) = &self.0 else { return };
        let mut queues = shared.lock();
        queues.closed = true;
        let left = std::mem::take(&mut queues.ready);
        queues.order.clear();
        drop(queues);
        shared.more.notify_all();
        // Not under the lock: what is given up may wake others.
        drop(left);
    }
}

/// All but a quarter, and all but one at least.
fn most_of_one(threads: usize) -> usize {
    (threads - (threads / 4).max(1)).max(1)
}

fn push(queues: &Weak<Shared>, turn: Turn) {
    let Some(shared) = queues.upgrade() else { return };
    let mut queues = shared.lock();
    if queues.closed {
        // Not under the lock: a turn that is given up may wake others.
        drop(queues);
        return drop(turn);
    }
    queues.push(turn.metadata().clone(), turn);
    drop(queues);
    shared.more.notify_one();
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        #[cfg(target_os = "linux")]
        if let Err(error) = rustix::process::nice(self.kind.nice()) {
            tracing::debug!(%error, "threads of {} run at the priority of everything else", self.kind.name());
        }
        let mut queues = self.lock();
        while !queues.closed {
            let Some((tenant, turn)) = queues.next(self.most) else {
                queues = self.more.wait(queues).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if !queues.order.is_empty() {
                self.more.notify_one();
            }
            drop(queues);
            turn.run();
            queues = self.lock();
            queues.done(&tenant);
        }
    }
}

impl Queues {
    fn push(&mut self, tenant: Arc<str>, turn: Turn) {
        let queue = self.ready.entry(tenant.clone()).or_default();
        if queue.is_empty() {
            self.order.push_back(tenant);
        }
        queue.push_back(turn);
    }

    /// The next turn, of the first tenant that has fewer threads than `most`.
    fn next(&mut self, most: usize) -> Option<(Arc<str>, Turn)> {
        let at = self.order.iter().position(|tenant| self.taken.get(tenant).is_none_or(|taken| *taken < most))?;
        let tenant = self.order.remove(at)?;
        let queue = self.ready.get_mut(&tenant)?;
        let turn = queue.pop_front()?;
        if queue.is_empty() {
            self.ready.remove(&tenant);
        } else {
            self.order.push_back(tenant.clone());
        }
        *self.taken.entry(tenant.clone()).or_default() += 1;
        Some((tenant, turn))
    }

    fn done(&mut self, tenant: &Arc<str>) {
        if let Some(taken) = self.taken.get_mut(tenant) {
            *taken -= 1;
            if *taken == 0 {
                self.taken.remove(tenant);
            }
        }
    }
}

/// Work whose timers, sockets and tasks belong to a runtime, although another thread carries it out.
struct Away<F> {
    runtime: Handle,
    work: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Away<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let _runtime = this.runtime.enter();
        match &mut this.work {
            Some(work) => work.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for Away<F> {
    fn drop(&mut self) {
        let _runtime = self.runtime.enter();
        self.work = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// Work that holds its thread until it is let go, and says that it does.
    async fn hold(says: mpsc::Sender<()>, go: Arc<Mutex<mpsc::Receiver<()>>>) {
        says.send(()).unwrap();
        go.lock().unwrap().recv().unwrap();
    }

    #[tokio::test]
    async fn a_tenant_that_holds_all_it_may_have_leaves_a_thread_to_others() {
        let threads = Arc::new(Threads::start(Kind::Runs, 3).unwrap());
        let (says, held) = mpsc::channel();
        let mut gates = Vec::new();
        let mut holding = Vec::new();
        for _ in 0..4 {
            let (open, gate) = mpsc::channel();
            gates.push(open);
            let (threads, work) = (threads.clone(), hold(says.clone(), Arc::new(Mutex::new(gate))));
            holding.push(tokio::spawn(async move { threads.run("a", work).await }));
            tokio::task::yield_now().await;
        }
        for _ in 0..2 {
            held.recv_timeout(PATIENCE).unwrap();
        }
        let other = tokio::time::timeout(PATIENCE, threads.run("b", async { 7 })).await;
        assert_eq!(other.unwrap(), Some(7));
        assert!(held.try_recv().is_err(), "a third thread was given to the same tenant");
        gates.iter().for_each(|gate| gate.send(()).unwrap());
        for held in holding {
            assert_eq!(held.await.unwrap(), Some(()));
        }
    }

    #[tokio::test]
    async fn what_waits_has_its_timers_on_the_runtime_that_asked() {
        let threads = Threads::start(Kind::Runs, 1).unwrap();
        let slept = threads.run("a", async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            tokio::spawn(async { std::thread::current().id() }).await.unwrap()
        });
        assert_eq!(slept.await, Some(std::thread::current().id()));
    }

    #[tokio::test]
    async fn work_that_nobody_waits_for_is_given_up() {
        let threads = Threads::start(Kind::Runs, 1).unwrap();
        let (kept, gone) = mpsc::channel::<()>();
        let work = async move {
            let _kept = kept;
            std::future::pending::<()>().await;
        };
        assert!(tokio::time::timeout(Duration::from_millis(20), threads.run("a", work)).await.is_err());
        assert_eq!(gone.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_share_is_all_but_a_quarter() {
        let shares: Vec<_> = [1, 2, 3, 4, 5, 8, 80].into_iter().map(most_of_one).collect();
        assert_eq!(shares, [1, 1, 2, 3, 4, 6, 60]);
    }
}
