//! A way to the database that the test can spoil while it is in use: cut, refused, slow, silent, or with answers that
//! never come back although the database did what was asked. It understands just enough of the protocol to know where a
//! request ends. Everything ends with its owner.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::frames::Frames;

const CHUNK: usize = 64 << 10;
/// How long the database may take for a request whose answer is to be lost.
const CARRIED_OUT_WITHIN: Duration = Duration::from_secs(5);

/// Where the database is.
#[derive(Clone, Debug)]
pub enum Target {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

impl Target {
    /// The socket that the address of a private server names.
    pub fn of_url(url: &str) -> Self {
        let socket_dir = url.split("host=").nth(1).and_then(|rest| rest.split('&').next()).unwrap();
        Self::Unix(Path::new(socket_dir).join(".s.PGSQL.5432"))
    }
}

/// What becomes of what is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Pass,
    /// Each piece comes later by this much.
    Delay(Duration),
    /// Connections are accepted, and nothing moves on any of them.
    BlackHole,
    /// New connections are reset.
    Refuse,
}

/// What was done so far.
#[derive(Debug, Default)]
pub struct Counts {
    pub opened: AtomicUsize,
    pub refused: AtomicUsize,
    pub cut: AtomicUsize,
    pub lost: AtomicUsize,
}

#[derive(Debug)]
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
    accepting: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    target: Mutex<Target>,
    way: watch::Sender<Way>,
    /// Each number is one more cut.
    cuts: watch::Sender<u64>,
    /// Connections from before the last of these moments are dead, and nobody has been told.
    silenced: watch::Sender<u64>,
    lose: Mutex<Lose>,
    deaf: AtomicBool,
    counts: Counts,
}

/// Which answers are lost.
#[derive(Debug)]
struct Lose {
    next: usize,
    of_hundred: u32,
    dice: StdRng,
}

impl Proxy {
    /// Listens on a port of its own. `seed`: for the answers that are lost by chance.
    pub async fn start(target: Target, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            target: Mutex::new(target),
            way: watch::Sender::new(Way::Pass),
            cuts: watch::Sender::new(0),
            silenced: watch::Sender::new(0),
            lose: Mutex::new(Lose { next: 0, of_hundred: 0, dice: StdRng::seed_from_u64(seed) }),
            deaf: AtomicBool::new(false),
            counts: Counts::default(),
        });
        let accepting = tokio::spawn(accept(listener, shared.clone()));
        Self { address, shared, accepting }
    }

    /// The address of a database there, for clients that speak in the clear.
    pub fn url(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@{}/{database}?sslmode=disable", self.address)
    }

    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// Where connections lead from now on; those that are open stay where they are.
    pub fn lead_to(&self, target: Target) {
        *self.shared.target.lock().unwrap() = target;
    }

    pub fn set(&self, way: Way) {
        self.shared.way.send_replace(way);
    }

    /// Resets every connection that is open.
    pub fn cut(&self) {
        self.shared.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Nothing moves any more on the connections that are open, and neither side is told. New ones are as they should be.
    pub fn silence(&self) {
        self.shared.silenced.send_modify(|times| *times += 1);
    }

    /// New connections are told of no notification, as behind a pooler that shares connections between transactions.
    pub fn deafen(&self) {
        self.shared.deaf.store(true, Ordering::SeqCst);
    }

    /// Loses the answers to the next requests: each is carried out, and then its connection is reset.
    pub fn lose_next(&self, answers: usize) {
        self.shared.lose.lock().unwrap().next = answers;
    }

    /// Loses so many of a hundred answers.
    pub fn lose(&self, of_hundred: u32) {
        self.shared.lose.lock().unwrap().of_hundred = of_hundred;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The connections are the task's own.
        self.accepting.abort();
    }
}

impl Shared {
    /// Waits until something may pass. Never, on a connection that has been silenced.
    async fn admit(&self, born: u64) {
        let mut way = self.way.subscribe();
        loop {
            let now = *way.borrow_and_update();
            if *self.silenced.borrow() > born {
                return std::future::pending().await;
            }
            match now {
                Way::Pass | Way::Refuse => return,
                Way::Delay(time) => return tokio::time::sleep(time).await,
                // The sender lives as long as this.
                Way::BlackHole => way.changed().await.unwrap(),
            }
        }
    }

    fn loses_this(&self) -> bool {
        let mut lose = self.lose.lock().unwrap();
        if lose.next > 0 {
            lose.next -= 1;
            return true;
        }
        let of_hundred = lose.of_hundred;
        of_hundred > 0 && lose.dice.random_range(0..100) < of_hundred
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut carried = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (client, _) = accepted.unwrap();
                client.set_nodelay(true).ok();
                carried.spawn(carry(client, shared.clone()));
            }
            Some(_) = carried.join_next() => {}
        }
    }
}

