//! Runs as their owners see them. How they begin is in `start`, what their owners do to them in `control`, what workers do
//! to them in `lease`.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Db, Result, Store, bounded};

/// A run's snapshot. `input`, `output`, `failure` and `labels` are JSON texts.
#[derive(Clone, Debug)]
pub struct Run {
    pub run_id: Uuid,
    pub activity: String,
    pub version: i32,
    pub state: String,
    pub input: String,
    pub output: Option<String>,
    pub failure: Option<String>,
    pub max_attempts: i32,
    pub attempts: i32,
    /// Attempts that count against `max_attempts`.
    pub spent: i32,
    /// When it may start or start again, or since when it may; while it runs, the end of its lease.
    pub due_at: Option<DateTime<Utc>>,
    pub waiting_effect: Option<Vec<u8>>,
    pub waiting_signal: Option<String>,
    pub priority: i16,
    pub run_name: Option<String>,
    pub labels: String,
    pub close_by: Option<DateTime<Utc>>,
    pub paused_at: Option<DateTime<Utc>>,
    pub cancel_requested_at: Option<DateTime<Utc>>,
    pub cancel_reason: Option<String>,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(Clone, Debug)]
pub struct Attempt {
    pub attempt: i32,
    pub worker: String,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub outcome: Option<String>,
    pub failure: Option<String>,
    pub peak_memory_bytes: Option<i64>,
    /// In begun milliseconds.
    pub cpu_ms: Option<i64>,
    pub host_calls: Option<i64>,
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub activity: Option<String>,
    pub state: Option<String>,
    pub run_name: Option<String>,
    /// A label and its value.
    pub label: Option<(String, String)>,
    /// Only those that are paused, or only those that are not.
    pub paused: Option<bool>,
    /// The last run of the page before: its creation time and id.
    pub after: Option<(DateTime<Utc>, Uuid)>,
    pub limit: i64,
}

pub async fn find(mut db: impl Db, tenant: &str, run_id: Uuid) -> Result<Option<Run>> {
    let row = sqlx::query_as!(
        Run,
        "select run_id, activity, version, state, input, output, failure, max_attempts, attempts, spent,
                coalesce(due_at, rank - (priority - 1) * interval '1 minute') as due_at, waiting_effect, waiting_signal,
                priority, run_name, labels, close_by, paused_at, cancel_requested_at, cancel_reason,
                created_at, started_at, ended_at
         from runs where tenant = $1 and run_id = $2",
        tenant,
        run_id
    );
    bounded(row.fetch_optional(&mut *db.connection().await?)).await
}

/// Newest first.
pub async fn list(store: &Store, tenant: &str, filter: &Filter) -> Result<Vec<Run>> {
    let (after_time, after_id) = filter.after.unzip();
    let (label, value) = filter.label.clone().unzip();
    let rows = sqlx::query_as!(
        Run,
        "select run_id, activity, version, state, input, output, failure, max_attempts, attempts, spent,
                coalesce(due_at, rank - (priority - 1) * interval '1 minute') as due_at, waiting_effect, waiting_signal,
                priority, run_name, labels, close_by, paused_at, cancel_requested_at, cancel_reason,
                created_at, started_at, ended_at
         from runs r
         where tenant = $1
           and ($2::text is null or activity = $2)
           and ($3::text is null or state = $3)
           and ($4::text is null or run_name = $4)
           and ($5::text is null or exists (
             select from run_labels l where l.tenant = $1 and l.label = $5 and l.value = $6
               and l.created_at = r.created_at and l.run_id = r.run_id))
           and ($7::boolean is null or (paused_at is not null) = $7)
           and ($8::timestamptz is null or (created_at, run_id) < ($8, $9))
         order by created_at desc, run_id desc limit $10",
        tenant,
        filter.activity,
        filter.state,
        filter.run_name,
        label,
        value,
        filter.paused,
        after_time,
        after_id,
        filter.limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// The attempts of a run in their order, behind a number.
pub async fn list_attempts(
    store: &Store,
    tenant: &str,
    run_id: Uuid,
    after: Option<i32>,
    limit: i64,
) -> Result<Vec<Attempt>> {
    let rows = sqlx::query_as!(
        Attempt,
        "select attempt, worker, started_at, ended_at, outcome, failure, peak_memory_bytes, cpu_ms,
                host_calls
         from attempts where tenant = $1 and run_id = $2 and ($3::integer is null or attempt > $3)
         order by attempt limit $4",
        tenant,
        run_id,
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}
