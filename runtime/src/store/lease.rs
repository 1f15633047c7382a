//! Leases: how workers take runs, keep them and give them back. A lease has a token that grows with every lease of the
//! run; whoever holds an older one changes nothing.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::turns::For;
use super::{Error, Result, Store, big, bounded, storable};

/// The most runs that one statement leases, whatever is asked for.
pub const MAX_LEASED: i64 = 100;

/// Tenants that one look compares with each other, and lanes (ready runs of one activity) of each. A look that sees so many
/// goes on behind them next time, so that a worker comes round to all.
const MAX_TENANTS: usize = 16;
const MAX_LANES: i64 = 16;

/// A run that this worker now holds, with all it needs to begin an attempt.
#[derive(Clone, Debug)]
pub struct Leased {
    pub tenant: String,
    pub run_id: Uuid,
    pub activity: String,
    pub version: i32,
    pub input: String,
    pub retry: String,
    pub max_attempts: i32,
    pub attempt: i32,
    /// Attempts that count against `max_attempts`, this one included.
    pub spent: i32,
    pub token: i64,
    /// What is left of `schedule_to_close`; none: it has none.
    pub close_in_ms: Option<i64>,
}

/// One lease to renew or to give up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    pub tenant: String,
    pub run_id: Uuid,
    pub token: i64,
}

/// What to lease.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub worker: String,
    pub limit: i64,
    pub ttl_ms: u64,
    /// Names this statement, for [`give_back`].
    pub batch: Uuid,
    pub after: Place,
    pub rooms: Rooms,
}

/// How many runs a look may take of each tenant: of those that are named, and of any other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rooms {
    pub of: BTreeMap<String, usize>,
    pub others: usize,
}

impl Default for Rooms {
    /// As many as there are.
    fn default() -> Self {
        Self { of: BTreeMap::new(), others: MAX_LEASED as usize }
    }
}

impl Rooms {
    pub fn room(&self, tenant: &str) -> usize {
        self.of.get(tenant).copied().unwrap_or(self.others)
    }
}

/// Where a look begins: behind a tenant, and behind an activity of each tenant that has more than a look sees. Empty: with the
/// first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    pub tenant: String,
    pub activities: BTreeMap<String, String>,
}

impl Place {
    /// All lanes have been looked at since the last look that began with the first.
    pub fn is_first(&self) -> bool {
        self.tenant.is_empty() && self.activities.is_empty()
    }

    /// The place behind what a look has seen: its tenants in their order, each with its last lane and the number of lanes.
    fn behind(mut self, tenants: Vec<String>, last: Vec<String>, lanes: Vec<i64>) -> Self {
        let next = tenants.last().filter(|_| tenants.len() >= MAX_TENANTS).cloned().unwrap_or_default();
        // Tenants that the look passed over have nothing ready any more.
        let passed = |tenant: &String| *tenant > self.tenant && (next.is_empty() || *tenant <= next);
        self.activities.retain(|tenant, _| !passed(tenant));
        for ((tenant, activity), lanes) in tenants.into_iter().zip(last).zip(lanes) {
            if lanes >= MAX_LANES {
                self.activities.insert(tenant, activity);
            }
        }
        Self { tenant: next, ..self }
    }
}

/// What a look found.
#[derive(Debug)]
pub struct Look {
    pub leased: Vec<Leased>,
    /// Where the next look begins.
    pub next: Place,
    /// Runs are ready, but a limit on what runs at once keeps them back.
    pub held_back: bool,
    /// Another worker was just deciding for a tenant or an activity with a limit: look again soon.
    pub contended: bool,
}

struct Row {
    tenant: Option<String>,
    run_id: Option<Uuid>,
    activity: Option<String>,
    version: Option<i32>,
    input: Option<String>,
    retry: Option<String>,
    max_attempts: Option<i32>,
    attempts: Option<i32>,
    spent: Option<i32>,
    token: Option<i64>,
    close_in_ms: Option<i64>,
    tenants: Vec<String>,
    last: Vec<String>,
    lanes: Vec<i64>,
    held_back: bool,
    contended: bool,
}