/// One connection, to its end. What fails here can be told to nobody but by ending.
async fn carry(mut client: TcpStream, shared: Arc<Shared>) {
    let mut cuts = shared.cuts.subscribe();
    let born = *shared.silenced.borrow();
    if *shared.way.borrow() == Way::Refuse {
        count(&shared.counts.refused);
        client.set_zero_linger().ok();
        return;
    }
    count(&shared.counts.opened);
    let torn = tokio::select! {
        torn = connect_and_pump(&mut client, &shared, born) => torn,
        _ = cuts.changed() => {
            count(&shared.counts.cut);
            true
        }
    };
    if torn {
        // The next thing that the client sees is a reset.
        client.set_zero_linger().ok();
    }
}

/// True when the client is to be reset, false when the other side just ended.
async fn connect_and_pump(client: &mut TcpStream, shared: &Shared, born: u64) -> bool {
    shared.admit(born).await;
    let target = shared.target.lock().unwrap().clone();
    match target {
        Target::Unix(path) => match UnixStream::connect(path).await {
            Ok(server) => pump(client, server, shared, born).await,
            Err(_) => true,
        },
        Target::Tcp(address) => match TcpStream::connect(address).await {
            Ok(server) => pump(client, server, shared, born).await,
            Err(_) => true,
        },
    }
}

async fn pump(client: &mut TcpStream, server: impl AsyncRead + AsyncWrite, shared: &Shared, born: u64) -> bool {
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = tokio::io::split(server);
    let lost = AtomicU64::new(0);
    let passage = Passage { shared, born, lost: &lost };
    tokio::select! {
        torn = passage.up(from_client, to_server) => torn,
        torn = passage.down(from_server, to_client) => torn,
    }
}

struct Passage<'a> {
    shared: &'a Shared,
    born: u64,
    /// The number of the request whose answer is lost, from 1; 0 before there is one.
    lost: &'a AtomicU64,
}

impl Passage<'_> {
    async fn up(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> bool {
        let mut frames = Frames::of_client();
        let (mut requests, mut executes) = (0, false);
        let mut bytes = vec![0; CHUNK];
        loop {
            let Ok(read @ 1..) = from.read(&mut bytes).await else { return false };
            let mut last = None;
            for frame in frames.read(&bytes[..read]) {
                executes |= matches!(frame.kind, b'E' | b'Q');
                // A synchronisation ends a request, and with it the transaction; so does a simple query.
                if !matches!(frame.kind, b'S' | b'Q') {
                    continue;
                }
                requests += 1;
                if std::mem::take(&mut executes) && self.shared.loses_this() {
                    last = Some(frame.end);
                    break;
                }
            }
            self.shared.admit(self.born).await;
            if last.is_some() {
                self.lost.store(requests, Ordering::SeqCst);
            }
            if to.write_all(&bytes[..last.unwrap_or(read)]).await.is_err() {
                return false;
            }
            if last.is_some() {
                tokio::time::sleep(CARRIED_OUT_WITHIN).await;
                return true;
            }
        }
    }

    /// All whole messages but notifications.
    async fn down_but_notifications(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> bool {
        let (mut frames, mut held) = (Frames::of_server(), Vec::new());
        let mut bytes = vec![0; CHUNK];
        loop {
            let Ok(read @ 1..) = from.read(&mut bytes).await else { return false };
            let before = held.len();
            held.extend_from_slice(&bytes[..read]);
            let mut begin = 0;
            let mut passing = Vec::new();
            for frame in frames.read(&bytes[..read]) {
                let end = before + frame.end;
                if frame.kind != b'A' {
                    passing.extend_from_slice(&held[begin..end]);
                }
                begin = end;
            }
            held.drain(..begin);
            self.shared.admit(self.born).await;
            if to.write_all(&passing).await.is_err() {
                return false;
            }
        }
    }

    async fn down(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> bool {
        if self.shared.deaf.load(Ordering::SeqCst) {
            return self.down_but_notifications(from, to).await;
        }
        let mut frames = Frames::of_server();
        // The first "ready" ends the greeting: that of request n is number n + 1.
        let mut ready = 0;
        let mut bytes = vec![0; CHUNK];
        loop {
            let Ok(read @ 1..) = from.read(&mut bytes).await else { return false };
            let lost = self.lost.load(Ordering::SeqCst);
            let mut passing = if lost > 0 && ready >= lost { 0 } else { read };
            let mut carried_out = false;
            for frame in frames.read(&bytes[..read]).into_iter().filter(|frame| frame.kind == b'Z') {
                ready += 1;
                if lost > 0 && ready == lost {
                    passing = frame.end;
                }
                carried_out |= lost > 0 && ready > lost;
            }
            self.shared.admit(self.born).await;
            if to.write_all(&bytes[..passing]).await.is_err() {
                return false;
            }
            if carried_out {
                count(&self.shared.counts.lost);
                return true;
            }
        }
    }
}

fn count(number: &AtomicUsize) {
    number.fetch_add(1, Ordering::SeqCst);
}
