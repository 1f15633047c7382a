//! The loss of the database's machine: the standby takes its place, and has all that was ever confirmed.

use std::time::Instant;

use rand::SeedableRng;
use rand::rngs::StdRng;

use super::fleet::{self, until_ready_is};
use super::invariants;
use super::stage::Stage;
use crate::harness::own_server::user;
use crate::harness::pair::Pair;
use crate::harness::proxy::Proxy;
use crate::harness::{seed, tell};

/// Starts on either side of the loss.
const BEFORE: usize = 60;
const AFTER: usize = 40;

/// R-A04: the primary is killed under load, its synchronous standby promoted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_that_is_promoted_has_everything_that_was_confirmed() {
    let seed = seed();
    tell(&format!("chaos standby: seed {seed}"));
    let mut pair = Pair::start().await;
    let mut stage = Stage::on(pair.primary.migrated("standby").await).await;
    stage.unsettle(&mut StdRng::seed_from_u64(seed)).await;
    let proxy = Proxy::start(pair.primary.target(), seed).await;
    let ground = stage.ground(&proxy.url(user(), "standby"));
    let mut fleet = ground.fleet(1, 1).await;
    let load = stage.load(&ground.origins, seed);
    load.goes_on(BEFORE).await;

    pair.lose_primary().await;
    let lost = Instant::now();
    let confirmed = load.acknowledged();
    until_ready_is(&ground.origins, 503).await;
    pair.promote().await;
    proxy.lead_to(pair.standby.target());
    proxy.cut();
    until_ready_is(&ground.origins, 200).await;
    let away = lost.elapsed().as_millis();
    load.goes_on(AFTER).await;
    fleet::must_live(&mut fleet);

    let starts = load.end().await;
    stage.world.database = pair.standby.database("standby");
    stage.drained().await;
    fleet::end(fleet).await;
    let seen = stage.seen(starts).await;
    tell(&format!(
        "chaos standby: seed {seed}, 1 primary lost after {confirmed} confirmed starts, back after {away} ms; {}",
        seen.figures()
    ));
    invariants::assert_none(&seen);
    drop(stage);
    pair.end().await;
}
