//! How runs begin: the run, its business id, its labels and its first signal, all in one transaction.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::callback::{self, NewCallback};
use super::signal::{self, Delivered, Delivery};
use super::tx::lock_of;
use super::{Result, Tx, big, bounded};

/// A run to start. `input` and `retry` are JSON texts.
#[derive(Clone, Debug)]
pub struct NewRun {
    pub run_id: Uuid,
    pub activity: String,
    pub version: i32,
    pub input: String,
    pub retry: String,
    pub max_attempts: i32,
    /// 1 is first, 9 last.
    pub priority: i16,
    /// When the first attempt may begin; none: now.
    pub start: StartAt,
    /// Counted from when the first attempt may begin.
    pub schedule_to_start_ms: Option<u64>,
    pub schedule_to_close_ms: Option<u64>,
    pub name: Option<Named>,
    pub labels: BTreeMap<String, String>,
    pub signal: Option<Delivery>,
    /// Who is told of its end.
    pub callback: Option<NewCallback>,
}

impl NewRun {
    /// A run that begins now, under the usual retry policy, and has nothing else.
    pub fn plain(run_id: Uuid, activity: &str, version: i32, input: &str) -> Self {
        Self {
            run_id,
            activity: activity.to_owned(),
            version,
            input: input.to_owned(),
            retry: "{}".to_owned(),
            max_attempts: 3,
            priority: 5,
            start: StartAt::Now,
            schedule_to_start_ms: None,
            schedule_to_close_ms: None,
            name: None,
            labels: BTreeMap::new(),
            signal: None,
            callback: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartAt {
    Now,
    At(DateTime<Utc>),
    AfterMs(u64),
}

/// The business id of a run.
#[derive(Clone, Debug)]
pub struct Named {
    pub run_name: String,
    pub reuse: Reuse,
}

/// What to do when there is a run of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Start another.
    Allow,
    /// Start none.
    Reject,
    /// Start none while that run has not ended.
    RejectAlive,
    /// While that run has not ended, it is the answer.
    Attach,
}

/// What came of a start.
#[derive(Clone, Debug)]
pub enum Started {
    Fresh {
        created_at: DateTime<Utc>,
    },
    /// The run of that name, which has not ended. The signal, if there was one, was delivered to it.
    Attached {
        run_id: Uuid,
        signal: Option<Delivered>,
    },
    /// The run of that name stands in the way.
    Taken {
        run_id: Uuid,
        ended: bool,
    },
    /// The tenant has as many runs that wait as its limit `max_queued` lets it have. What the start has changed so far must not
    /// be committed.
    QueueFull,
}

impl NewRun {
    /// Starting it is one statement.
    pub fn is_single(&self) -> bool {
        self.name.is_none() && self.signal.is_none() && self.labels.is_empty() && self.callback.is_none()
    }
}

/// The run of this name that has not ended, whatever its activity. Those who ask for one name follow each other: each waits
/// for the end of the other's transaction.
pub async fn alive(tx: &mut Tx, tenant: &str, run_name: &str) -> Result<Option<Uuid>> {
    let turn = sqlx::query_scalar!(
        "select pg_advisory_xact_lock($1)::text as turn",
        lock_of("deedbox 2026 run name lock", &[tenant.as_bytes(), run_name.as_bytes()])
    );
    bounded(turn.fetch_one(tx.connection())).await?;
    let run_id = sqlx::query_scalar!(
        "select run_id from runs where tenant = $1 and run_name = $2 and ended_at is null
         order by created_at desc limit 1",
        tenant,
        run_name
    );
    bounded(run_id.fetch_optional(tx.connection())).await
}

/// Starts a run and wakes a worker.
pub async fn start(tx: &mut Tx, tenant: &str, run: &NewRun, max_unread: u64) -> Result<Started> {
    if let Some(named) = &run.name
        && let Some(other) = take_name(tx, tenant, run, named, max_unread).await?
    {
        return Ok(other);
    }
    let Some(created_at) = insert(tx, tenant, run).await? else { return Ok(Started::QueueFull) };
    label(tx, tenant, run, created_at).await?;
    if let Some(delivery) = &run.signal {
        signal::deliver(tx, tenant, run.run_id, delivery, max_unread).await?;
    }
    if let Some(callback) = &run.callback {
        callback::insert(tx, tenant, run.run_id, callback, created_at).await?;
    }
    Ok(Started::Fresh { created_at })
}

/// Makes the name stand for the run; or gives what stands in the way. The name's row is locked until the end of the
/// transaction, so that two starts of one name follow each other.
async fn take_name(tx: &mut Tx, tenant: &str, run: &NewRun, named: &Named, max_unread: u64) -> Result<Option<Started>> {
    let held = sqlx::query_scalar!(
        "insert into run_names (tenant, activity, run_name, run_id) values ($1, $2, $3, $4)
         on conflict (tenant, activity, run_name) do update set run_id = run_names.run_id
         returning run_id",
        tenant,
        run.activity,
        named.run_name,
        run.run_id
    )
    .fetch_one(tx.connection())
    .await?;
    // The runs themselves say what there is: one that has not ended goes before the newest, whatever the name stood for.
    let other = sqlx::query!(
        r#"select run_id, ended_at is not null as "ended!" from runs
           where tenant = $1 and run_id = (
             select run_id from (
               (select run_id, false as ended from runs
                where tenant = $1 and run_name = $2 and activity = $3 and ended_at is null
                order by created_at desc limit 1)
               union all
               (select run_id, true from runs
                where tenant = $1 and run_name = $2 and activity = $3 and ended_at is not null
                order by created_at desc limit 1)) found
             order by ended limit 1)
           for update"#,
        tenant,
        named.run_name,
        run.activity
    )
    .fetch_optional(tx.connection())
    .await?;
    if let Some(other) = other {
        let taken = Started::Taken { run_id: other.run_id, ended: other.ended };
        match named.reuse {
            Reuse::Reject => return Ok(Some(taken)),
            Reuse::RejectAlive if !other.ended => return Ok(Some(taken)),
            Reuse::Attach => {
                let signal = match &run.signal {
                    Some(delivery) => Some(signal::deliver(tx, tenant, other.run_id, delivery, max_unread).await?),
                    None => None,
                };
                // A signal that the ended run knows has come before, and so has this start.
                if !other.ended || signal == Some(Delivered::Duplicate) {
                    return Ok(Some(Started::Attached { run_id: other.run_id, signal }));
                }
            }
            _ => {}
        }
    }
    if held == run.run_id {
        return Ok(None);
    }
    sqlx::query!(
        "update run_names set run_id = $4 where tenant = $1 and activity = $2 and run_name = $3",
        tenant,
        run.activity,
        named.run_name,
        run.run_id
    )
    .execute(tx.connection())
    .await?;
    Ok(None)
}

/// None when the tenant's queue is full. An attached run needs no place in it, so that this is asked last.
async fn insert(tx: &mut Tx, tenant: &str, run: &NewRun) -> Result<Option<DateTime<Utc>>> {
    let (at, after_ms) = match run.start {
        StartAt::Now => (None, None),
        StartAt::At(time) => (Some(time), None),
        StartAt::AfterMs(ms) => (None, Some(big(ms) as f64)),
    };
    let ms = |ms: Option<u64>| ms.map(|ms| big(ms) as f64);
    let labels = serde_json::to_string(&run.labels).unwrap_or_else(|_| "{}".to_owned());
    let created_at = sqlx::query_scalar!(
        r#"with given as (
             select greatest(deedbox_now(), coalesce($9, deedbox_now() + $10 * interval '1 millisecond')) as at),
           planned as (
             select at, at > deedbox_now() as later, at + $11 * interval '1 millisecond' as start_by,
                    at + $12 * interval '1 millisecond' as close_by
             from given),
           run as (
             insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, priority, run_name,
               labels, rank, due_at, start_by, close_by, deadline_at, has_callback)
             select $1, $2, $3, $4, 'queued', $5, $6, $7, $8, $13, $14,
                    case when not later then deedbox_rank(at, $8) end, case when later then at end,
                    start_by, close_by, least(start_by, close_by), $15
             from planned where not deedbox_queue_is_full($1)
             returning created_at, rank),
           woken as (select pg_notify('deedbox_due', '') from run where rank is not null)
           select created_at from run left join woken on true"#,
        tenant,
        run.run_id,
        run.activity,
        run.version,
        run.input,
        run.retry,
        run.max_attempts,
        run.priority,
        at,
        after_ms,
        ms(run.schedule_to_start_ms),
        ms(run.schedule_to_close_ms),
        run.name.as_ref().map(|named| named.run_name.as_str()),
        labels,
        run.callback.is_some()
    );
    Ok(created_at.fetch_optional(tx.connection()).await?)
}

async fn label(tx: &mut Tx, tenant: &str, run: &NewRun, created_at: DateTime<Utc>) -> Result<()> {
    if run.labels.is_empty() {
        return Ok(());
    }
    let (labels, values): (Vec<String>, Vec<String>) = run.labels.clone().into_iter().unzip();
    sqlx::query!(
        "insert into run_labels (tenant, label, value, created_at, run_id)
         select $1, label, value, $2, $3 from unnest($4::text[], $5::text[]) as l (label, value)",
        tenant,
        created_at,
        run.run_id,
        &labels,
        &values
    )
    .execute(tx.connection())
    .await?;
    Ok(())
}
