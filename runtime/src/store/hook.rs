//! Hooks: what tenants take from senders of webhooks, and what became of the last deliveries. What a delivery does is in `start`
//! and `signal`; here is only what is noted of it.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::secret::Sealed;
use super::{Db, Result, Store, Tx, bounded};

/// A hook as its owner sees it. `config` is a JSON text.
#[derive(Clone, Debug)]
pub struct Hook {
    pub hook: String,
    pub config: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// What came of putting a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Put {
    /// There was none of that name.
    pub fresh: bool,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Puts a hook, replacing an older one; none when it would be one more than `most`.
pub async fn put(
    tx: &mut Tx,
    tenant: &str,
    hook: &str,
    secrets: &[String],
    config: &str,
    most: i64,
) -> Result<Option<Put>> {
    // One at a time, so that the count below sees the others.
    let turn = sqlx::query_scalar!(
        "select pg_advisory_xact_lock(hashtextextended('deedbox hooks ' || $1::text, 0))::text as turn",
        tenant
    );
    bounded(turn.fetch_one(tx.connection())).await?;
    let put = sqlx::query_as!(
        Put,
        r#"insert into hooks (tenant, hook, secrets, config)
           select $1, $2, $3, $4
           where exists (select from hooks where tenant = $1 and hook = $2)
              or (select count(*) from hooks where tenant = $1) < $5
           on conflict (tenant, hook) do update
           set secrets = excluded.secrets, config = excluded.config, updated_at = deedbox_now()
           returning (xmax = 0) as "fresh!", created_at, updated_at"#,
        tenant,
        hook,
        secrets,
        config,
        most
    );
    bounded(put.fetch_optional(tx.connection())).await
}

/// Those of the names that are no secret of the tenant.
pub async fn missing_secrets(mut db: impl Db, tenant: &str, names: &[String]) -> Result<Vec<String>> {
    let missing = sqlx::query_scalar!(
        r#"select name as "name!" from unnest($2::text[]) as n (name)
           where not exists (select from secrets s where s.tenant = $1 and s.name = n.name)"#,
        tenant,
        names
    );
    bounded(missing.fetch_all(&mut *db.connection().await?)).await
}

/// All of a tenant's, by name.
pub async fn list(store: &Store, tenant: &str, after: Option<&str>, limit: i64) -> Result<Vec<Hook>> {
    let rows = sqlx::query_as!(
        Hook,
        "select hook, config, created_at, updated_at from hooks
         where tenant = $1 and ($2::text is null or hook > $2) order by hook limit $3",
        tenant,
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

pub async fn find(store: &Store, tenant: &str, hook: &str) -> Result<Option<Hook>> {
    let row = sqlx::query_as!(
        Hook,
        "select hook, config, created_at, updated_at from hooks where tenant = $1 and hook = $2",
        tenant,
        hook
    );
    bounded(row.fetch_optional(&store.pool)).await
}

/// False when there was none.
pub async fn delete(mut db: impl Db, tenant: &str, hook: &str) -> Result<bool> {
    let done = sqlx::query!("delete from hooks where tenant = $1 and hook = $2", tenant, hook);
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}

/// A hook with what its deliveries are checked with.
#[derive(Clone, Debug)]
pub struct Checked {
    pub config: String,
    /// Names and values of its secrets that are there.
    pub secrets: Vec<(String, Sealed)>,
    /// The database's time, in seconds since 1970.
    pub now: i64,
}

/// One statement, whether there is such a hook or not.
pub async fn find_checked(store: &Store, tenant: &str, hook: &str) -> Result<Option<Checked>> {
    let rows = sqlx::query!(
        r#"select h.config, extract(epoch from deedbox_now())::bigint as "now!",
                  s.name as "name?", s.key_id as "key_id?", s.sealed as "sealed?"
           from hooks h
           left join secrets s on s.tenant = h.tenant and s.name = any(h.secrets)
           where h.tenant = $1 and h.hook = $2"#,
        tenant,
        hook
    );
    let mut found: Option<Checked> = None;
    for row in bounded(rows.fetch_all(&store.pool)).await? {
        let checked = found.get_or_insert(Checked { config: row.config, secrets: Vec::new(), now: row.now });
        if let (Some(name), Some(key_id), Some(sealed)) = (row.name, row.key_id, row.sealed) {
            checked.secrets.push((name, Sealed { key_id, sealed }));
        }
    }
    Ok(found)
}

/// The run that a business id stands for: the one that has not ended, or else the newest.
pub async fn find_named(mut db: impl Db, tenant: &str, activity: &str, run_name: &str) -> Result<Option<Uuid>> {
    let run_id = sqlx::query_scalar!(
        r#"select run_id as "run_id!" from (
             (select run_id, false as ended from runs
              where tenant = $1 and run_name = $2 and activity = $3 and ended_at is null
              order by created_at desc limit 1)
             union all
             (select run_id, true from runs
              where tenant = $1 and run_name = $2 and activity = $3 and ended_at is not null
              order by created_at desc limit 1)) found
           order by ended limit 1"#,
        tenant,
        run_name,
        activity
    );
    bounded(run_id.fetch_optional(&mut *db.connection().await?)).await
}

/// What became of a delivery. Never its body, its headers or its signature.
#[derive(Clone, Debug)]
pub struct Noted {
    /// Empty: it had none.
    pub delivery_id: String,
    /// `accepted`, `declined` or `refused`.
    pub outcome: String,
    pub run_id: Option<Uuid>,
    /// The code or the words for why it was not accepted.
    pub reason: Option<String>,
}

/// Notes what became of a delivery, in the place of an earlier try of the same id, and forgets all but the 99 newest others.
/// Nothing is noted for a hook that is gone.
pub async fn note(mut db: impl Db, tenant: &str, hook: &str, noted: &Noted) -> Result<()> {
    let done = sqlx::query!(
        "with place as (select hook from hooks where tenant = $1 and hook = $2 for share),
           noted as (
             insert into hook_deliveries (tenant, hook, delivery_id, outcome, run_id, reason)
             select $1, hook, $3, $4, $5, $6 from place
             on conflict (tenant, hook, delivery_id) do update
             set outcome = excluded.outcome, run_id = excluded.run_id, reason = excluded.reason,
                 tries = hook_deliveries.tries + 1, last_at = deedbox_now()),
           old as (
             select delivery_id from hook_deliveries
             where tenant = $1 and hook = $2 and delivery_id <> $3
             order by last_at desc, delivery_id offset 99 for update skip locked)
         delete from hook_deliveries d using old
         where d.tenant = $1 and d.hook = $2 and d.delivery_id = old.delivery_id",
        tenant,
        hook,
        noted.delivery_id,
        noted.outcome,
        noted.run_id,
        noted.reason
    );
    bounded(done.execute(&mut *db.connection().await?)).await?;
    Ok(())
}

/// A delivery as it was noted.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub delivery_id: String,
    pub outcome: String,
    pub run_id: Option<Uuid>,
    pub reason: Option<String>,
    /// How often something came of it.
    pub tries: i32,
    pub last_at: DateTime<Utc>,
}

/// Newest first.
pub async fn list_deliveries(store: &Store, tenant: &str, hook: &str) -> Result<Vec<Delivery>> {
    let rows = sqlx::query_as!(
        Delivery,
        "select delivery_id, outcome, run_id, reason, tries, last_at from hook_deliveries
         where tenant = $1 and hook = $2 order by last_at desc, delivery_id",
        tenant,
        hook
    );
    bounded(rows.fetch_all(&store.pool)).await
}
