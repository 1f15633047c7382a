//! Who is served next: fairly between tenants, by rank within one, within the limits, and in time.

use std::collections::BTreeMap;

use deedbox::node::Node;
use deedbox::store::lease::{Leased, Look, Place, Rooms, Wanted};
use deedbox::store::start::{NewRun, StartAt, start};
use deedbox::store::{self, Store, control};
use serde_json::json;
use uuid::Uuid;

use crate::harness::{World, committed, lease, tell};

mod deadlines;
mod duties;
mod herd;
mod limits;

const ACME: &str = "acme";
const BETA: &str = "beta";

/// Two tenants with the same activity.
async fn two_tenants() -> World {
    let world = World::keyed().await;
    world.deploy("noop", "stripe", json!({})).await;
    tenant(&world, BETA).await;
    world
}

/// Another tenant with a copy of every activity.
async fn tenant(world: &World, tenant: &str) {
    store::tenant::create(world.node.store(), tenant).await.unwrap();
    for table in ["modules", "activities", "activity_versions"] {
        let columns: String = sqlx::query_scalar(
            "select string_agg(column_name, ', ' order by ordinal_position) from information_schema.columns
             where table_name = $1 and column_name <> 'tenant'",
        )
        .bind(table)
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
        let copy = format!(
            "insert into {table} (tenant, {columns}) select '{tenant}', {columns} from {table} where tenant = 'acme'"
        );
        world.database.execute(&copy).await;
    }
}

async fn queue(store: &Store, tenant: &str, runs: usize) -> Vec<Uuid> {
    queue_with(store, tenant, runs, |run| run).await
}

async fn queue_with(store: &Store, tenant: &str, runs: usize, change: impl Fn(NewRun) -> NewRun) -> Vec<Uuid> {
    let mut ids = Vec::new();
    for _ in 0..runs {
        let run = change(NewRun::plain(Uuid::now_v7(), "noop", 1, "null"));
        committed(store, async |tx| start(tx, tenant, &run, 100).await).await;
        ids.push(run.run_id);
    }
    ids
}

/// Puts so many ready runs into the queue, in one statement.
async fn fill(world: &World, tenant: &str, runs: usize) {
    world
        .database
        .execute(&format!(
            "insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, rank)
             select '{tenant}', gen_random_uuid(), 'noop', 1, 'queued', 'null', '{{}}', 3,
                    deedbox_rank(deedbox_now() - interval '1 hour' + n * interval '1 millisecond', 5::smallint)
             from generate_series(1, {runs}) n"
        ))
        .await;
}

fn by_tenant(leased: &[Leased]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for run in leased {
        *counts.entry(run.tenant.as_str()).or_default() += 1;
    }
    counts
}

fn ids(leased: &[Leased]) -> Vec<Uuid> {
    leased.iter().map(|run| run.run_id).collect()
}

/// F-K05. A tenant with ten thousand runs before it does not keep the other waiting for more than one place.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_one_run_is_served_before_the_backlog_of_another() {
    let world = two_tenants().await;
    fill(&world, ACME, 10_000).await;
    let store = world.node.store();
    assert_eq!(by_tenant(&lease(store, "w", 8, 60_000).await), BTreeMap::from([(ACME, 8)]));
    let lone = queue(store, BETA, 1).await;
    let next = lease(store, "w", 1, 60_000).await;
    assert_eq!(ids(&next), lone, "the next free place is its own");
}

/// F-K05. The same with a worker at work: how long the lone run waits, and that the backlog goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_lone_run_waits_for_a_place_and_not_for_a_backlog() {
    let world = two_tenants().await;
    fill(&world, ACME, 10_000).await;
    let working = worker_of(&world.node);
    let mut waits = Vec::new();
    for _ in 0..10 {
        let lone = queue(world.node.store(), BETA, 1).await[0];
        let give_up = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let run = loop {
            let run = store::run::find(world.node.store(), BETA, lone).await.unwrap().unwrap();
            if run.ended_at.is_some() {
                break run;
            }
            assert!(std::time::Instant::now() < give_up, "it is not served");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        };
        waits.push((run.started_at.unwrap() - run.created_at).num_milliseconds());
    }
    working.cancel();
    let backlog: i64 = sqlx::query_scalar("select count(*) from runs where tenant = 'acme' and ended_at is null")
        .fetch_one(&mut world.database.connect().await)
        .await
        .unwrap();
    waits.sort();
    tell(&format!(
        "fairness: a lone run beside {backlog} of another tenant waited {} ms, at most {} ms",
        waits[5], waits[9]
    ));
    assert!(backlog > 5_000, "there was a backlog all the time");
    assert!(waits[9] < 5_000, "{waits:?}");
}

/// Places go to whoever has the fewest runs under way, so that two with a backlog have half each, whoever came first.
#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_with_a_backlog_share_the_places() {
    let world = two_tenants().await;
    fill(&world, ACME, 500).await;
    let store = world.node.store();
    lease(store, "w", 20, 60_000).await;
    fill(&world, BETA, 500).await;
    let mut running = BTreeMap::from([(ACME, 20_usize), (BETA, 0)]);
    for _ in 0..10 {
        for (tenant, runs) in by_tenant(&lease(store, "w", 4, 60_000).await) {
            *running.get_mut(tenant).unwrap() += runs;
        }
    }
    assert_eq!(running, BTreeMap::from([(ACME, 30), (BETA, 30)]));
}

