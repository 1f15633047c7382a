//! Uploaded components.

use chrono::{DateTime, Utc};

use super::{Db, Error, Result, Store, bounded};

/// A module without its bytes. `imports` and `activities` are JSON texts.
#[derive(Clone, Debug)]
pub struct Module {
    pub digest: Vec<u8>,
    pub size_bytes: i32,
    pub imports: String,
    pub activities: String,
    pub created_at: DateTime<Utc>,
}

/// Stores a component; false when the same bytes are there already.
pub async fn create(
    mut db: impl Db,
    tenant: &str,
    digest: &[u8; 32],
    bytes: &[u8],
    imports: &str,
    activities: &str,
) -> Result<bool> {
    let done = sqlx::query!(
        "insert into modules (tenant, digest, bytes, imports, activities) values ($1, $2, $3, $4, $5)
         on conflict do nothing",
        tenant,
        &digest[..],
        bytes,
        imports,
        activities
    );
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}

pub async fn find(mut db: impl Db, tenant: &str, digest: &[u8]) -> Result<Option<Module>> {
    let row = sqlx::query_as!(
        Module,
        r#"select digest, octet_length(bytes) as "size_bytes!", imports, activities, created_at
           from modules where tenant = $1 and digest = $2"#,
        tenant,
        digest
    );
    bounded(row.fetch_optional(&mut *db.connection().await?)).await
}

pub async fn list(store: &Store, tenant: &str) -> Result<Vec<Module>> {
    let rows = sqlx::query_as!(
        Module,
        r#"select digest, octet_length(bytes) as "size_bytes!", imports, activities, created_at
           from modules where tenant = $1 order by created_at, digest"#,
        tenant
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// The component's bytes.
pub async fn load(store: &Store, tenant: &str, digest: &[u8]) -> Result<Vec<u8>> {
    let bytes = sqlx::query_scalar!("select bytes from modules where tenant = $1 and digest = $2", tenant, digest);
    let missing = || Error::Corrupt("a deployed version names a module that is not there".to_owned());
    bytes.fetch_optional(&store.pool).await?.ok_or_else(missing)
}

/// Deletes a module; false when there is none. Violates `activity_versions_module` while a version uses it.
pub async fn delete(mut db: impl Db, tenant: &str, digest: &[u8]) -> Result<bool> {
    let done = sqlx::query!("delete from modules where tenant = $1 and digest = $2", tenant, digest);
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}
