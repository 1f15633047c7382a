//! Tenants.

use super::{Db, Result, Store, bounded};

/// The owner of the tokens that may manage tenants. It is no tenant.
pub const ADMIN: &str = "_admin";

/// Creates a tenant; false when it is there already.
pub async fn create(mut db: impl Db, tenant: &str) -> Result<bool> {
    let done = sqlx::query!("insert into tenants (tenant) values ($1) on conflict do nothing", tenant);
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}

pub async fn list(store: &Store) -> Result<Vec<String>> {
    let rows = sqlx::query_scalar!("select tenant from tenants where tenant <> '_admin' order by tenant");
    bounded(rows.fetch_all(&store.pool)).await
}

/// What bounds a tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Runs at once; none: no limit. More stay queued.
    pub max_running: Option<i32>,
    pub paused: bool,
}

pub async fn limits(mut db: impl Db, tenant: &str) -> Result<Option<Limits>> {
    let row = sqlx::query_as!(
        Limits,
        r#"select max_running, paused_at is not null as "paused!" from tenants where tenant = $1 and tenant <> '_admin'"#,
        tenant
    );
    bounded(row.fetch_optional(&mut *db.connection().await?)).await
}

/// Sets the limits; false when there is no such tenant.
pub async fn set_limits(mut db: impl Db, tenant: &str, max_running: Option<i32>) -> Result<bool> {
    let row = sqlx::query!(
        "update tenants set max_running = $2 where tenant = $1 and tenant <> '_admin'
         returning pg_notify('deedbox_due', '')::text as told",
        tenant,
        max_running
    );
    Ok(bounded(row.fetch_optional(&mut *db.connection().await?)).await?.is_some())
}
