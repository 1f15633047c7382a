//! Everything that can happen to the database and to the way to it, one after another, under load. The programs see it
//! through and say when they cannot work.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::fleet::{self, Member, Origins, until_ready_is};
use super::invariants;
use super::load::Load;
use super::stage::Stage;
use super::{until, within};
use crate::harness::own_server::{OwnServer, user};
use crate::harness::proxy::{Proxy, Target, Way};
use crate::harness::{long, seed, tell};

/// How many starts must be confirmed after each fault before the next.
const GOES_ON: usize = 6;
const CUTS: usize = 4;
const LOST_ANSWERS: usize = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The server stops, its sessions are ended, and it comes back.
    Restart,
    /// The server's process is killed, and it recovers.
    Crash,
    Cuts,
    /// Statements are carried out, and nobody is told.
    LostAnswers,
    Delay,
    /// As after a switch of roles, or by an administrator.
    ReadOnly,
    /// Nothing moves; then all goes on as if nothing had been.
    Hole,
    /// Nothing moves; then all connections are reset.
    HoleAndCut,
    Refusals,
}

const ALL: [Fault; 9] = [
    Fault::Restart,
    Fault::Crash,
    Fault::Cuts,
    Fault::LostAnswers,
    Fault::Delay,
    Fault::ReadOnly,
    Fault::Hole,
    Fault::HoleAndCut,
    Fault::Refusals,
];

struct Storm {
    server: OwnServer,
    proxy: Proxy,
    fleet: Vec<Member>,
    origins: Origins,
    load: Load,
}

impl Storm {
    async fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::Restart => {
                self.server.stop().await;
                self.away_and_back().await;
            }
            Fault::Crash => {
                self.server.kill().await;
                self.away_and_back().await;
            }
            Fault::Cuts => self.cuts().await,
            Fault::LostAnswers => self.lose_answers().await,
            Fault::Delay => {
                self.proxy.set(Way::Delay(Duration::from_millis(30)));
                self.load.goes_on(GOES_ON).await;
            }
            Fault::ReadOnly => self.read_only().await,
            Fault::Hole | Fault::HoleAndCut => {
                self.proxy.set(Way::BlackHole);
                until_ready_is(&self.origins, 503).await;
                if fault == Fault::HoleAndCut {
                    self.proxy.cut();
                }
            }
            Fault::Refusals => {
                self.proxy.set(Way::Refuse);
                self.proxy.cut();
                until_ready_is(&self.origins, 503).await;
            }
        }
        self.proxy.set(Way::Pass);
        until_ready_is(&self.origins, 200).await;
        self.load.goes_on(GOES_ON).await;
        fleet::must_live(&mut self.fleet);
    }

    /// The server is down already.
    async fn away_and_back(&mut self) {
        until_ready_is(&self.origins, 503).await;
        self.server.start_again().await;
    }

    async fn cuts(&self) {
        for _ in 0..CUTS {
            let before = self.proxy.counts().cut.load(Ordering::SeqCst);
            self.proxy.cut();
            until("a connection was cut", async || self.proxy.counts().cut.load(Ordering::SeqCst) > before).await;
            self.load.goes_on(1).await;
        }
    }

    async fn lose_answers(&self) {
        let wanted = self.proxy.counts().lost.load(Ordering::SeqCst) + LOST_ANSWERS;
        self.proxy.lose(10);
        until("answers were lost", async || self.proxy.counts().lost.load(Ordering::SeqCst) >= wanted).await;
        self.proxy.lose(0);
    }

    async fn read_only(&self) {
        self.server.set_read_only(true).await;
        let wanted = self.load.refused() + 3;
        until("starts are refused", async || self.load.refused() >= wanted).await;
        self.server.set_read_only(false).await;
    }
}

/// R-A04, F-I04, F-I07. Restarts, a crash, cuts, lost answers, delay, a database that is read-only, silence, refusals.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_database_faults_loses_nothing_and_doubles_nothing() {
    let seed = seed();
    tell(&format!("chaos storm: seed {seed}"));
    let mut dice = StdRng::seed_from_u64(seed);
    let server = OwnServer::start().await;
    let stage = Stage::on(server.migrated("storm").await).await;
    stage.unsettle(&mut dice).await;
    let proxy = Proxy::start(server.target(), seed).await;
    let ground = stage.ground(&proxy.url(user(), "storm"));
    let fleet = ground.fleet(1, 1).await;
    let load = stage.load(&ground.origins, seed);
    let mut storm = Storm { server, proxy, fleet, origins: ground.origins.clone(), load };
    storm.load.goes_on(GOES_ON).await;

    let began = Instant::now();
    let lasts = Duration::from_secs(if long() { 180 } else { 25 });
    let (mut struck, mut order) = (0, Vec::new());
    while struck < ALL.len() || began.elapsed() < lasts {
        if order.is_empty() {
            order = ALL.to_vec();
            order.shuffle(&mut dice);
        }
        storm.strike(order.pop().unwrap()).await;
        struck += 1;
    }
    let starts = storm.load.end().await;
    stage.drained().await;
    fleet::end(storm.fleet).await;
    let seen = stage.seen(starts).await;
    let counts = storm.proxy.counts();
    let [cut, lost] = [&counts.cut, &counts.lost].map(|count| count.load(Ordering::SeqCst));
    tell(&format!(
        "chaos storm: seed {seed}, {struck} faults in {} s, {cut} connections cut, {lost} answers lost; {}",
        began.elapsed().as_secs(),
        seen.figures()
    ));
    invariants::assert_none(&seen);
    storm.server.end().await;
}

/// A network that forgets its connections without a word, as a firewall does: whoever waits on one must give it up by
/// itself, and take another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_die_without_a_word_are_given_up() {
    let seed = seed();
    let stage = Stage::fresh().await;
    let proxy = Proxy::start(Target::of_url(&stage.world.database.url), seed).await;
    let ground = stage.ground(&proxy.url(user(), stage.world.database.name()));
    let mut fleet = ground.fleet(1, 1).await;
    let load = stage.load(&ground.origins, seed);
    load.goes_on(GOES_ON).await;
    let rounds = if long() { 3 } else { 1 };
    for round in 1..=rounds {
        proxy.silence();
        let began = Instant::now();
        until_ready_is(&ground.origins, 200).await;
        let wanted = load.acknowledged() + GOES_ON;
        within(Duration::from_secs(60), "starts are confirmed again", async || load.acknowledged() >= wanted).await;
        tell(&format!("chaos silence {round}: confirmed again after {} s", began.elapsed().as_secs()));
        fleet::must_live(&mut fleet);
    }
    let starts = load.end().await;
    stage.drained().await;
    fleet::end(fleet).await;
    let seen = stage.seen(starts).await;
    tell(&format!("chaos silence: seed {seed}; {}", seen.figures()));
    invariants::assert_none(&seen);
}
