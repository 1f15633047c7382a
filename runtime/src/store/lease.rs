//! Leases: how workers take runs, keep them and give them back. A lease has a token that grows with every lease of the
//! run; whoever holds an older one changes nothing.

use uuid::Uuid;

use super::{Result, Store, big, bounded, storable};

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
}

/// One lease to renew or to give up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    pub tenant: String,
    pub run_id: Uuid,
    pub token: i64,
}

/// How an attempt ended.
#[derive(Clone, Debug)]
pub struct Finish {
    pub lease: Lease,
    /// A word for the attempt's record, for example `completed` or `timed-out`.
    pub outcome: String,
    /// A JSON text.
    pub failure: Option<String>,
    pub peak_memory_bytes: Option<i64>,
    pub next: Next,
}

/// What becomes of the run.
#[derive(Clone, Debug)]
pub enum Next {
    Complete {
        output: String,
    },
    Fail,
    Retry {
        after_ms: u64,
    },
    /// Waits until the effect's question is settled; no attempt is spent.
    Wait {
        effect_id: [u8; 32],
    },
    /// Goes back to the queue; no attempt is spent.
    Requeue {
        after_ms: u64,
    },
}

/// Leases up to `limit` due runs of any tenant, oldest first, for `ttl_ms`. A run whose former lease ran out is taken
/// over: its last attempt is recorded as `worker-lost` and counts.
pub async fn lease(store: &Store, worker: &str, limit: i64, ttl_ms: u64) -> Result<Vec<Leased>> {
    let rows = sqlx::query_as!(
        Leased,
        r#"with picked as (
             select tenant, run_id from runs
             where due_at <= deedbox_now() and (state <> 'running' or spent < max_attempts)
             order by due_at limit $1 for update skip locked),
           leased as (
             update runs r
             set state = 'running', attempts = r.attempts + 1, spent = r.spent + 1, token = r.token + 1, worker = $2,
                 due_at = deedbox_now() + $3 * interval '1 millisecond', waiting_effect = null,
                 started_at = coalesce(r.started_at, deedbox_now())
             from picked p where r.tenant = p.tenant and r.run_id = p.run_id
             returning r.tenant, r.run_id, r.activity, r.version, r.input, r.retry, r.max_attempts, r.attempts, r.spent,
                       r.token),
           lost as (
             update attempts a set ended_at = deedbox_now(), outcome = 'worker-lost'
             from leased l where a.tenant = l.tenant and a.run_id = l.run_id and a.attempt = l.attempts - 1
               and a.ended_at is null),
           begun as (
             insert into attempts (tenant, run_id, attempt, token, worker)
             select tenant, run_id, attempts, token, $2 from leased)
           select tenant as "tenant!", run_id as "run_id!", activity as "activity!", version as "version!",
                  input as "input!", retry as "retry!", max_attempts as "max_attempts!", attempts as "attempt!",
                  spent as "spent!", token as "token!"
           from leased"#,
        limit,
        worker,
        big(ttl_ms) as f64
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// Renews all leases of a worker in one statement, and gives those that it still holds.
pub async fn renew(store: &Store, leases: &[Lease], ttl_ms: u64) -> Result<Vec<Lease>> {
    let tenants: Vec<String> = leases.iter().map(|l| l.tenant.clone()).collect();
    let run_ids: Vec<Uuid> = leases.iter().map(|l| l.run_id).collect();
    let tokens: Vec<i64> = leases.iter().map(|l| l.token).collect();
    let rows = sqlx::query_as!(
        Lease,
        r#"update runs r set due_at = deedbox_now() + $4 * interval '1 millisecond'
           from unnest($1::text[], $2::uuid[], $3::bigint[]) as l (tenant, run_id, token)
           where r.tenant = l.tenant and r.run_id = l.run_id and r.token = l.token and r.state = 'running'
             and r.due_at > deedbox_now()
           returning r.tenant, r.run_id, r.token"#,
        &tenants,
        &run_ids,
        &tokens,
        big(ttl_ms) as f64
    );
    Ok(rows.fetch_all(&store.pool).await?)
}

/// Ends an attempt under its lease; false when the lease is over, and then nothing is changed. A run that ends leaves
/// its unsettled effects escaped. A run may be given back to the queue after the lease's end, while nobody else has it.
pub async fn finish(store: &Store, finish: Finish) -> Result<bool> {
    let change = Change::of(&finish.next);
    let done = sqlx::query_scalar!(
        r#"with waited as (
             select state from effects where tenant = $1 and effect_id = $11 for share),
           run as (
             update runs
             set state = $4, output = $5, failure = case when $4 = 'failed' then $7 end, spent = spent - $8, worker = null,
                 waiting_effect = $11,
                 due_at = case when $10::float8 is not null then deedbox_now() + $10 * interval '1 millisecond'
                               when $11::bytea is not null and (select state from waited) is distinct from 'escaped'
                                 then deedbox_now() end,
                 ended_at = case when $4 in ('completed', 'failed') then deedbox_now() end
             where tenant = $1 and run_id = $2 and token = $3 and state = 'running' and (due_at > deedbox_now() or $12)
             returning tenant, run_id, attempts, ended_at),
           attempt as (
             update attempts a set ended_at = deedbox_now(), outcome = $6, failure = $7, peak_memory_bytes = $9
             from run where a.tenant = run.tenant and a.run_id = run.run_id and a.attempt = run.attempts),
           escaped as (
             update effects e set state = 'escaped', settled_at = deedbox_now()
             from run where run.ended_at is not null and e.tenant = run.tenant and e.holder_run = run.run_id
               and e.state = 'claimed'),
           told as (
             select pg_notify(case when run.ended_at is null then 'deedbox_due' else 'deedbox_ended' end,
                              run.tenant || '/' || run.run_id::text)
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
        finish.peak_memory_bytes,
        change.due_in_ms,
        change.waiting_effect,
        finish.next.only_gives_back()
    );
    Ok(bounded(done.fetch_one(&store.pool)).await? == 1)
}

impl Next {
    /// Such a finish also counts after the lease's end, as long as nobody else has taken the run: it claims nothing.
    pub fn only_gives_back(&self) -> bool {
        matches!(self, Self::Requeue { .. })
    }
}

struct Change<'a> {
    state: &'static str,
    output: Option<&'a str>,
    spent_back: i32,
    due_in_ms: Option<f64>,
    waiting_effect: Option<&'a [u8]>,
}

