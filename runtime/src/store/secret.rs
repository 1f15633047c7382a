//! Sealed credentials. What is inside is known only to `gateway`.

use chrono::{DateTime, Utc};

use super::{Db, Result, Store, bounded};

#[derive(Clone, Debug)]
pub struct Sealed {
    pub key_id: String,
    pub sealed: Vec<u8>,
}

#[derive(Clone, Debug)]
pub struct Name {
    pub name: String,
    pub updated_at: DateTime<Utc>,
}

/// Stores or replaces a sealed value.
pub async fn put(mut db: impl Db, tenant: &str, name: &str, value: &Sealed) -> Result<()> {
    let done = sqlx::query!(
        "insert into secrets (tenant, name, key_id, sealed) values ($1, $2, $3, $4)
         on conflict (tenant, name) do update
         set key_id = excluded.key_id, sealed = excluded.sealed, updated_at = deedbox_now()",
        tenant,
        name,
        value.key_id,
        value.sealed
    );
    bounded(done.execute(&mut *db.connection().await?)).await?;
    Ok(())
}

pub async fn find(store: &Store, tenant: &str, name: &str) -> Result<Option<Sealed>> {
    let row =
        sqlx::query_as!(Sealed, "select key_id, sealed from secrets where tenant = $1 and name = $2", tenant, name);
    bounded(row.fetch_optional(&store.pool)).await
}

/// By name, behind one.
pub async fn list(store: &Store, tenant: &str, after: Option<&str>, limit: i64) -> Result<Vec<Name>> {
    let rows = sqlx::query_as!(
        Name,
        "select name, updated_at from secrets
         where tenant = $1 and ($2::text is null or name > $2) order by name limit $3",
        tenant,
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// False when there is no such secret.
pub async fn delete(mut db: impl Db, tenant: &str, name: &str) -> Result<bool> {
    let done = sqlx::query!("delete from secrets where tenant = $1 and name = $2", tenant, name);
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}
