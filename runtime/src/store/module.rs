//! Uploaded components.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::provenance::By;
use super::{Db, Error, Result, Store, bounded};

/// A module without its bytes. `imports` and `activities` are JSON texts.
#[derive(Clone, Debug)]
pub struct Module {
    pub digest: Vec<u8>,
    pub size_bytes: i32,
    pub imports: String,
    pub activities: String,
    pub created_at: DateTime<Utc>,
    /// Who brought it first.
    pub by_kind: String,
    pub by_token: Option<Uuid>,
    pub by_label: Option<String>,
}

/// What became of a component that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    Fresh,
    /// The same bytes are there already.
    Known,
    /// The tenant's limit of this name is reached.
    Refused {
        limit: String,
    },
}

/// Stores a component within the tenant's limits. Who brought the same bytes first stays.
pub async fn create(
    mut db: impl Db,
    tenant: &str,
    digest: &[u8; 32],
    bytes: &[u8],
    imports: &str,
    activities: &str,
    by: &By,
) -> Result<Kept> {
    let row = sqlx::query!(
        r#"with bound as materialized (select deedbox_module_limit($1, $2, octet_length($3::bytea)) as reached),
           kept as (
             insert into modules (tenant, digest, bytes, imports, activities, by_kind, by_token, by_label)
             select $1, $2, $3, $4, $5, $6, $7, $8 from bound where reached is null
             on conflict do nothing
             returning 1)
           select reached, exists (select from kept) as "fresh!" from bound"#,
        tenant,
        &digest[..],
        bytes,
        imports,
        activities,
        by.kind(),
        by.token_id(),
        by.label()
    );
    let row = bounded(row.fetch_one(&mut *db.connection().await?)).await?;
    Ok(match row.reached {
        Some(limit) => Kept::Refused { limit },
        None if row.fresh => Kept::Fresh,
        None => Kept::Known,
    })
}

/// Whether a component of this size could be kept now: `Refused` when it could not.
pub async fn check_limits(store: &Store, tenant: &str, digest: &[u8; 32], size_bytes: usize) -> Result<Kept> {
    let reached = sqlx::query_scalar!(
        "select deedbox_module_limit($1, $2, $3) as reached",
        tenant,
        &digest[..],
        i64::try_from(size_bytes).unwrap_or(i64::MAX)
    );
    let reached = bounded(reached.fetch_one(&store.pool)).await?;
    Ok(reached.map_or(Kept::Fresh, |limit| Kept::Refused { limit }))
}

pub async fn find(mut db: impl Db, tenant: &str, digest: &[u8]) -> Result<Option<Module>> {
    let row = sqlx::query_as!(
        Module,
        r#"select digest, octet_length(bytes) as "size_bytes!", imports, activities, created_at, by_kind, by_token,
                  by_label
           from modules where tenant = $1 and digest = $2"#,
        tenant,
        digest
    );
    bounded(row.fetch_optional(&mut *db.connection().await?)).await
}

/// Oldest first, behind a place: a creation time and a digest.
pub async fn list(
    store: &Store,
    tenant: &str,
    after: Option<(DateTime<Utc>, Vec<u8>)>,
    limit: i64,
) -> Result<Vec<Module>> {
    let (after_time, after_digest) = after.unzip();
    let rows = sqlx::query_as!(
        Module,
        r#"select digest, octet_length(bytes) as "size_bytes!", imports, activities, created_at, by_kind, by_token,
                  by_label
           from modules where tenant = $1 and ($2::timestamptz is null or (created_at, digest) > ($2, $3))
           order by created_at, digest limit $4"#,
        tenant,
        after_time,
        after_digest,
        limit
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
