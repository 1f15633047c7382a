//! Provider profiles of tenants, as the texts that they put.

use chrono::{DateTime, Utc};

use super::{Db, Result, Store, bounded};

#[derive(Clone, Debug)]
pub struct Own {
    pub provider: String,
    /// A TOML text.
    pub profile: String,
    pub updated_at: DateTime<Utc>,
}

/// Puts a profile, replacing an older one. True when there was none.
pub async fn put(mut db: impl Db, tenant: &str, provider: &str, profile: &str) -> Result<bool> {
    let fresh = sqlx::query_scalar!(
        r#"insert into providers (tenant, provider, profile) values ($1, $2, $3)
           on conflict (tenant, provider) do update set profile = $3, updated_at = deedbox_now()
           returning (xmax = 0) as "fresh!""#,
        tenant,
        provider,
        profile
    );
    bounded(fresh.fetch_one(&mut *db.connection().await?)).await
}

/// False when there was none.
pub async fn delete(mut db: impl Db, tenant: &str, provider: &str) -> Result<bool> {
    let done = sqlx::query!("delete from providers where tenant = $1 and provider = $2", tenant, provider);
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}

/// All of a tenant's, by name.
pub async fn list(store: &Store, tenant: &str) -> Result<Vec<Own>> {
    let rows = sqlx::query_as!(
        Own,
        "select provider, profile, updated_at from providers where tenant = $1 order by provider",
        tenant
    );
    bounded(rows.fetch_all(&store.pool)).await
}
