//! Tenants, and what bounds them.

use super::{Db, Result, Store, bounded};

/// The owner of the tokens that may manage tenants. It is no tenant.
pub const ADMIN: &str = "_admin";

/// Creates a tenant; false when it is there already.
pub async fn create(mut db: impl Db, tenant: &str) -> Result<bool> {
    let done = sqlx::query!("insert into tenants (tenant) values ($1) on conflict do nothing", tenant);
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}

/// By name, behind one.
pub async fn list(store: &Store, after: Option<&str>, limit: i64) -> Result<Vec<String>> {
    let rows = sqlx::query_scalar!(
        "select tenant from tenants where tenant <> '_admin' and ($1::text is null or tenant > $1)
         order by tenant limit $2",
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// Whether the tenant, or the owner of the administrators' tokens, is there.
pub async fn exists(store: &Store, tenant: &str) -> Result<bool> {
    let there = sqlx::query_scalar!(r#"select exists (select from tenants where tenant = $1) as "there!""#, tenant);
    bounded(there.fetch_one(&store.pool)).await
}

/// What bounds a tenant. None: no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Runs at once. More stay queued.
    pub max_running: Option<i32>,
    /// Runs that are queued or wait. More are not started.
    pub max_queued: Option<i32>,
    pub max_modules: Option<i32>,
    /// Bytes of all modules together.
    pub max_module_bytes: Option<i64>,
    /// Linear memory of one attempt.
    pub max_memory_bytes: Option<i64>,
    /// One attempt, from when its module is ready to its end.
    pub max_attempt_ms: Option<i64>,
    pub max_sends_per_s: Option<f64>,
    /// These six are of one attempt.
    pub max_cpu_ms: Option<i64>,
    pub max_host_calls: Option<i64>,
    pub max_host_calls_per_s: Option<i64>,
    pub max_log_bytes: Option<i64>,
    pub max_output_bytes: Option<i64>,
    pub max_open_sends: Option<i64>,
    /// Where deployments may send at most: a JSON text.
    pub egress: Option<String>,
    /// Deployments need a signature.
    pub require_signature: bool,
    pub paused: bool,
}

pub async fn limits(mut db: impl Db, tenant: &str) -> Result<Option<Limits>> {
    let row = sqlx::query_as!(
        Limits,
        r#"select max_running, max_queued, max_modules, max_module_bytes, max_memory_bytes, max_attempt_ms,
                  max_sends_per_s, max_cpu_ms, max_host_calls, max_host_calls_per_s, max_log_bytes, max_output_bytes,
                  max_open_sends, egress, require_signature, paused_at is not null as "paused!"
           from tenants where tenant = $1 and tenant <> '_admin'"#,
        tenant
    );
    bounded(row.fetch_optional(&mut *db.connection().await?)).await
}

/// Sets all limits, but not whether the tenant is paused; false when there is no such tenant.
pub async fn set_limits(mut db: impl Db, tenant: &str, limits: &Limits) -> Result<bool> {
    let row = sqlx::query!(
        "update tenants
         set max_running = $2, max_queued = $3, max_modules = $4, max_module_bytes = $5, max_memory_bytes = $6,
             max_attempt_ms = $7, max_sends_per_s = $8, egress = $9, max_cpu_ms = $10, max_host_calls = $11,
             max_host_calls_per_s = $12, max_log_bytes = $13, max_output_bytes = $14, max_open_sends = $15,
             require_signature = $16
         where tenant = $1 and tenant <> '_admin'
         returning pg_notify('deedbox_due', '')::text as told",
        tenant,
        limits.max_running,
        limits.max_queued,
        limits.max_modules,
        limits.max_module_bytes,
        limits.max_memory_bytes,
        limits.max_attempt_ms,
        limits.max_sends_per_s,
        limits.egress,
        limits.max_cpu_ms,
        limits.max_host_calls,
        limits.max_host_calls_per_s,
        limits.max_log_bytes,
        limits.max_output_bytes,
        limits.max_open_sends,
        limits.require_signature
    );
    Ok(bounded(row.fetch_optional(&mut *db.connection().await?)).await?.is_some())
}
