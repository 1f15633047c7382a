//! What was answered to requests that carried a key. A record is written by the transaction that did the work, so that there
//! is never one without the other.

use uuid::Uuid;

use super::tx::lock_of;
use super::{Db, Result, Store, Tx, bounded};

/// Names a record of a tenant: a hash of the operation, its path parameters and the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordId(pub [u8; 32]);

/// What was answered.
#[derive(Clone, Debug)]
pub struct Record {
    /// Of what was asked.
    pub digest: Vec<u8>,
    pub status: i16,
    pub location: Option<String>,
    /// None: the answer had no body.
    pub body: Option<Vec<u8>>,
    /// Names the key that the body is sealed with; none: it is as it was sent.
    pub sealed_with: Option<String>,
    /// The run that a start gave.
    pub run_id: Option<Uuid>,
}

/// The answer to a key, while its time is not over: `hours` after it was given, and for as long as its run is alive.
pub async fn find(mut db: impl Db, tenant: &str, record: RecordId, hours: u32) -> Result<Option<Record>> {
    let row = sqlx::query_as!(
        Record,
        "select digest, status, location, body, sealed_with, run_id from request_keys k
         where tenant = $1 and record = $2
           and (answered_at > deedbox_now() - $3 * interval '1 hour'
                or exists (select from runs r where r.tenant = $1 and r.run_id = k.run_id and r.ended_at is null))",
        tenant,
        &record.0[..],
        f64::from(hours)
    );
    bounded(row.fetch_optional(&mut *db.connection().await?)).await
}

/// Who works on a key now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The caller, until the end of its transaction.
    Ours,
    /// Another who asks the same.
    Same,
    /// Another who asks something else.
    Other,
}

/// Takes the turn to work on a key, without waiting. The lock on (record, digest) is taken before the one on the record, so
/// that whoever gets the first and not the second knows that the other asks something else.
pub async fn take_turn(tx: &mut Tx, record: RecordId, digest: &[u8; 32]) -> Result<Turn> {
    let lock = |fields: &[&[u8]]| lock_of("deedbox 2026 request lock", fields);
    let (whole, asked) = (lock(&[&record.0]), lock(&[&record.0, digest]));
    let turn = sqlx::query_scalar!(
        r#"select case when not pg_try_advisory_xact_lock($2) then 'same'
                       when not pg_try_advisory_xact_lock($1) then 'other' end as turn"#,
        whole,
        asked
    );
    Ok(match bounded(turn.fetch_one(tx.connection())).await?.as_deref() {
        None => Turn::Ours,
        Some("same") => Turn::Same,
        Some(_) => Turn::Other,
    })
}

/// Writes the answer. One whose time is over is replaced.
pub async fn put(tx: &mut Tx, tenant: &str, record: RecordId, operation: &str, answer: &Record) -> Result<()> {
    let done = sqlx::query!(
        "insert into request_keys (tenant, record, operation, digest, run_id, status, location, body, sealed_with)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         on conflict (tenant, record) do update
         set operation = $3, digest = $4, run_id = $5, status = $6, location = $7, body = $8, sealed_with = $9,
             answered_at = deedbox_now()",
        tenant,
        &record.0[..],
        operation,
        answer.digest,
        answer.run_id,
        answer.status,
        answer.location,
        answer.body,
        answer.sealed_with
    );
    bounded(done.execute(tx.connection())).await?;
    Ok(())
}

/// Sweeps up to `limit` answers of any tenant whose time is over; gives their number.
pub async fn sweep(store: &Store, hours: u32, limit: i64) -> Result<u64> {
    let done = sqlx::query!(
        "with old as (
           select tenant, record from request_keys k
           where answered_at <= deedbox_now() - $1 * interval '1 hour'
             and not exists (select from runs r where r.tenant = k.tenant and r.run_id = k.run_id and r.ended_at is null)
           order by answered_at limit $2 for update skip locked)
         delete from request_keys k using old where k.tenant = old.tenant and k.record = old.record",
        f64::from(hours),
        limit
    );
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected())
}