/// Within a tenant: by priority, then by age; and each step of priority is worth a minute, so that nothing waits for ever.
#[tokio::test(flavor = "multi_thread")]
async fn within_a_tenant_priority_goes_before_age_and_age_overtakes_in_time() {
    let world = two_tenants().await;
    let store = world.node.store();
    let of = |priority| move |run| NewRun { priority, ..run };
    let last = queue_with(store, ACME, 2, of(9)).await;
    let normal = queue_with(store, ACME, 2, of(5)).await;
    let first = queue_with(store, ACME, 2, of(1)).await;
    let order = ids(&lease(store, "w", 6, 60_000).await);
    let mut sorted = order.clone();
    sorted.sort_by_key(|id| (last.contains(id), normal.contains(id), *id));
    assert_eq!(order.iter().collect::<std::collections::HashSet<_>>().len(), 6);
    assert!(first.iter().chain(&normal).chain(&last).all(|id| order.contains(id)));
    // One at a time shows the order.
    let last = queue_with(store, ACME, 1, of(9)).await;
    let first = queue_with(store, ACME, 1, of(1)).await;
    assert_eq!(ids(&lease(store, "w", 1, 60_000).await), first);
    world.database.advance_seconds(8 * 60 + 1).await;
    let newer = queue_with(store, ACME, 1, of(1)).await;
    assert_eq!(ids(&lease(store, "w", 1, 60_000).await), last, "it has waited longer than its eight steps");
    assert_eq!(ids(&lease(store, "w", 1, 60_000).await), newer);
}

/// F-K05. A flood of retries does not starve fresh work: a retry ranks by when it became due.
#[tokio::test(flavor = "multi_thread")]
async fn retries_do_not_starve_fresh_runs() {
    let world = two_tenants().await;
    let store = world.node.store();
    let fresh = queue(store, ACME, 1).await;
    world
        .database
        .execute(
            "insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, spent, attempts, due_at)
             select 'acme', gen_random_uuid(), 'noop', 1, 'waiting', 'null', '{}', 9, 1, 1, deedbox_now() + n * interval '1 microsecond'
             from generate_series(1, 2000) n",
        )
        .await;
    world.database.advance_seconds(1).await;
    assert_eq!(ids(&lease(store, "w", 1, 60_000).await), fresh);
}

/// More lanes than one look compares: the worker goes round, and every tenant is served.
#[tokio::test(flavor = "multi_thread")]
async fn with_more_tenants_than_one_look_sees_all_are_served() {
    let world = two_tenants().await;
    for number in 0..150 {
        tenant(&world, &format!("t{number:03}")).await;
    }
    world
        .database
        .execute(
            "insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, rank)
             select tenant, gen_random_uuid(), 'noop', 1, 'queued', 'null', '{}', 3, deedbox_now()
             from tenants, generate_series(1, 20) where tenant like 't%'",
        )
        .await;
    let mut seen = std::collections::HashSet::new();
    let mut after = store::lease::Place::default();
    for _ in 0..30 {
        let look = look_behind(&world, after, Rooms::default()).await;
        seen.extend(look.leased.into_iter().map(|run| run.tenant));
        after = look.next;
    }
    assert_eq!(seen.len(), 150, "thirty looks of sixteen places reach every tenant");
}

/// A tenant with hundreds of activities takes no more than its share, and all of its activities are served.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_many_activities_does_not_crowd_another_out() {
    let world = two_tenants().await;
    world
        .database
        .execute(
            "insert into activities (tenant, activity, latest) select 'acme', 'a' || n, 1 from generate_series(1, 300) n;
             insert into activity_versions (tenant, activity, version, digest, export, policy)
             select 'acme', 'a' || n, 1, digest, export, policy from activity_versions, generate_series(1, 300) n
             where tenant = 'acme' and activity = 'noop';
             insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, rank)
             select 'acme', gen_random_uuid(), 'a' || n, 1, 'queued', 'null', '{}', 3, deedbox_now() - interval '1 hour'
             from generate_series(1, 300) n, generate_series(1, 5)",
        )
        .await;
    fill(&world, BETA, 500).await;
    let mut served: BTreeMap<String, usize> = BTreeMap::new();
    let mut activities = std::collections::HashSet::new();
    let mut after = store::lease::Place::default();
    for _ in 0..60 {
        let look = look_behind(&world, after, Rooms::default()).await;
        for run in look.leased {
            *served.entry(run.tenant.clone()).or_default() += 1;
            activities.insert(run.activity);
        }
        after = look.next;
    }
    assert_eq!((served[ACME], served[BETA]), (480, 480), "each has half, in every look");
    // Eight of each sixteen at a time, by chance: a window that is passed over would leave sixteen out each time.
    assert!(activities.len() > 180, "{} activities were served", activities.len());
}