impl Row {
    fn leased(self) -> Option<Leased> {
        Some(Leased {
            tenant: self.tenant?,
            run_id: self.run_id?,
            activity: self.activity?,
            version: self.version?,
            input: self.input?,
            retry: self.retry?,
            max_attempts: self.max_attempts?,
            attempt: self.attempts?,
            spent: self.spent?,
            token: self.token?,
            close_in_ms: self.close_in_ms,
        })
    }
}

/// Leases up to `limit` ready runs. Every place goes to the tenant that has the fewest runs under way, and within a tenant to
/// the run that ranks first. Tenants and activities that are paused or at their limit are left out, and of no tenant are more
/// runs taken than there is room for.
///
/// The literal limits tell the planner how few rows there are; an expression tells it nothing.
pub async fn lease(store: &Store, wanted: &Wanted) -> Result<Look> {
    let (tenants, activities): (Vec<String>, Vec<String>) = wanted.after.activities.clone().into_iter().unzip();
    let few = |room: usize| i32::try_from(room).unwrap_or(i32::MAX);
    let (roomy, rooms): (Vec<String>, Vec<i32>) =
        wanted.rooms.of.iter().map(|(tenant, room)| (tenant.clone(), few(*room))).unzip();
    let rows = sqlx::query_as!(
        Row,
        r#"with lane as materialized (select * from deedbox_lanes($4, $5, $7)),
           ready as (
             select l.tenant, l.activity, l.tenant_runs, l.tenant_room, c.rank, c.run_id,
                    row_number() over (partition by l.tenant order by c.rank, c.run_id) as place
             from (select lane.tenant, activity, tenant_runs, lane_room, least(tenant_room, coalesce(h.room, $8)) as tenant_room
                   from lane left join unnest($9::text[], $10::integer[]) h (tenant, room) on h.tenant = lane.tenant
                   where open limit 256) l cross join lateral (
               select rank, run_id from (
                 select rank, run_id from runs r
                 where r.tenant = l.tenant and r.activity = l.activity and r.rank is not null
                 order by rank, run_id limit 100) first
               order by rank, run_id limit greatest(0, least($1, l.tenant_room, l.lane_room))) c),
           share as (
             select tenant, activity, count(*) as runs from (
               select tenant, activity from ready
               where place <= tenant_room
               order by tenant_runs + place, rank, run_id limit $1) fair
             group by tenant, activity),
           picked as (
             select p.tenant, p.run_id from share s cross join lateral (
               select tenant, run_id from runs r
               where r.tenant = s.tenant and r.activity = s.activity and r.rank is not null
               order by rank, run_id limit s.runs for update skip locked) p
             limit 100),
           leased as (
             update runs r
             set state = 'running', attempts = r.attempts + 1, spent = r.spent + 1, token = r.token + 1, worker = $2,
                 lease_batch = $6, rank = null, due_at = deedbox_now() + $3 * interval '1 millisecond',
                 waiting_effect = null, waiting_signal = null, started_at = coalesce(r.started_at, deedbox_now()),
                 deadline_at = r.close_by
             from picked p where r.tenant = p.tenant and r.run_id = p.run_id
             returning r.tenant, r.run_id, r.activity, r.version, r.input, r.retry, r.max_attempts, r.attempts, r.spent,
                       r.token, (extract(epoch from r.close_by - deedbox_now()) * 1000)::bigint as close_in_ms),
           begun as (
             insert into attempts (tenant, run_id, attempt, token, worker)
             select tenant, run_id, attempts, token, $2 from leased)
           select l.tenant as "tenant?", l.run_id as "run_id?", l.activity as "activity?", l.version as "version?",
                  l.input as "input?", l.retry as "retry?", l.max_attempts as "max_attempts?", l.attempts as "attempts?",
                  l.spent as "spent?", l.token as "token?", l.close_in_ms,
                  array(select tenant from lane group by tenant order by tenant) as "tenants!",
                  array(select max(activity) from lane group by tenant order by tenant) as "last!",
                  array(select count(*) from lane group by tenant order by tenant) as "lanes!",
                  exists (select from lane where tenant_room >= 0 or lane_room >= 0) as "held_back!",
                  exists (select from lane where tenant_room < 0 or lane_room < 0) as "contended!"
           from (select 1) as one left join leased l on true"#,
        wanted.limit.min(MAX_LEASED) as i32,
        wanted.worker,
        big(wanted.ttl_ms) as f64,
        wanted.after.tenant,
        &tenants,
        wanted.batch,
        &activities,
        few(wanted.rooms.others),
        &roomy,
        &rooms
    );
    let mut rows = bounded(rows.fetch_all(&store.pool)).await?;
    let Some(first) = rows.first_mut() else { return Err(Error::Corrupt("a look without a row".to_owned())) };
    let (held_back, contended) = (first.held_back, first.contended);
    let seen = (std::mem::take(&mut first.tenants), std::mem::take(&mut first.last), std::mem::take(&mut first.lanes));
    let next = wanted.after.clone().behind(seen.0, seen.1, seen.2);
    Ok(Look { next, held_back, contended, leased: rows.into_iter().filter_map(Row::leased).collect() })
}

