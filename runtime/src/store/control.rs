//! What the owners of runs do to them: cancel, pause, resume, and begin a failed one again. And the same for a whole
//! activity or tenant.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Db, Result, Tx, big, bounded, duty, start};

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changed {
    Done,
    /// A worker has the run: it stops the attempt, and then it is done.
    Requested,
    /// The run is in a state that does not allow it.
    Refused {
        state: String,
    },
    Unknown,
}

/// Cancels a run that has not ended. Its unsettled effects stay open questions.
pub async fn cancel(tx: &mut Tx, tenant: &str, run_id: Uuid, reason: Option<&str>) -> Result<Changed> {
    let row = sqlx::query!(
        r#"update runs
           set cancel_requested_at = coalesce(cancel_requested_at, deedbox_now()),
               cancel_reason = coalesce(cancel_reason, $3),
               state = case state when 'running' then state else 'cancelled' end,
               due_at = case state when 'running' then due_at end,
               rank = null, deadline_at = case state when 'running' then deadline_at end,
               ended_at = case state when 'running' then null else deedbox_now() end
           where tenant = $1 and run_id = $2 and ended_at is null
           returning state = 'running' as "running!",
                     case state when 'running' then pg_notify('deedbox_wish', $1 || '/' || $2::text) end::text as told"#,
        tenant,
        run_id,
        reason
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(row) = row else { return refused(tx, tenant, run_id, "cancelled").await };
    if !row.running {
        duty::end(tx.connection(), &[(tenant.to_owned(), run_id)]).await?;
    }
    Ok(if row.running { Changed::Requested } else { Changed::Done })
}

/// Pauses a run that has not ended: no attempt begins, and one under way is stopped without being spent.
pub async fn pause(tx: &mut Tx, tenant: &str, run_id: Uuid) -> Result<Changed> {
    let row = sqlx::query!(
        r#"update runs
           set paused_at = coalesce(paused_at, deedbox_now()),
               due_at = case when rank is not null then deedbox_now() else due_at end, rank = null
           where tenant = $1 and run_id = $2 and ended_at is null
           returning state = 'running' as "running!",
                     case state when 'running' then pg_notify('deedbox_wish', $1 || '/' || $2::text) end::text as told"#,
        tenant,
        run_id
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(row) = row else { return refused(tx, tenant, run_id, "").await };
    Ok(if row.running { Changed::Requested } else { Changed::Done })
}

/// Lets a paused run go on. One that is not paused stays as it is.
pub async fn resume(tx: &mut Tx, tenant: &str, run_id: Uuid) -> Result<Changed> {
    let row = sqlx::query!(
        r#"update runs
           set paused_at = null,
               state = case when state <> 'running' and due_at <= deedbox_now() then 'queued' else state end,
               rank = case when rank is not null then rank
                           when state <> 'running' and due_at <= deedbox_now()
                           then deedbox_rank(deedbox_now(), priority) end,
               due_at = case when state <> 'running' and due_at <= deedbox_now() then null else due_at end
           where tenant = $1 and run_id = $2 and ended_at is null
           returning case when rank is not null then pg_notify('deedbox_due', '') end::text as told"#,
        tenant,
        run_id
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(_) = row else { return refused(tx, tenant, run_id, "").await };
    Ok(Changed::Done)
}

/// Begins a failed run again, with all its attempts before it: same id, same keys, so that its finished effects replay. Its
/// effects that ended open although sending them again is safe are claimed again, in the name of `by`; the rules decide anew
/// when an attempt meets them.
pub async fn retry(
    tx: &mut Tx,
    tenant: &str,
    run_id: Uuid,
    by: &str,
    schedule_to_close_ms: Option<u64>,
) -> Result<Changed> {
    take_name(tx, tenant, run_id).await?;
    let row = sqlx::query!(
        r#"update runs
           set state = 'queued', spent = 0, failure = null, ended_at = null, started_at = null, start_by = null,
               cancel_requested_at = null, cancel_reason = null, paused_at = null, due_at = null,
               rank = deedbox_rank(deedbox_now(), priority),
               close_by = deedbox_now() + $3 * interval '1 millisecond',
               deadline_at = deedbox_now() + $3 * interval '1 millisecond'
           where tenant = $1 and run_id = $2 and state = 'failed'
             and not exists (
               select from runs o
               where o.tenant = $1 and o.run_name = runs.run_name
                 and (o.activity = runs.activity or starts_with(o.run_name, 'openwop.scope:'))
                 and o.run_id <> $2 and o.ended_at is null)
           returning pg_notify('deedbox_due', '')::text as told"#,
        tenant,
        run_id,
        schedule_to_close_ms.map(|ms| big(ms) as f64)
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(_) = row else { return refused(tx, tenant, run_id, "").await };
    sqlx::query!(
        "with again as (
           update effects set state = 'claimed', settled_at = null
           where tenant = $1 and holder_run = $2 and state = 'escaped' and resend in ('idempotent', 'keyed')
           returning effect_id)
         insert into resolutions (tenant, resolution_id, effect_id, resolved_by, outcome, note)
         select $1, gen_random_uuid(), effect_id, $3, 'send-again', 'its run was begun again' from again",
        tenant,
        run_id,
        by
    )
    .execute(tx.connection())
    .await?;
    Ok(Changed::Done)
}

/// Locks the run's name, as starts do, so that what follows sees those that came before. A name that was swept is there again.
async fn take_name(tx: &mut Tx, tenant: &str, run_id: Uuid) -> Result<()> {
    let named = sqlx::query!(
        "insert into run_names (tenant, activity, run_name, run_id)
         select tenant, activity, run_name, run_id from runs where tenant = $1 and run_id = $2 and run_name is not null
         on conflict (tenant, activity, run_name) do update set run_id = run_names.run_id
         returning run_name",
        tenant,
        run_id
    );
    if let Some(row) = named.fetch_optional(tx.connection()).await?
        && row.run_name.starts_with("openwop.scope:")
    {
        start::alive(tx, tenant, &row.run_name).await?;
    }
    Ok(())
}

/// Why nothing was changed. A run that is already as it was wanted is done.
async fn refused(tx: &mut Tx, tenant: &str, run_id: Uuid, wanted: &str) -> Result<Changed> {
    let state = sqlx::query_scalar!("select state from runs where tenant = $1 and run_id = $2", tenant, run_id);
    Ok(match state.fetch_optional(tx.connection()).await? {
        None => Changed::Unknown,
        Some(state) if state == wanted => Changed::Done,
        Some(state) => Changed::Refused { state },
    })
}

/// Which runs to cancel at once.
#[derive(Clone, Debug, Default)]
pub struct Bulk {
    pub activity: Option<String>,
    pub state: Option<String>,
    pub label: Option<(String, String)>,
    /// Only runs that were there then: runs that are started meanwhile are not caught.
    pub created_before: Option<DateTime<Utc>>,
    pub reason: Option<String>,
    pub limit: i64,
}

/// What came of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cancelled {
    pub cancelled: usize,
    /// Workers have them.
    pub requested: usize,
}

/// Cancels up to `limit` runs, oldest first.
pub async fn cancel_many(tx: &mut Tx, tenant: &str, bulk: &Bulk) -> Result<Cancelled> {
    let (label, value) = bulk.label.clone().unzip();
    let rows = sqlx::query!(
        r#"with picked as (
             select run_id from runs r
             where tenant = $1 and ended_at is null and cancel_requested_at is null
               and ($2::text is null or activity = $2)
               and ($3::text is null or state = $3)
               and ($4::text is null or exists (
                 select from run_labels l where l.tenant = $1 and l.label = $4 and l.value = $5
                   and l.created_at = r.created_at and l.run_id = r.run_id))
               and ($6::timestamptz is null or created_at <= $6)
             order by created_at, run_id limit $8 for update)
           update runs r
           set cancel_requested_at = deedbox_now(), cancel_reason = $7,
               state = case state when 'running' then state else 'cancelled' end,
               due_at = case state when 'running' then due_at end,
               rank = null, deadline_at = case state when 'running' then deadline_at end,
               ended_at = case state when 'running' then null else deedbox_now() end
           from picked p where r.tenant = $1 and r.run_id = p.run_id and r.ended_at is null
           returning r.run_id, r.state = 'running' as "running!",
                     case r.state when 'running' then pg_notify('deedbox_wish', $1 || '/' || r.run_id::text) end::text
                       as told"#,
        tenant,
        bulk.activity,
        bulk.state,
        label,
        value,
        bulk.created_before,
        bulk.reason,
        bulk.limit
    )
    .fetch_all(tx.connection())
    .await?;
    let ended: Vec<(String, Uuid)> =
        rows.iter().filter(|row| !row.running).map(|row| (tenant.to_owned(), row.run_id)).collect();
    duty::end(tx.connection(), &ended).await?;
    Ok(Cancelled { cancelled: ended.len(), requested: rows.len() - ended.len() })
}

/// Lets the lease of a running run be over, as if its worker had not been heard of for as long as it lasts. For `deedbox
/// verify`, which does not wait; in a fleet only time ends a lease. False when the run is not running.
pub async fn end_lease(mut db: impl Db, tenant: &str, run_id: Uuid) -> Result<bool> {
    let ended = sqlx::query!(
        "update runs set due_at = deedbox_now() - interval '1 second'
         where tenant = $1 and run_id = $2 and state = 'running'",
        tenant,
        run_id
    );
    Ok(bounded(ended.execute(&mut *db.connection().await?)).await?.rows_affected() > 0)
}

/// Pauses an activity, or lets it go on. False when there is none.
pub async fn pause_activity(mut db: impl Db, tenant: &str, activity: &str, paused: bool) -> Result<bool> {
    let row = sqlx::query!(
        "update activities set paused_at = case when $3 then coalesce(paused_at, deedbox_now()) end
         where tenant = $1 and activity = $2
         returning case when not $3 then pg_notify('deedbox_due', '') end::text as told",
        tenant,
        activity,
        paused
    );
    Ok(bounded(row.fetch_optional(&mut *db.connection().await?)).await?.is_some())
}

/// Pauses a tenant, or lets it go on. False when there is none.
pub async fn pause_tenant(mut db: impl Db, tenant: &str, paused: bool) -> Result<bool> {
    let row = sqlx::query!(
        "update tenants set paused_at = case when $2 then coalesce(paused_at, deedbox_now()) end
         where tenant = $1 and tenant <> '_admin'
         returning case when not $2 then pg_notify('deedbox_due', '') end::text as told",
        tenant,
        paused
    );
    Ok(bounded(row.fetch_optional(&mut *db.connection().await?)).await?.is_some())
}
