//! Runs as their owners see them. What workers do to them is in `lease`.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Result, Store};

/// A run to start. `input` and `retry` are JSON texts.
#[derive(Clone, Debug)]
pub struct NewRun {
    pub run_id: Uuid,
    pub activity: String,
    pub version: i32,
    pub input: String,
    pub retry: String,
    pub max_attempts: i32,
}

/// A run's snapshot. `input`, `output` and `failure` are JSON texts.
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
    pub due_at: Option<DateTime<Utc>>,
    pub waiting_effect: Option<Vec<u8>>,
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
}

/// Which runs to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub activity: Option<String>,
    pub state: Option<String>,
    /// The last run of the page before: its creation time and id.
    pub after: Option<(DateTime<Utc>, Uuid)>,
    pub limit: i64,
}

/// Queues a run and wakes a worker.
pub async fn start(store: &Store, tenant: &str, run: &NewRun) -> Result<DateTime<Utc>> {
    let created_at = sqlx::query_scalar!(
        r#"with run as (
             insert into runs (tenant, run_id, activity, version, state, input, retry, max_attempts, due_at)
             values ($1, $2, $3, $4, 'queued', $5, $6, $7, deedbox_now())
             returning created_at),
           woken as (select pg_notify('deedbox_due', '') from run)
           select created_at from run, woken"#,
        tenant,
        run.run_id,
        run.activity,
        run.version,
        run.input,
        run.retry,
        run.max_attempts
    );
    Ok(created_at.fetch_one(&store.pool).await?)
}

pub async fn find(store: &Store, tenant: &str, run_id: Uuid) -> Result<Option<Run>> {
    let row = sqlx::query_as!(
        Run,
        "select run_id, activity, version, state, input, output, failure, max_attempts, attempts, due_at, waiting_effect,
                created_at, started_at, ended_at
         from runs where tenant = $1 and run_id = $2",
        tenant,
        run_id
    );
    Ok(row.fetch_optional(&store.pool).await?)
}

/// Newest first.
pub async fn list(store: &Store, tenant: &str, filter: &Filter) -> Result<Vec<Run>> {
    let (after_time, after_id) = filter.after.unzip();
    let rows = sqlx::query_as!(
        Run,
        "select run_id, activity, version, state, input, output, failure, max_attempts, attempts, due_at, waiting_effect,
                created_at, started_at, ended_at
         from runs
         where tenant = $1
           and ($2::text is null or activity = $2)
           and ($3::text is null or state = $3)
           and ($4::timestamptz is null or (created_at, run_id) < ($4, $5))
         order by created_at desc, run_id desc limit $6",
        tenant,
        filter.activity,
        filter.state,
        after_time,
        after_id,
        filter.limit
    );
    Ok(rows.fetch_all(&store.pool).await?)
}

pub async fn list_attempts(store: &Store, tenant: &str, run_id: Uuid) -> Result<Vec<Attempt>> {
    let rows = sqlx::query_as!(
        Attempt,
        "select attempt, worker, started_at, ended_at, outcome, failure, peak_memory_bytes
         from attempts where tenant = $1 and run_id = $2 order by attempt",
        tenant,
        run_id
    );
    Ok(rows.fetch_all(&store.pool).await?)
}
