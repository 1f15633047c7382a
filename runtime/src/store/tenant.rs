//! Tenants.

use super::{Result, Store};

/// The owner of the tokens that may manage tenants. It is no tenant.
pub const ADMIN: &str = "_admin";

/// Creates a tenant; false when it is there already.
pub async fn create(store: &Store, tenant: &str) -> Result<bool> {
    let done = sqlx::query!("insert into tenants (tenant) values ($1) on conflict do nothing", tenant)
        .execute(&store.pool)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub async fn list(store: &Store) -> Result<Vec<String>> {
    let rows = sqlx::query_scalar!("select tenant from tenants where tenant <> '_admin' order by tenant");
    Ok(rows.fetch_all(&store.pool).await?)
}
