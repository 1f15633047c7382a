//! A node in a thread and a runtime of its own, which stands for a process: it can be killed with all that it has open, or be
//! left behind with a lease that is over. It must never outlive its case.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::Error;
use super::stage::TENANT;
use crate::clock::{Clock, SystemClock};
use crate::gateway::ClosedWorld;
use crate::node::{self, Node, NodeSettings};
use crate::probe::Probe;
use crate::store;

/// How far the clock of a worker has moved whose lease was lost: beyond every lease.
const ASLEEP: Duration = Duration::from_secs(3_600);
/// How long one may take that was killed.
const DEAD_WITHIN: Duration = Duration::from_secs(20);
/// Pause between two looks for what is due.
const IDLE: Duration = Duration::from_millis(10);
/// A run that waits for longer than this is left where it is.
const SOON_MS: i64 = 3_000;

/// What an actor is to do.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// One attempt of whatever is due.
    OneAttempt,
    /// All attempts, until the run has ended or waits for what does not come by itself.
    Settled(Uuid),
}

/// What an actor is made of.
#[derive(Debug)]
pub struct Role {
    pub settings: NodeSettings,
    pub world: Arc<dyn ClosedWorld>,
    pub probe: Arc<dyn Probe>,
    pub goal: Goal,
    pub within: Duration,
}

#[derive(Debug)]
pub struct Actor {
    thread: Option<JoinHandle<Result<(), Error>>>,
    clock: Arc<LateClock>,
    dead: CancellationToken,
}

impl Actor {
    pub fn start(role: Role) -> Self {
        let (clock, dead) = (Arc::new(LateClock::default()), CancellationToken::new());
        let (own_clock, own_dead) = (clock.clone(), dead.clone());
        let thread = Some(std::thread::spawn(move || live(role, own_clock, &own_dead)));
        Self { thread, clock, dead }
    }

    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it with everything that it was doing; nothing of it runs again.
    pub async fn kill(mut self) -> Result<(), Error> {
        self.dead.cancel();
        self.join(DEAD_WITHIN).await
    }

    /// Its lease is over, by its own clock as well.
    pub fn is_late(&self) {
        self.clock.ahead_ms.store(u64::try_from(ASLEEP.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Waits until it has done what it was to do.
    pub async fn end(mut self, within: Duration) -> Result<(), Error> {
        self.join(within + DEAD_WITHIN).await
    }

    async fn join(&mut self, within: Duration) -> Result<(), Error> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let ended = tokio::time::timeout(within, tokio::task::spawn_blocking(move || thread.join())).await;
        match ended {
            Ok(Ok(Ok(result))) => result,
            Ok(_) => Err(Error::Actor("it panicked".to_owned())),
            Err(_) => Err(Error::Actor(format!("it did not end within {} s", within.as_secs()))),
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        self.dead.cancel();
    }
}

fn live(role: Role, clock: Arc<LateClock>, dead: &CancellationToken) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(async {
        tokio::select! {
            biased;
            () = dead.cancelled() => Ok(()),
            result = act(role, clock) => result,
        }
    });
    // Whatever is still open goes with the runtime, without an orderly end.
    runtime.shutdown_background();
    result
}

async fn act(role: Role, clock: Arc<LateClock>) -> Result<(), Error> {
    let Role { settings, world, probe, goal, within } = role;
    let node = Node::open_closed(settings, clock, probe, world).await?;
    let give_up = Instant::now() + within;
    loop {
        let worked = node.worker().run_once().await.map_err(node::Error::Store)?;
        let done = match goal {
            Goal::OneAttempt => worked,
            Goal::Settled(run) => !worked && is_settled(&node, run).await?,
        };
        if done {
            node.close().await;
            return Ok(());
        }
        if Instant::now() > give_up {
            return Err(Error::Actor(format!("the run did not settle within {} s", within.as_secs())));
        }
        if !worked {
            tokio::time::sleep(IDLE).await;
        }
    }
}

async fn is_settled(node: &Node, run: Uuid) -> Result<bool, Error> {
    let Some(run) = store::run::find(node.store(), TENANT, run).await? else { return Ok(true) };
    if run.ended_at.is_some() {
        return Ok(true);
    }
    let far = |due: chrono::DateTime<chrono::Utc>| (due - chrono::Utc::now()).num_milliseconds() > SOON_MS;
    Ok(run.state != "running" && run.due_at.is_none_or(far))
}

#[derive(Debug, Default)]
struct LateClock {
    ahead_ms: AtomicU64,
}

impl Clock for LateClock {
    fn now(&self) -> std::time::SystemTime {
        SystemClock.now()
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed() + Duration::from_millis(self.ahead_ms.load(Ordering::SeqCst))
    }
}