/// Gives back the runs of a lease statement whose answer never came: no attempt of them has begun. Those whose cancelling was
/// asked for meanwhile are left to the rescuer.
pub async fn give_back(store: &Store, batch: Uuid) -> Result<i64> {
    let given = sqlx::query_scalar!(
        r#"with back as (
             update runs r
             set state = case when cancel_requested_at is null then 'queued' else state end,
                 spent = spent - 1, worker = null, lease_batch = null,
                 rank = case when cancel_requested_at is null and paused_at is null
                             then deedbox_rank(deedbox_now(), priority) end,
                 due_at = case when cancel_requested_at is not null or paused_at is not null then deedbox_now() end
             where lease_batch = $1 and state = 'running'
             returning r.tenant, r.run_id, r.attempts),
           ended as (
             update attempts a set ended_at = deedbox_now(), outcome = 'interrupted'
             from back where a.tenant = back.tenant and a.run_id = back.run_id and a.attempt = back.attempts),
           told as (select pg_notify('deedbox_due', '') from (select 1 from back limit 1) one)
           select (select count(*) from back) as "count!" from (select 1) as one left join told on true"#,
        batch
    );
    bounded(given.fetch_one(&store.pool)).await
}

/// A lease that holds for another while, and what its run's owner wants of the attempt.
#[derive(Clone, Debug)]
pub struct Renewed {
    pub lease: Lease,
    pub wish: Option<Wish>,
}

/// What the owner of a run wants of the attempt under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    Cancel,
    Pause,
}

/// Renews all leases of a worker in one statement, and gives those that it still holds.
pub async fn renew(store: &Store, leases: &[Lease], ttl_ms: u64) -> Result<Vec<Renewed>> {
    let tenants: Vec<String> = leases.iter().map(|l| l.tenant.clone()).collect();
    let run_ids: Vec<Uuid> = leases.iter().map(|l| l.run_id).collect();
    let tokens: Vec<i64> = leases.iter().map(|l| l.token).collect();
    let rows = sqlx::query!(
        r#"update runs r set due_at = deedbox_now() + $4 * interval '1 millisecond'
           from unnest($1::text[], $2::uuid[], $3::bigint[]) as l (tenant, run_id, token)
           where r.tenant = l.tenant and r.run_id = l.run_id and r.token = l.token and r.state = 'running'
             and r.due_at > deedbox_now()
           returning r.tenant, r.run_id, r.token, r.cancel_requested_at is not null as "cancel!",
                     r.paused_at is not null as "pause!""#,
        &tenants,
        &run_ids,
        &tokens,
        big(ttl_ms) as f64
    );
    let renewed = bounded(rows.fetch_all(&store.pool)).await?.into_iter().map(|row| Renewed {
        lease: Lease { tenant: row.tenant, run_id: row.run_id, token: row.token },
        wish: if row.cancel { Some(Wish::Cancel) } else { row.pause.then_some(Wish::Pause) },
    });
    Ok(renewed.collect())
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct Finish {
    pub lease: Lease,
    /// A word for the attempt's record, for example `completed` or `timed-out`.
    pub outcome: String,
    /// A JSON text.
    pub failure: Option<String>,
    pub used: Used,
    pub next: Next,
}

/// What an attempt has used. None: it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// All linear memories together, at most.
    pub peak_memory_bytes: Option<i64>,
    pub cpu_ms: Option<i64>,
    /// Calls of the guest to the host.
    pub host_calls: Option<i64>,
}

