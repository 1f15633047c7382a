//! Callbacks: what a run tells of its end, and to whom. A row becomes due by a trigger, in the transaction that ends the run;
//! whoever takes it has it until its lease ends, so that a message is lost with no node and sent by one at a time.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Result, Store, Tx, big, bounded, storable};

/// Tenants that one look sees; the next goes on behind them.
const MAX_TENANTS: usize = 64;

/// The most messages that one look takes, whatever is asked for.
const MAX_TAKEN: i64 = 100;

/// A callback to keep with a run. `secret` is the name of what its messages are signed with.
#[derive(Clone, Debug)]
pub struct NewCallback {
    pub url: String,
    pub secret: String,
}

/// A callback as its owner sees it.
#[derive(Clone, Debug)]
pub struct Callback {
    pub run_id: Uuid,
    pub url: String,
    pub secret: String,
    pub state: String,
    /// Names the run's last end; none while there was none.
    pub webhook_id: Option<String>,
    /// Begun since the message became due.
    pub tries: i32,
    /// None while a try is under way, and when there will be none.
    pub next_at: Option<DateTime<Utc>>,
    pub last_status: Option<i32>,
    pub last_error: Option<String>,
    pub delivered_at: Option<DateTime<Utc>>,
    /// When its run was created.
    pub created_at: DateTime<Utc>,
}

/// Which callbacks to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub state: Option<String>,
    /// The last of the page before: its creation time and run.
    pub after: Option<(DateTime<Utc>, Uuid)>,
    pub limit: i64,
}

