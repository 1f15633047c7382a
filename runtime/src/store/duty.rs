//! What maintenance does to runs of all tenants: takes lost runs back, makes waiting ones ready when their time comes, and
//! ends those whose time is over. In batches, each a short transaction; any node may do it, and many at once.

use uuid::Uuid;

use super::{Result, Store, bounded};

/// What a batch of lost runs came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rescued {
    /// Ready for another worker.
    pub requeued: usize,
    /// Ended: in their last allowed attempt, out of time, or cancelled.
    pub ended: usize,
}

impl Rescued {
    pub fn total(self) -> usize {
        self.requeued + self.ended
    }
}

/// Takes back up to `limit` runs whose lease is over. Their last attempt is recorded as `worker-lost` and counts.
/// `lost` and `late` are the failures of runs that end by it, JSON texts.
pub async fn rescue(store: &Store, limit: i64, lost: &str, late: &str) -> Result<Rescued> {
    retried!(async {
        let mut tx = store.begin().await?;
        let rows = sqlx::query!(
            r#"with lost as (
                 select tenant, run_id, close_by <= deedbox_now() as late,
                        case when cancel_requested_at is not null then 'cancelled'
                             when close_by <= deedbox_now() or spent >= max_attempts then 'failed'
                             else 'queued' end as next
                 from runs where state = 'running' and due_at <= deedbox_now()
                 order by due_at limit $1 for update skip locked),
               run as (
                 update runs r
                 set state = l.next, worker = null, lease_batch = null,
                     rank = case when l.next = 'queued' and paused_at is null then deedbox_rank(deedbox_now(), priority) end,
                     due_at = case when l.next = 'queued' and paused_at is not null then deedbox_now() end,
                     failure = case when l.next = 'failed' then case when l.late then $3 else $2 end end,
                     deadline_at = case when l.next = 'queued' then deadline_at end,
                     ended_at = case when l.next <> 'queued' then deedbox_now() end
                 from lost l where r.tenant = l.tenant and r.run_id = l.run_id
                 returning r.tenant, r.run_id, r.attempts, r.ended_at is not null as ended),
               attempt as (
                 update attempts a set ended_at = deedbox_now(), outcome = 'worker-lost'
                 from run where a.tenant = run.tenant and a.run_id = run.run_id and a.attempt = run.attempts
                   and a.ended_at is null),
               told as (select pg_notify('deedbox_due', '') from (select 1 from run where not ended limit 1) one)
               select tenant as "tenant!", run_id as "run_id!", ended as "ended!", (select count(*) from told) as told
               from run"#,
            limit,
            lost,
            late
        )
        .fetch_all(&mut *tx)
        .await?;
        let ended: Vec<(String, Uuid)> =
            rows.iter().filter(|row| row.ended).map(|row| (row.tenant.clone(), row.run_id)).collect();
        end(&mut tx, &ended).await?;
        tx.commit().await?;
        Ok(Rescued { requeued: rows.len() - ended.len(), ended: ended.len() })
    })
}

/// What a batch of timers came to.
#[derive(Clone, Copy, Debug)]
pub struct Promoted {
    pub runs: i64,
    /// Until the next timer; none: there is none.
    pub next_ms: Option<i64>,
}

/// Makes up to `limit` runs ready whose start or retry time has come, or whose wait is over.
pub async fn promote(store: &Store, limit: i64) -> Result<Promoted> {
    let promoted = sqlx::query_as!(
        Promoted,
        r#"with due as (
             select tenant, run_id from runs
             where due_at <= deedbox_now() and state <> 'running' and paused_at is null
             order by due_at limit $1 for update skip locked),
           run as (
             update runs r
             set state = 'queued', rank = deedbox_rank(r.due_at, r.priority), due_at = null, waiting_effect = null,
                 waiting_signal = null
             from due d where r.tenant = d.tenant and r.run_id = d.run_id
             returning 1),
           told as (select pg_notify('deedbox_due', '') from (select 1 from run limit 1) one)
           select (select count(*) from run) as "runs!",
                  (select (extract(epoch from min(due_at) - deedbox_now()) * 1000)::bigint from runs
                   where due_at > deedbox_now() and state <> 'running' and paused_at is null) as next_ms
           from (select 1) as one left join told on true"#,
        limit
    );
    bounded(promoted.fetch_one(&store.pool)).await
}

/// Ends up to `limit` runs that are not running and whose `schedule_to_start` or `schedule_to_close` is over; gives their
/// number. `start_late` and `close_late` are their failures, JSON texts.
pub async fn expire(store: &Store, limit: i64, start_late: &str, close_late: &str) -> Result<usize> {
    retried!(async {
        let mut tx = store.begin().await?;
        let rows = sqlx::query!(
            r#"with late as (
                 select tenant, run_id from runs where deadline_at <= deedbox_now() and state <> 'running'
                 order by deadline_at limit $1 for update skip locked)
               update runs r
               set state = 'failed', ended_at = deedbox_now(), due_at = null, rank = null, deadline_at = null,
                   failure = case when r.close_by <= deedbox_now() then $3 else $2 end
               from late l where r.tenant = l.tenant and r.run_id = l.run_id
               returning r.tenant, r.run_id"#,
            limit,
            start_late,
            close_late
        )
        .fetch_all(&mut *tx)
        .await?;
        let ended: Vec<(String, Uuid)> = rows.into_iter().map(|row| (row.tenant, row.run_id)).collect();
        end(&mut tx, &ended).await?;
        tx.commit().await?;
        Ok(ended.len())
    })
}

/// Leaves the unsettled effects of ended runs escaped, and tells those who wait for the runs. A statement of its own: a
/// claim that committed while the runs were being locked is to be seen.
pub(super) async fn end(tx: &mut sqlx::PgConnection, ended: &[(String, Uuid)]) -> Result<()> {
    if ended.is_empty() {
        return Ok(());
    }
    let (tenants, run_ids): (Vec<String>, Vec<Uuid>) = ended.iter().cloned().unzip();
    sqlx::query!(
        "with ended as (select tenant, run_id from unnest($1::text[], $2::uuid[]) as e (tenant, run_id)),
           escaped as (
             update effects e set state = 'escaped', settled_at = deedbox_now()
             from ended where e.tenant = ended.tenant and e.holder_run = ended.run_id and e.state = 'claimed')
         select pg_notify('deedbox_ended', tenant || '/' || run_id::text) from ended",
        &tenants,
        &run_ids
    )
    .fetch_all(tx)
    .await?;
    Ok(())
}

/// Leaves up to `limit` effects escaped whose run has ended, and gives their number: a claim that the database carried out
/// after its attempt had given up on it.
pub async fn escape_left(store: &Store, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "with left_open as (
           select e.tenant, e.effect_id from effects e
           join runs r on r.tenant = e.tenant and r.run_id = e.holder_run
           where e.state = 'claimed' and r.ended_at is not null
           limit $1 for update of e skip locked)
         update effects e set state = 'escaped', settled_at = deedbox_now()
         from left_open l where e.tenant = l.tenant and e.effect_id = l.effect_id",
        limit
    );
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected())
}