/// What becomes of the run. Only `Complete`, `Fail` and `Retry` spend the attempt.
#[derive(Clone, Debug)]
pub enum Next {
    Complete {
        output: String,
    },
    Fail,
    Retry {
        after_ms: u64,
    },
    /// Waits until the effect's question is settled.
    AwaitEffect {
        effect_id: [u8; 32],
    },
    /// Waits for a signal of this name, or for the time. `seen`: the signals that the attempt knew of.
    AwaitSignal {
        name: String,
        seen: i64,
        until: Option<DateTime<Utc>>,
    },
    /// Waits for a time: a provider does not take more now.
    Defer {
        after_ms: u64,
    },
    /// Goes back to the queue.
    Requeue {
        after_ms: u64,
    },
    /// Its owner wants it to end.
    Cancel,
}

/// Ends an attempt under its lease; false when the lease is over, and then nothing is changed. A run that ends leaves
/// its unsettled effects escaped; one whose cancelling was asked for ends instead of going on. A run may be given back to
/// the queue, or cancelled, after the lease's end, while nobody else has it.
pub async fn finish(store: &Store, finish: Finish) -> Result<bool> {
    let change = Change::of(&finish.next);
    let _turn = store.turn(&finish.lease.tenant, For::Telling).await?;
    let done = sqlx::query_scalar!(
        r#"with waited as (
             select state from effects where tenant = $1 and effect_id = $11 for share),
           nothing_open as (
             select coalesce($10::float8 = 0, false)
                    or $11::bytea is not null and (select state from waited) is distinct from 'escaped' as yes),
           run as (
             update runs r
             set state = deedbox_next_state($4, cancel_requested_at, o.yes or signals_received > $14),
                 output = $5, failure = case when $4 = 'failed' then $7 end, spent = spent - $8,
                 worker = null, lease_batch = null, waiting_effect = $11, waiting_signal = $13,
                 rank = case when deedbox_next_state($4, cancel_requested_at, o.yes or signals_received > $14) = 'queued'
                               and (o.yes or signals_received > $14) and paused_at is null
                             then deedbox_rank(deedbox_now(), priority) end,
                 due_at = case when deedbox_next_state($4, cancel_requested_at, false) not in ('queued', 'waiting') then null
                               when o.yes or signals_received > $14
                                 then case when paused_at is not null then deedbox_now() end
                               when $10::float8 is not null then deedbox_now() + $10 * interval '1 millisecond'
                               else $15 end,
                 deadline_at = case when deedbox_next_state($4, cancel_requested_at, false) in ('queued', 'waiting')
                                    then deadline_at end,
                 ended_at = case when deedbox_next_state($4, cancel_requested_at, false) not in ('queued', 'waiting')
                                 then deedbox_now() end
             from nothing_open o
             where tenant = $1 and run_id = $2 and token = $3 and r.state = 'running' and (due_at > deedbox_now() or $12)
             returning tenant, run_id, attempts, ended_at, rank),
           attempt as (
             update attempts a
             set ended_at = deedbox_now(), outcome = $6, failure = $7, peak_memory_bytes = $9, cpu_ms = $16,
                 host_calls = $17
             from run where a.tenant = run.tenant and a.run_id = run.run_id and a.attempt = run.attempts),
           escaped as (
             update effects e set state = 'escaped', settled_at = deedbox_now()
             from run where run.ended_at is not null and e.tenant = run.tenant and e.holder_run = run.run_id
               and e.state = 'claimed'),
           told as (
             select case when run.ended_at is not null
                           then pg_notify('deedbox_ended', run.tenant || '/' || run.run_id::text)
                         when run.rank is not null then pg_notify('deedbox_due', '') end
             from run)
           select count(*) as "count!" from run, told"#,
        finish.lease.tenant,
        finish.lease.run_id,
        finish.lease.token,
        change.state,
        change.output,
        storable(&finish.outcome),
        finish.failure,
        change.spent_back,
        finish.used.peak_memory_bytes,
        change.due_in_ms,
        change.waiting_effect,
        finish.next.only_gives_back(),
        change.waiting_signal,
        change.seen,
        change.until,
        finish.used.cpu_ms,
        finish.used.host_calls
    );
    Ok(bounded(done.fetch_one(&store.pool)).await? == 1)
}

