//! A worker in a thread and a runtime of its own, which stands for a process: it can be held at a point of its first
//! attempt, killed there with all that it has open, or frozen there and woken when its lease is long over.

use std::future::pending;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use deedbox::clock::{Clock, SystemClock};
use deedbox::config::Config;
use deedbox::node::{Node, NodeSettings};
use deedbox::probe::{Point, Probe};
use tokio_util::sync::CancellationToken;

use super::{World, shared};

/// How far a frozen worker's clock has moved when it wakes: beyond every lease.
const ASLEEP: Duration = Duration::from_secs(3_600);

/// For everything that must happen soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// A worker that makes one attempt.
#[derive(Debug)]
pub struct Victim {
    thread: Option<JoinHandle<Option<bool>>>,
    clock: Arc<LateClock>,
    hold: Arc<Hold>,
    freeze: CancellationToken,
    frozen: CancellationToken,
    thaw: Option<mpsc::Sender<()>>,
    dead: CancellationToken,
}

impl Victim {
    /// Begins one attempt, which holds at the point, or nowhere.
    pub fn start(world: &World, name: &str, config: Config, at: Option<Point>) -> Self {
        Self::start_nth(world, name, config, at, 1)
    }

    /// The same, at the point when it is reached for the n-th time.
    pub fn start_nth(world: &World, name: &str, config: Config, at: Option<Point>, nth: usize) -> Self {
        let clock = Arc::new(LateClock::default());
        let (reached, go) = (CancellationToken::new(), CancellationToken::new());
        let hold = Arc::new(Hold { at, before: AtomicUsize::new(nth - 1), reached, go });
        let (freeze, frozen, dead) = (CancellationToken::new(), CancellationToken::new(), CancellationToken::new());
        let (thaw, thawed) = mpsc::channel();
        let settings = NodeSettings {
            database_url: world.database.url.clone(),
            master_keys: shared::master_keys(),
            cache_dir: shared::cache_dir(),
            config,
            name: name.to_owned(),
        };
        let life = Life { freeze: freeze.clone(), frozen: frozen.clone(), thawed, dead: dead.clone() };
        let parts = (clock.clone(), hold.clone());
        let thread = Some(std::thread::spawn(move || live(settings, parts, &life)));
        Self { thread, clock, hold, freeze, frozen, thaw: Some(thaw), dead }
    }

    /// Waits until the attempt holds at its point.
    pub async fn held(&self) {
        soon(self.hold.reached.cancelled()).await;
    }

    /// Ends it with everything that it was doing; nothing of it runs again.
    pub async fn kill(mut self) {
        self.dead.cancel();
        assert_eq!(self.join().await, None, "it had ended before it was killed");
    }

    /// Stops its only thread, and with it every task.
    pub async fn freeze(&self) {
        self.freeze.cancel();
        soon(self.frozen.cancelled()).await;
    }

    /// Lets a frozen one go on, to whom hours have passed, and waits for the end of its attempt.
    pub async fn wake(mut self) {
        self.clock.ahead_ms.store(ASLEEP.as_millis() as u64, Ordering::SeqCst);
        self.hold.go.cancel();
        self.thaw.take();
        assert_eq!(self.join().await, Some(true));
    }

    /// Lets a held one go on, and waits for the end of its attempt.
    pub async fn resume(mut self) {
        self.hold.go.cancel();
        assert_eq!(self.join().await, Some(true));
    }

    async fn join(&mut self) -> Option<bool> {
        let thread = self.thread.take().unwrap();
        soon(tokio::task::spawn_blocking(move || thread.join().unwrap())).await.unwrap()
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.dead.cancel();
    }
}

async fn soon<F: Future>(what: F) -> F::Output {
    tokio::time::timeout(PATIENCE, what).await.unwrap()
}

struct Life {
    freeze: CancellationToken,
    frozen: CancellationToken,
    /// Disconnected when the worker may go on.
    thawed: mpsc::Receiver<()>,
    dead: CancellationToken,
}

/// Whether a run was due; none when it was killed.
fn live(settings: NodeSettings, (clock, hold): (Arc<LateClock>, Arc<Hold>), life: &Life) -> Option<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let did = runtime.block_on(async {
        let node = Node::open_with(settings, clock, hold).await.unwrap();
        let frozen = async {
            life.freeze.cancelled().await;
            life.frozen.cancel();
            // Blocks the runtime: a stopped process runs nothing at all.
            let _ = life.thawed.recv_timeout(2 * PATIENCE);
            pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = life.dead.cancelled() => None,
            () = frozen => None,
            did = node.worker().run_once() => Some(did.unwrap()),
        }
    });
    runtime.shutdown_background();
    did
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

#[derive(Debug)]
struct Hold {
    at: Option<Point>,
    /// How often the point is passed before.
    before: AtomicUsize,
    reached: CancellationToken,
    go: CancellationToken,
}

impl Probe for Hold {
    fn reach(&self, point: Point) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let passed = || self.before.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if self.at == Some(point) && passed().is_err() {
                self.reached.cancel();
                self.go.cancelled().await;
            }
        })
    }
}
