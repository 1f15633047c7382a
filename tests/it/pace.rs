//! The pace at which a tenant sends to a provider: the provider's own Retry-After, and the rate of its profile, for all
//! runs and all nodes at once.

use std::time::{Duration, Instant};

use chrono::TimeDelta;
use deedbox::store::rate::{self, Admitted, Pace};
use deedbox::store::resolution::{self, Outcome, Resolution};
use deedbox_books::{Behaviour, Options};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::harness::{World, config, work_once};

const TENANT: &str = "acme";

fn busy(retry_after: u64) -> Behaviour {
    Behaviour::StatusBeforeApply { status: 429, retry_after: Some(retry_after), body: None }
}

fn charge(world: &World) -> Value {
    json!({ "calls": [{ "method": "POST", "url": world.charges(), "expect": 201, "json": { "n": 1 } }], "fail_on_error": true })
}

/// The guest fails with what it was told, `expect` makes it permanent; this one leaves the status to the policy.
fn any(world: &World) -> Value {
    json!({ "calls": [{ "method": "POST", "url": world.charges(), "json": { "n": 1 } }], "then": ["fail", "return"] })
}

/// R-D33, F-C13. The next attempt of the run that was told comes no sooner.
#[tokio::test(flavor = "multi_thread")]
async fn the_next_attempt_waits_for_as_long_as_the_provider_asks() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    for (asked, least) in [(3, 3), (90, 90)] {
        world.script(&[busy(asked)]).await;
        world.database.execute("delete from rates").await;
        let run = world.start("send", any(&world)).await;
        work_once(&world.node).await;
        let ended = world.attempts(run).await[0].ended_at.unwrap();
        let wait = world.run(run).await.due_at.unwrap() - ended;
        let asked = TimeDelta::seconds(least);
        assert!(wait > asked - TimeDelta::seconds(1) && wait <= asked + TimeDelta::seconds(1), "{wait}");
    }
}

/// F-C13. A pause that would outlast the setting is cut to it.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_cut_to_the_hosts_longest() {
    let mut config = config();
    config.gateway.max_retry_after_ms = 60_000;
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[busy(9_223_372_036_854_775_807)]).await;
    let run = world.start("send", any(&world)).await;
    work_once(&world.node).await;
    let wait = world.run(run).await.due_at.unwrap() - world.attempts(run).await[0].ended_at.unwrap();
    assert!(wait > TimeDelta::seconds(55) && wait <= TimeDelta::seconds(60), "{wait}");
}

/// What one run was told holds for all runs of the tenant on every node, spends none of their attempts, and for nobody else.
#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_for_all_runs_of_the_tenant() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    world.script(&[busy(600)]).await;
    let told = world.start("send", any(&world)).await;
    work_once(&world.node).await;
    let second = world.second("two", deedbox::probe::none()).await;
    let mut others = Vec::new();
    for _ in 0..5 {
        others.push(world.start("send", charge(&world)).await);
    }
    for _ in &others {
        work_once(&second).await;
    }
    assert_eq!(world.books.arrivals().await.unwrap().len(), 1, "nobody asks again");
    for run in &others {
        assert_eq!(world.outcomes(*run).await, ["deferred"]);
        let waiting = world.run(*run).await;
        assert_eq!(waiting.state, "waiting");
        let wait = waiting.due_at.unwrap() - waiting.started_at.unwrap();
        assert!(wait > TimeDelta::seconds(590) && wait < TimeDelta::seconds(640), "{wait}");
    }
    let spent: i64 = sqlx::query_scalar("select sum(spent) from runs where run_id <> $1")
        .bind(told)
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(spent, 0);
    world.database.advance_seconds(650).await;
    world.work().await;
    for run in others {
        assert_eq!(world.output(run).await[0]["status"], 201);
    }
    assert_eq!(world.books.applied().await.unwrap().len(), 6);
}

/// A pause that is short is waited out where the guest is, and neither an answer from the record nor another account waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_short_pause_is_waited_out_and_a_replay_needs_none() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    let named =
        |name: &str| json!({ "method": "POST", "url": world.charges(), "identity": { "named": name }, "json": {} });
    let done = world.start("send", json!({ "calls": [named("a")], "then": ["fail", "return"] })).await;
    work_once(&world.node).await;
    world.database.execute("update rates set blocked_until = deedbox_now() + interval '1 hour'").await;
    rate::block(world.node.store(), TENANT, "stripe", "", 3_600_000).await.unwrap();
    work_once(&world.node).await;
    assert_eq!(world.output(done).await[0]["source"], "replayed");
    world.database.execute("update rates set blocked_until = deedbox_now() + interval '400 milliseconds'").await;
    let began = Instant::now();
    let run = world.start("send", charge(&world)).await;
    work_once(&world.node).await;
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    assert_eq!(world.outcomes(run).await, ["completed"]);
}

/// Reads keep the pause too.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_keeps_the_providers_pause() {
    let world = World::keyed().await;
    world.deploy("send", "stripe", json!({})).await;
    rate::block(world.node.store(), TENANT, "stripe", "", 3_600_000).await.unwrap();
    let run = world.start("send", json!({ "calls": [{ "method": "GET", "url": world.charges() }] })).await;
    work_once(&world.node).await;
    assert_eq!(world.outcomes(run).await, ["deferred"]);
    assert!(world.books.arrivals().await.unwrap().is_empty());
}