/// A run that is to start later does not start sooner, and starts when its time has come.
#[tokio::test(flavor = "multi_thread")]
async fn a_delayed_run_starts_at_its_time() {
    let world = two_tenants().await;
    let store = world.node.store();
    let delayed = queue_with(store, ACME, 1, |run| NewRun { start: StartAt::AfterMs(90_000), ..run }).await;
    let at = chrono::Utc::now() + chrono::TimeDelta::seconds(200);
    let dated = queue_with(store, ACME, 1, |run| NewRun { start: StartAt::At(at), ..run }).await;
    let past =
        queue_with(store, ACME, 1, |run| NewRun { start: StartAt::At(at - chrono::TimeDelta::days(9)), ..run }).await;
    assert_eq!(ids(&lease(store, "w", 9, 600_000).await), past);
    world.database.advance_seconds(91).await;
    let next = ids(&lease(store, "w", 9, 600_000).await);
    assert!(next.contains(&delayed[0]) && !next.contains(&dated[0]));
    world.database.advance_seconds(201).await;
    assert_eq!(ids(&lease(store, "w", 9, 60_000).await), dated);
}

/// Paused: no attempt begins, whatever comes; resumed: it goes on.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_paused_activity_or_tenant_begins() {
    let world = two_tenants().await;
    let store = world.node.store();
    let (acme, beta) = (queue(store, ACME, 3).await, queue(store, BETA, 1).await);
    assert!(control::pause_activity(store, ACME, "noop", true).await.unwrap());
    assert_eq!(ids(&lease(store, "w", 9, 60_000).await), beta);
    assert!(control::pause_activity(store, ACME, "noop", false).await.unwrap());
    assert!(control::pause_tenant(store, ACME, true).await.unwrap());
    assert!(lease(store, "w", 9, 60_000).await.is_empty());
    assert!(control::pause_tenant(store, ACME, false).await.unwrap());
    assert_eq!(lease(store, "w", 9, 60_000).await.len(), acme.len());
    assert!(!control::pause_tenant(store, "nobody", true).await.unwrap());
    assert!(!control::pause_activity(store, ACME, "nothing", true).await.unwrap());
}

/// A worker whose lease statement got no answer gives the runs back: no attempt is spent.
#[tokio::test(flavor = "multi_thread")]
async fn runs_whose_lease_was_never_answered_are_given_back_unspent() {
    let world = two_tenants().await;
    let store = world.node.store();
    queue(store, ACME, 3).await;
    let batch = Uuid::new_v4();
    let wanted = store::lease::Wanted {
        worker: "w".to_owned(),
        limit: 2,
        ttl_ms: 60_000,
        batch,
        after: store::lease::Place::default(),
        rooms: Rooms::default(),
    };
    let lost = store::lease::lease(store, &wanted).await.unwrap().leased;
    assert_eq!(store::lease::give_back(store, batch).await.unwrap(), 2);
    assert_eq!(store::lease::give_back(store, batch).await.unwrap(), 0);
    let spent: i64 =
        sqlx::query_scalar("select sum(spent) from runs").fetch_one(&mut world.database.connect().await).await.unwrap();
    assert_eq!(spent, 0);
    let stale = store::lease::Lease { tenant: ACME.to_owned(), run_id: lost[0].run_id, token: lost[0].token };
    assert!(store::lease::renew(store, &[stale], 60_000).await.unwrap().is_empty());
    assert_eq!(lease(store, "w", 9, 60_000).await.len(), 3);
}

/// One look for sixteen runs, behind a place, with so much room for each tenant.
async fn look_behind(world: &World, after: Place, rooms: Rooms) -> Look {
    let wanted = Wanted { worker: "w".to_owned(), limit: 16, ttl_ms: 600_000, batch: Uuid::new_v4(), after, rooms };
    store::lease::lease(world.node.store(), &wanted).await.unwrap()
}

/// Of a tenant that has filled its part of a node's places nothing more is taken, however much is free.
#[tokio::test(flavor = "multi_thread")]
async fn no_more_runs_of_a_tenant_are_taken_than_there_is_room_for() {
    let world = two_tenants().await;
    for tenant in [ACME, BETA] {
        fill(&world, tenant, 100).await;
    }
    for (of_acme, others, taken) in [(3, 16, (3, 13)), (0, 2, (0, 2)), (1, 1, (1, 1)), (100, 100, (8, 8))] {
        // Those that this took wait again, so that the next case begins as this one did.
        world
            .database
            .execute("update runs set state = 'queued', due_at = null, rank = deedbox_now() where state = 'running'")
            .await;
        let rooms = Rooms { of: BTreeMap::from([(ACME.to_owned(), of_acme)]), others };
        let look = look_behind(&world, Place::default(), rooms).await;
        let counts = by_tenant(&look.leased);
        let of = |tenant| counts.get(tenant).copied().unwrap_or(0);
        assert_eq!((of(ACME), of(BETA)), taken);
    }
}

fn worker_of(node: &Node) -> tokio_util::sync::CancellationToken {
    let shutdown = tokio_util::sync::CancellationToken::new();
    tokio::spawn(node.worker().clone().run(shutdown.clone()));
    shutdown
}