impl<'a> Change<'a> {
    fn of(next: &'a Next) -> Self {
        let ended = Self { state: "failed", output: None, spent_back: 0, due_in_ms: None, waiting_effect: None };
        match next {
            Next::Complete { output } => Self { state: "completed", output: Some(output), ..ended },
            Next::Fail => ended,
            Next::Retry { after_ms } => Self { state: "waiting", due_in_ms: Some(big(*after_ms) as f64), ..ended },
            Next::Wait { effect_id } => {
                Self { state: "waiting", spent_back: 1, waiting_effect: Some(effect_id), ..ended }
            }
            Next::Requeue { after_ms } => {
                Self { state: "queued", spent_back: 1, due_in_ms: Some(big(*after_ms) as f64), ..ended }
            }
        }
    }
}

/// Ends runs whose worker was lost in their last allowed attempt, at most `limit`, and gives their number. Their
/// unsettled effects are escaped, by a statement of its own: a claim that committed while the runs were being locked is to
/// be seen.
pub async fn fail_lost(store: &Store, limit: i64, failure: &str) -> Result<usize> {
    let mut tx = store.pool.begin().await?;
    let ended = sqlx::query!(
        r#"with lost as (
             select tenant, run_id from runs
             where due_at <= deedbox_now() and state = 'running' and spent >= max_attempts
             order by due_at limit $1 for update skip locked),
           run as (
             update runs r set state = 'failed', failure = $2, ended_at = deedbox_now(), due_at = null, worker = null
             from lost l where r.tenant = l.tenant and r.run_id = l.run_id
             returning r.tenant, r.run_id, r.attempts),
           attempt as (
             update attempts a set ended_at = deedbox_now(), outcome = 'worker-lost'
             from run where a.tenant = run.tenant and a.run_id = run.run_id and a.attempt = run.attempts
               and a.ended_at is null)
           select tenant as "tenant!", run_id as "run_id!",
                  pg_notify('deedbox_ended', tenant || '/' || run_id::text)::text as told
           from run"#,
        limit,
        failure
    )
    .fetch_all(&mut *tx)
    .await?;
    if !ended.is_empty() {
        let tenants: Vec<String> = ended.iter().map(|run| run.tenant.clone()).collect();
        let run_ids: Vec<Uuid> = ended.iter().map(|run| run.run_id).collect();
        sqlx::query!(
            "update effects e set state = 'escaped', settled_at = deedbox_now()
             from unnest($1::text[], $2::uuid[]) as run (tenant, run_id)
             where e.tenant = run.tenant and e.holder_run = run.run_id and e.state = 'claimed'",
            &tenants,
            &run_ids
        )
        .execute(&mut *tx)
        .await?;
    }
    tx.commit().await?;
    Ok(ended.len())
}