/// The generic cell rate algorithm: a burst at once, then an even pace, and no place for what would wait too long.
#[tokio::test(flavor = "multi_thread")]
async fn a_rate_lets_a_burst_through_and_spaces_the_rest_evenly() {
    let world = World::keyed().await;
    // The time stands still: what is admitted does not hang on how fast the test is.
    let still = "create or replace function deedbox_now() returns timestamptz language sql stable parallel safe
                 as $$ select timestamptz '2026-01-01 00:00:00Z' $$";
    world.database.execute(still).await;
    let pace = Pace { per_second: 10.0, burst: 3 };
    let mut admitted = Vec::new();
    for _ in 0..8 {
        admitted.push(rate::admit(world.node.store(), TENANT, "m", "a", pace, 350).await.unwrap());
    }
    let places = [0, 0, 0, 100, 200, 300].map(|ms| Admitted::After { ms });
    assert_eq!(admitted[..6], places);
    let sent_away = [500, 600].map(|ms| Admitted::TooEarly { ms });
    assert_eq!(admitted[6..], sent_away, "each comes back behind the one before");
    let other = rate::admit(world.node.store(), TENANT, "m", "b", pace, 0).await.unwrap();
    assert_eq!(other, Admitted::After { ms: 0 }, "another account has its own pace");
}

/// Two nodes, one tenant, a profile with a rate: together they do not send faster.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_nodes_together_keep_the_rate_of_the_profile() {
    let world = World::keyed().await;
    let profile = "name = \"slow\"\nversion = \"1\"\nsource = \"this test\"\nextends = \"stripe\"\nhosts = []\n[rate]\nper_second = 20\nburst = 1\n";
    deedbox::store::provider::put(world.node.store(), TENANT, "slow", profile).await.unwrap();
    world.deploy("send", "slow", json!({})).await;
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(world.start("send", charge(&world)).await);
    }
    let second = world.second("two", deedbox::probe::none()).await;
    let shutdown = CancellationToken::new();
    let began = Instant::now();
    let working = [&world.node, &second].map(|node| tokio::spawn(node.worker().clone().run(shutdown.clone())));
    world.books.wait_for_applied(20, Duration::from_secs(30)).await.unwrap();
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(900), "19 steps of 50 ms: {took:?}");
    shutdown.cancel();
    for worker in working {
        worker.await.unwrap();
    }
}

/// Runs that are sent away come back one after another, so that a slow provider with a long queue costs a few attempts for
/// each run, none of them spent, and not one for each place of the queue.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_queue_before_a_slow_provider_does_not_thrash() {
    let mut config = config();
    config.gateway.pace_wait_ms = 200;
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    let profile = "name = \"slow\"\nversion = \"1\"\nsource = \"this test\"\nextends = \"stripe\"\nhosts = []\n[rate]\nper_second = 10\n";
    deedbox::store::provider::put(world.node.store(), TENANT, "slow", profile).await.unwrap();
    world.deploy("send", "slow", json!({ "retry": { "max_attempts": 1 } })).await;
    for _ in 0..40 {
        world.start("send", charge(&world)).await;
    }
    let shutdown = CancellationToken::new();
    let working = tokio::spawn(world.node.worker().clone().run(shutdown.clone()));
    world.books.wait_for_applied(40, Duration::from_secs(60)).await.unwrap();
    shutdown.cancel();
    working.await.unwrap();
    let attempts: i64 = sqlx::query_scalar("select count(*) from attempts")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert!(attempts < 40 * 5, "{attempts} attempts of 40 runs");
    let failed: i64 = sqlx::query_scalar("select count(*) from runs where state = 'failed'")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    assert_eq!(failed, 0, "waiting for one's turn spends no attempt");
}

/// A person's leave to send once more is used up by a send, not by a wait for one's turn.
#[tokio::test(flavor = "multi_thread")]
async fn a_leave_to_send_again_outlives_the_wait_for_a_turn() {
    let world = World::keyless().await;
    let profile = "name = \"slow\"\nversion = \"1\"\nsource = \"this test\"\nextends = \"keyless\"\nhosts = []\n[rate]\nper_second = 0.001\n";
    deedbox::store::provider::put(world.node.store(), TENANT, "slow", profile).await.unwrap();
    world.deploy("send", "slow", json!({})).await;
    world.script(&[Behaviour::CutBeforeApply]).await;
    let run = world.start("send", charge(&world)).await;
    world.work().await;
    let effect = world.sends(run).await.remove(0);
    assert_eq!(effect.state, "escaped");
    let resolution = Resolution {
        effect_id: effect.effect_id.try_into().unwrap(),
        outcome: Outcome::SendAgain,
        by: "a person".to_owned(),
        note: "it did not come".to_owned(),
        answer: None,
        in_flight_ms: 0,
    };
    resolution::resolve(world.node.store(), TENANT, &resolution).await.unwrap();
    work_once(&world.node).await;
    assert_eq!(world.outcomes(run).await, ["suspended", "deferred"]);
    world.database.execute("update rates set next_at = '-infinity', deferred_until = '-infinity'").await;
    world.database.execute("update runs set due_at = deedbox_now() where due_at is not null").await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["status"], 201);
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}
