//! What guests printed.

use uuid::Uuid;

use super::{Result, Store, bounded, storable};

#[derive(Clone, Debug)]
pub struct Log {
    pub attempt: i32,
    pub stream: String,
    pub text: String,
    pub truncated: bool,
}

/// Keeps one stream of one attempt, under the attempt's own lease token.
pub async fn append(store: &Store, tenant: &str, run_id: Uuid, token: i64, log: &Log) -> Result<()> {
    let done = sqlx::query!(
        "insert into logs (tenant, run_id, attempt, stream, text, truncated)
         select $1, $2, $4, $5, $6, $7 from runs where tenant = $1 and run_id = $2 and token = $3 and attempts = $4
         on conflict do nothing",
        tenant,
        run_id,
        token,
        log.attempt,
        log.stream,
        storable(&log.text),
        log.truncated
    );
    bounded(done.execute(&store.pool)).await?;
    Ok(())
}

/// In the order of attempts, behind a place: an attempt and a stream.
pub async fn list(
    store: &Store,
    tenant: &str,
    run_id: Uuid,
    after: Option<(i32, String)>,
    limit: i64,
) -> Result<Vec<Log>> {
    let (after_attempt, after_stream) = after.unzip();
    let rows = sqlx::query_as!(
        Log,
        "select attempt, stream, text, truncated from logs
         where tenant = $1 and run_id = $2 and ($3::integer is null or (attempt, stream) > ($3, $4))
         order by attempt, stream limit $5",
        tenant,
        run_id,
        after_attempt,
        after_stream,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}