impl Next {
    /// Such a finish also counts after the lease's end, as long as nobody else has taken the run: it claims nothing.
    pub fn only_gives_back(&self) -> bool {
        matches!(self, Self::Requeue { .. } | Self::Cancel)
    }
}

#[derive(Default)]
struct Change<'a> {
    state: &'static str,
    output: Option<&'a str>,
    spent_back: i32,
    due_in_ms: Option<f64>,
    waiting_effect: Option<&'a [u8]>,
    waiting_signal: Option<&'a str>,
    seen: Option<i64>,
    until: Option<DateTime<Utc>>,
}

impl<'a> Change<'a> {
    fn of(next: &'a Next) -> Self {
        let ended = |state| Self { state, ..Self::default() };
        let unspent = |state| Self { state, spent_back: 1, ..Self::default() };
        match next {
            Next::Complete { output } => Self { output: Some(output), ..ended("completed") },
            Next::Fail => ended("failed"),
            Next::Cancel => unspent("cancelled"),
            Next::Retry { after_ms } => Self { due_in_ms: Some(big(*after_ms) as f64), ..ended("waiting") },
            Next::Defer { after_ms } => Self { due_in_ms: Some(big(*after_ms) as f64), ..unspent("waiting") },
            Next::Requeue { after_ms } => Self { due_in_ms: Some(big(*after_ms) as f64), ..unspent("queued") },
            Next::AwaitEffect { effect_id } => Self { waiting_effect: Some(effect_id), ..unspent("waiting") },
            Next::AwaitSignal { name, seen, until } => {
                Self { waiting_signal: Some(name), seen: Some(*seen), until: *until, ..unspent("waiting") }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Vec<String> {
        all.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn a_look_goes_on_behind_what_it_saw_and_forgets_who_has_nothing_left() {
        let first = Place::default().behind(texts(&["a", "b"]), texts(&["p16", "x"]), vec![16, 1]);
        assert_eq!(first.activities, BTreeMap::from([("a".to_owned(), "p16".to_owned())]));
        assert!(!first.is_first(), "the rest of a's lanes is still to be seen");
        assert!(first.clone().behind(texts(&["a", "b"]), texts(&["p20", "x"]), vec![4, 1]).is_first());
        assert!(first.behind(texts(&["b"]), texts(&["x"]), vec![1]).is_first(), "a has nothing left");
    }

    #[test]
    fn a_look_that_sees_as_many_tenants_as_it_can_goes_on_behind_the_last() {
        let tenants: Vec<String> = (0..16).map(|number| format!("t{number:02}")).collect();
        let next = Place::default().behind(tenants.clone(), tenants.clone(), vec![1; 16]);
        assert_eq!((next.tenant.as_str(), next.activities.len()), ("t15", 0));
        assert!(next.behind(texts(&["u"]), texts(&["x"]), vec![1]).is_first());
        assert!(Place::default().behind(Vec::new(), Vec::new(), Vec::new()).is_first());
    }
}