/// Keeps the callback of a run that this transaction has just inserted with `has_callback`.
pub(super) async fn insert(
    tx: &mut Tx,
    tenant: &str,
    run_id: Uuid,
    callback: &NewCallback,
    created_at: DateTime<Utc>,
) -> Result<()> {
    sqlx::query!(
        "insert into callbacks (tenant, run_id, url, secret, created_at) values ($1, $2, $3, $4, $5)",
        tenant,
        run_id,
        callback.url,
        callback.secret,
        created_at
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}

pub async fn find(store: &Store, tenant: &str, run_id: Uuid) -> Result<Option<Callback>> {
    let row = sqlx::query_as!(
        Callback,
        "select run_id, url, secret, state, webhook_id, tries, case when lease is null then due_at end as next_at,
                last_status, last_error, delivered_at, created_at
         from callbacks where tenant = $1 and run_id = $2",
        tenant,
        run_id
    );
    bounded(row.fetch_optional(&store.pool)).await
}

/// Those of the newest runs first.
pub async fn list(store: &Store, tenant: &str, filter: &Filter) -> Result<Vec<Callback>> {
    let (after_time, after_id) = filter.after.unzip();
    let rows = sqlx::query_as!(
        Callback,
        "select run_id, url, secret, state, webhook_id, tries, case when lease is null then due_at end as next_at,
                last_status, last_error, delivered_at, created_at
         from callbacks
         where tenant = $1 and ($2::text is null or state = $2)
           and ($3::timestamptz is null or (created_at, run_id) < ($3, $4))
         order by created_at desc, run_id desc limit $5",
        tenant,
        filter.state,
        after_time,
        after_id,
        filter.limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// What came of asking for a message once more.
#[derive(Clone, Debug)]
pub enum Redelivered {
    Due(Callback),
    /// The run has not ended: there is nothing to tell yet.
    NotEnded {
        state: String,
    },
    /// Somebody is sending it just now.
    UnderWay,
    NoCallback,
    UnknownRun,
}

/// Makes the message of a run's last end due again, under its id, with all tries before it.
pub async fn redeliver(tx: &mut Tx, tenant: &str, run_id: Uuid) -> Result<Redelivered> {
    let row = sqlx::query_as!(
        Callback,
        "update callbacks
         set state = 'due', since = deedbox_now(), due_at = deedbox_now(), lease = null, tries = 0, last_status = null,
             last_error = null, delivered_at = null
         where tenant = $1 and run_id = $2 and state <> 'pending' and (lease is null or due_at <= deedbox_now())
         returning run_id, url, secret, state, webhook_id, tries, due_at as next_at, last_status, last_error,
                   delivered_at, created_at",
        tenant,
        run_id
    );
    if let Some(row) = row.fetch_optional(tx.connection()).await? {
        return Ok(Redelivered::Due(row));
    }
    let run = sqlx::query!(
        r#"select r.state, c.state as "callback?" from runs r
           left join callbacks c on c.tenant = r.tenant and c.run_id = r.run_id
           where r.tenant = $1 and r.run_id = $2"#,
        tenant,
        run_id
    );
    let Some(run) = run.fetch_optional(tx.connection()).await? else { return Ok(Redelivered::UnknownRun) };
    Ok(match run.callback.as_deref() {
        None => Redelivered::NoCallback,
        Some("pending") => Redelivered::NotEnded { state: run.state },
        Some(_) => Redelivered::UnderWay,
    })
}

/// Which messages to take.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub limit: i64,
    /// Tries under way at once for one tenant.
    pub per_tenant: i32,
    /// Tenants with tries under way, and their number.
    pub busy: Vec<(String, i32)>,
    /// Tenants whose last try got no answer.
    pub silent: Vec<String>,
    /// Only messages of silent tenants; else only those of others.
    pub of_silent: bool,
    /// Tenants behind this one.
    pub after: String,
    pub ttl_ms: u64,
    /// How long a message is tried, as in [`record`].
    pub max_hours: u32,
    /// A larger output or failure stays where it is.
    pub max_bytes: i32,
}

/// A message that is taken. `output`, `failure` and `labels` are JSON texts.
#[derive(Clone, Debug)]
pub struct Due {
    pub tenant: String,
    pub run_id: Uuid,
    pub lease: Uuid,
    pub url: String,
    pub secret: String,
    pub webhook_id: String,
    /// This one included.
    pub tries: i32,
    pub activity: String,
    pub version: i32,
    pub state: String,
    pub run_name: Option<String>,
    pub labels: String,
    pub ended_at: DateTime<Utc>,
    pub output: Option<String>,
    pub failure: Option<String>,
    /// There is an output or a failure, and it is too large.
    pub omitted: bool,
    /// Of the run's version: a JSON text.
    pub policy: String,
}

/// What a look found.
#[derive(Clone, Debug)]
pub struct Look {
    pub due: Vec<Due>,
    /// Where the next look begins; empty: all tenants have been seen.
    pub next: String,
}

struct Row {
    tenant: Option<String>,
    run_id: Option<Uuid>,
    url: Option<String>,
    secret: Option<String>,
    webhook_id: Option<String>,
    tries: Option<i32>,
    activity: Option<String>,
    version: Option<i32>,
    state: Option<String>,
    run_name: Option<String>,
    labels: Option<String>,
    ended_at: Option<DateTime<Utc>>,
    output: Option<String>,
    failure: Option<String>,
    omitted: Option<bool>,
    policy: Option<String>,
    seen: Vec<String>,
}

impl Row {
    fn due(self, lease: Uuid) -> Option<Due> {
        Some(Due {
            tenant: self.tenant?,
            run_id: self.run_id?,
            lease,
            url: self.url?,
            secret: self.secret?,
            webhook_id: self.webhook_id?,
            tries: self.tries?,
            activity: self.activity?,
            version: self.version?,
            state: self.state?,
            run_name: self.run_name,
            labels: self.labels?,
            ended_at: self.ended_at?,
            output: self.output,
            failure: self.failure,
            omitted: self.omitted?,
            policy: self.policy?,
        })
    }
}

/// Takes messages that are due, of each tenant those that wait longest; steps from tenant to tenant, so that a backlog of one
/// is not in the way of another. A row whose run is just being begun again is left to the next look at it: what it says and
/// what the run says would not belong together. What [`give_up`] ends is passed over.
///
/// The literal limits tell the planner how few rows there are; an expression tells it nothing.
pub async fn take_due(store: &Store, wanted: &Wanted) -> Result<Look> {
    let limit = wanted.limit.min(MAX_TAKEN);
    let lease = Uuid::new_v4();
    let (tenants, sends): (Vec<String>, Vec<i32>) = wanted.busy.iter().cloned().unzip();
    let rows = sqlx::query_as!(
        Row,
        r#"with recursive scheduled as (
             (select c.tenant from callbacks c where c.due_at is not null and c.tenant > $1
              order by c.tenant, c.due_at limit 1)
             union all
             select next.tenant from scheduled s cross join lateral (
               select c.tenant from callbacks c where c.due_at is not null and c.tenant > s.tenant
               order by c.tenant, c.due_at limit 1) next),
           seen as materialized (
             (select tenant from scheduled where not $10 limit 64) union all
             (select s.tenant from unnest($9::text[]) as s (tenant) where $10 and s.tenant > $1 order by 1 limit 64)),
           room as materialized (
             select s.tenant, greatest(0, $5 - coalesce(b.sends, 0)) as places
             from seen s left join unnest($3::text[], $4::int[]) as b (tenant, sends) on b.tenant = s.tenant
             where $10 or s.tenant <> all ($9)),
           picked as (
             select tenant, run_id from (
               select p.tenant, p.run_id from room r cross join lateral (
                 select c.tenant, c.run_id from callbacks c
                 where c.tenant = r.tenant and c.due_at <= deedbox_now()
                   and (c.lease is null or c.since > deedbox_now() - $11 * interval '1 hour')
                 order by c.due_at limit r.places for update skip locked) p
               limit $2) first
             limit 100),
           taken as (
             update callbacks c
             set lease = $7, due_at = deedbox_now() + $6 * interval '1 millisecond', tries = c.tries + 1
             from picked p where c.tenant = p.tenant and c.run_id = p.run_id
             returning c.tenant, c.run_id, c.url, c.secret, c.webhook_id, c.tries, c.ended_at),
           message as (
             select t.tenant, t.run_id, t.url, t.secret, t.webhook_id, t.tries, r.activity, r.version, r.state, r.run_name,
                    r.labels, r.ended_at, v.policy,
                    case when octet_length(r.output) <= $8 then r.output end as output,
                    case when octet_length(r.failure) <= $8 then r.failure end as failure,
                    coalesce(octet_length(coalesce(r.output, r.failure)) > $8, false) as omitted
             from taken t
             join runs r on r.tenant = t.tenant and r.run_id = t.run_id and r.ended_at = t.ended_at
             join activity_versions v on v.tenant = r.tenant and v.activity = r.activity and v.version = r.version)
           select m.tenant as "tenant?", m.run_id as "run_id?", m.url as "url?", m.secret as "secret?",
                  m.webhook_id as "webhook_id?", m.tries as "tries?", m.activity as "activity?", m.version as "version?",
                  m.state as "state?", m.run_name as "run_name?", m.labels as "labels?", m.ended_at as "ended_at?",
                  m.output as "output?", m.failure as "failure?", m.omitted as "omitted?", m.policy as "policy?",
                  array(select tenant from seen order by tenant) as "seen!"
           from (select 1) as one left join message m on true"#,
        wanted.after,
        limit,
        &tenants,
        &sends,
        wanted.per_tenant,
        big(wanted.ttl_ms) as f64,
        lease,
        wanted.max_bytes,
        &wanted.silent,
        wanted.of_silent,
        most_hours(wanted.max_hours)
    );
    let mut rows = bounded(rows.fetch_all(&store.pool)).await?;
    let seen = rows.first_mut().map(|row| std::mem::take(&mut row.seen)).unwrap_or_default();
    let due: Vec<Due> = rows.into_iter().filter_map(|row| row.due(lease)).collect();
    let next = next(&seen, &due, limit);
    Ok(Look { due, next })
}

fn next(seen: &[String], due: &[Due], limit: i64) -> String {
    let full = i64::try_from(due.len()).unwrap_or(i64::MAX) >= limit;
    match due.iter().map(|due| &due.tenant).max() {
        Some(last) if full => last.clone(),
        _ if seen.len() >= MAX_TENANTS => seen.last().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}

/// Gives up messages whose last try left no record and whose time is over, at most 100, and gives their runs. Whatever happens
/// to those who try it, a message is not taken for ever: one that still waits for its first try, or for one after a record, is
/// no concern of this.
pub async fn give_up(store: &Store, max_hours: u32) -> Result<Vec<Uuid>> {
    let runs = sqlx::query_scalar!(
        "with over as (
           select tenant, run_id from callbacks
           where lease is not null and since <= deedbox_now() - $1 * interval '1 hour' and due_at <= deedbox_now()
           order by since limit 100 for update skip locked)
         update callbacks c
         set state = 'failed', due_at = null, lease = null, last_status = null, last_error = 'no try could be recorded'
         from over o where c.tenant = o.tenant and c.run_id = o.run_id
         returning c.run_id",
        most_hours(max_hours)
    );
    bounded(runs.fetch_all(&store.pool)).await
}

/// A try that began in time has come to its end within an hour more.
fn most_hours(max_hours: u32) -> f64 {
    f64::from(max_hours) + 1.0
}

/// What came of a try.
#[derive(Clone, Debug, Default)]
pub struct Tried {
    pub delivered: bool,
    /// Of the answer; none where there was none.
    pub status: Option<i32>,
    /// Why it was not delivered.
    pub error: Option<String>,
    /// When to try again, if there is time left; none: never.
    pub again_after_ms: Option<u64>,
}

/// Records a try under its lease, and gives the state after it; none when somebody else has the message by now. It is tried
/// again for `max_hours` after it became due.
pub async fn record(
    store: &Store,
    tenant: &str,
    run_id: Uuid,
    lease: Uuid,
    tried: &Tried,
    max_hours: u32,
) -> Result<Option<String>> {
    let state = sqlx::query_scalar!(
        "update callbacks
         set state = case when $4 then 'delivered'
                          when deedbox_now() + $7 * interval '1 millisecond' <= since + $8 * interval '1 hour' then 'due'
                          else 'failed' end,
             due_at = case when not $4 and deedbox_now() + $7 * interval '1 millisecond' <= since + $8 * interval '1 hour'
                           then deedbox_now() + $7 * interval '1 millisecond' end,
             delivered_at = case when $4 then deedbox_now() end,
             lease = null, last_status = $5, last_error = $6
         where tenant = $1 and run_id = $2 and lease = $3
         returning state",
        tenant,
        run_id,
        lease,
        tried.delivered,
        tried.status,
        tried.error.as_deref().map(storable),
        tried.again_after_ms.map(|ms| big(ms) as f64),
        f64::from(max_hours)
    );
    bounded(state.fetch_optional(&store.pool)).await
}
