//! The real programs, `deedbox serve` and `deedbox worker`, on one database. One that ends by itself is a fault.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::{SOON, within};
use crate::cli::program::{Running, deedbox};
use crate::harness::{http, shared};

/// Leases are short, so that what is lost is soon found.
const SETTINGS: &str = "
    database = { max_connections = 6 }
    worker = { lease_ms = 2000, poll_ms = 100, grace_ms = 1500 }
    gateway = { default_send_ms = 5000, max_send_ms = 10000, in_flight_wait_ms = 300 }
    host = { max_instances = 16, max_memory_bytes = 33554432, default_memory_bytes = 33554432 }";

/// How long a node may take until it sees that the database is away, or back.
const NOTICED_WITHIN: Duration = Duration::from_secs(30);

/// Where the API can be reached just now, by the place of its process.
#[derive(Clone, Debug, Default)]
pub struct Origins(Arc<Mutex<Vec<(usize, String)>>>);

impl Origins {
    pub fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().iter().map(|(_, origin)| origin.clone()).collect()
    }

    fn set(&self, place: usize, origin: Option<String>) {
        let mut all = self.0.lock().unwrap();
        all.retain(|(other, _)| *other != place);
        all.extend(origin.map(|origin| (place, origin)));
    }
}

/// What all processes of a fleet share.
#[derive(Clone, Debug)]
pub struct Ground {
    dir: PathBuf,
    database_url: String,
    pub origins: Origins,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Serve,
    Worker,
}

/// A place in a fleet, and the process that has it just now.
pub struct Member {
    ground: Ground,
    part: Part,
    place: usize,
    generation: usize,
    running: Running,
}

impl Ground {
    pub fn new(dir: &Path, database_url: &str) -> Self {
        std::fs::write(dir.join("fleet.toml"), SETTINGS).unwrap();
        Self { dir: dir.to_owned(), database_url: database_url.to_owned(), origins: Origins::default() }
    }

    /// So many of each part.
    pub async fn fleet(&self, serves: usize, workers: usize) -> Vec<Member> {
        let parts = [vec![Part::Serve; serves], vec![Part::Worker; workers]].concat();
        let mut fleet = Vec::new();
        for (place, part) in parts.into_iter().enumerate() {
            fleet.push(Member::start(self.clone(), part, place).await);
        }
        fleet
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.join(format!("{name}.log"))
    }

    async fn run(&self, part: Part, name: &str) -> (Running, Option<String>) {
        let arguments: &[&str] = match part {
            Part::Serve => &["serve", "--listen", "127.0.0.1:0"],
            Part::Worker => &["worker"],
        };
        let mut command = deedbox(arguments);
        command.args(["--name", name, "--database-url", &self.database_url]);
        command.arg("--master-key-file").arg(shared::master_key_file());
        command.arg("--cache-dir").arg(shared::cache_dir());
        command.arg("--config").arg(self.dir.join("fleet.toml"));
        let mut running = Running::start(command, self.log(name));
        let said = running.line().await;
        (running, said.strip_prefix("listening on ").map(str::to_owned))
    }
}

impl Member {
    /// Starts a process, and returns once it serves or works.
    pub async fn start(ground: Ground, part: Part, place: usize) -> Self {
        let (running, origin) = ground.run(part, &name(part, place, 1)).await;
        ground.origins.set(place, origin);
        Self { ground, part, place, generation: 1, running }
    }

    pub fn name(&self) -> String {
        name(self.part, self.place, self.generation)
    }

    /// Another process in its place, under another name.
    async fn start_again(&mut self) {
        self.generation += 1;
        let (running, origin) = self.ground.run(self.part, &self.name()).await;
        self.ground.origins.set(self.place, origin);
        self.running = running;
    }

    /// SIGKILL.
    pub async fn kill_and_start_again(&mut self) {
        self.kill().await;
        self.start_again().await;
    }

    /// SIGKILL; it is gone when this returns.
    pub async fn kill(&mut self) {
        self.must_live();
        self.ground.origins.set(self.place, None);
        self.running.signal("KILL").await;
        until_ended(&mut self.running).await;
    }

    /// SIGTERM: it drains, and ends well.
    pub async fn drain_and_start_again(&mut self) {
        self.ground.origins.set(self.place, None);
        let next = self.ground.run(self.part, &name(self.part, self.place, self.generation + 1)).await;
        let last = std::mem::replace(&mut self.running, next.0);
        let old = self.name();
        self.generation += 1;
        end_well(last, &old).await;
        self.ground.origins.set(self.place, next.1);
    }

    /// SIGSTOP for a while, then SIGCONT.
    pub async fn stand_still(&mut self, time: Duration) {
        self.must_live();
        self.running.signal("STOP").await;
        tokio::time::sleep(time).await;
        self.running.signal("CONT").await;
    }

    /// Nothing but a signal ends it.
    pub fn must_live(&mut self) {
        assert!(!self.running.has_ended(), "{} has ended by itself", self.name());
    }

    /// SIGTERM, for good.
    pub async fn end(mut self) {
        self.must_live();
        self.ground.origins.set(self.place, None);
        let name = self.name();
        end_well(self.running, &name).await;
    }
}

/// Each of them must live all the time.
pub fn must_live(fleet: &mut [Member]) {
    fleet.iter_mut().for_each(Member::must_live);
}

pub async fn end(fleet: Vec<Member>) {
    for member in fleet {
        member.end().await;
    }
}

/// Waits until `/readyz` of every server has this status.
pub async fn until_ready_is(origins: &Origins, status: u16) {
    let http = http::builder(&[]).timeout(Duration::from_secs(4)).build().unwrap();
    for origin in origins.all() {
        within(NOTICED_WITHIN, &format!("/readyz tells {status}"), async || {
            let answer = http.get(format!("{origin}/readyz")).send().await;
            answer.is_ok_and(|answer| answer.status() == status)
        })
        .await;
    }
}

async fn end_well(mut running: Running, name: &str) {
    assert!(!running.has_ended(), "{name} has ended by itself");
    running.signal("TERM").await;
    let ended = running.end().await;
    assert_eq!(ended.code, Some(0), "{name}: {ended:?}");
    assert!(!ended.err.contains("panicked"), "{name}: {ended:?}");
}

async fn until_ended(running: &mut Running) {
    let give_up = Instant::now() + SOON;
    while !running.has_ended() {
        assert!(Instant::now() < give_up, "a killed process is still there");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn name(part: Part, place: usize, generation: usize) -> String {
    let part = if part == Part::Serve { "serve" } else { "worker" };
    format!("{part}-{place}-{generation}")
}
