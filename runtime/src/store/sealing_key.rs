//! Keys of tenants and of the fleet, each wrapped with a master key. What is inside is known only to `gateway`.

use super::{Result, Store, bounded};

/// What a tenant's secrets and answers are sealed with.
pub const DATA: &str = "data";

/// A wrapped key.
#[derive(Clone, Debug)]
pub struct Wrapped {
    pub tenant: String,
    pub purpose: String,
    pub number: i32,
    /// The master key that wraps it.
    pub master_id: String,
    pub wrapped: Vec<u8>,
}

/// How many keys a master key wraps.
#[derive(Clone, Debug)]
pub struct Wraps {
    pub master_id: String,
    pub keys: i64,
}

/// The tenant's key with the highest number of a purpose.
pub async fn newest(store: &Store, tenant: &str, purpose: &str) -> Result<Option<Wrapped>> {
    let row = sqlx::query_as!(
        Wrapped,
        "select tenant, purpose, number, master_id, wrapped from sealing_keys
         where tenant = $1 and purpose = $2 order by number desc limit 1",
        tenant,
        purpose
    );
    bounded(row.fetch_optional(&store.pool)).await
}

pub async fn find(store: &Store, tenant: &str, purpose: &str, number: i32) -> Result<Option<Wrapped>> {
    let row = sqlx::query_as!(
        Wrapped,
        "select tenant, purpose, number, master_id, wrapped from sealing_keys
         where tenant = $1 and purpose = $2 and number = $3",
        tenant,
        purpose,
        number
    );
    bounded(row.fetch_optional(&store.pool)).await
}

/// False when there is such a key already: another node was quicker.
pub async fn create(store: &Store, tenant: &str, key: &Wrapped) -> Result<bool> {
    let done = sqlx::query!(
        "insert into sealing_keys (tenant, purpose, number, master_id, wrapped) values ($1, $2, $3, $4, $5)
         on conflict do nothing",
        tenant,
        key.purpose,
        key.number,
        key.master_id,
        key.wrapped
    );
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected() == 1)
}

/// Puts `key` in the place of the same key under another master key; false when that is not how it is wrapped any more.
pub async fn rewrap(store: &Store, tenant: &str, key: &Wrapped, before: &Wrapped) -> Result<bool> {
    let done = sqlx::query!(
        "update sealing_keys set master_id = $4, wrapped = $5, wrapped_at = deedbox_now()
         where tenant = $1 and purpose = $2 and number = $3 and master_id = $6 and wrapped = $7",
        tenant,
        key.purpose,
        key.number,
        key.master_id,
        key.wrapped,
        before.master_id,
        before.wrapped
    );
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected() == 1)
}

/// Keys of all owners that other master keys wrap, behind one.
pub async fn wrapped_by_others(
    store: &Store,
    master_id: &str,
    after: Option<&Wrapped>,
    limit: i64,
) -> Result<Vec<Wrapped>> {
    let (tenant, purpose, number) =
        after.map_or(("", "", 0), |key| (key.tenant.as_str(), key.purpose.as_str(), key.number));
    let rows = sqlx::query_as!(
        Wrapped,
        "select tenant, purpose, number, master_id, wrapped from sealing_keys
         where master_id <> $4 and (tenant, purpose, number) > ($1, $2, $3)
         order by tenant, purpose, number limit $5",
        tenant,
        purpose,
        number,
        master_id,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// The master keys that wrap keys of any owner.
pub async fn masters(store: &Store) -> Result<Vec<Wraps>> {
    let rows = sqlx::query_as!(
        Wraps,
        r#"select master_id, count(*) as "keys!" from sealing_keys group by master_id order by master_id"#
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// Whether the database has been worked with: whatever was derived from a master key may be in use.
pub async fn in_use(store: &Store) -> Result<bool> {
    let used = sqlx::query_scalar!(
        r#"select (exists (select from runs) or exists (select from request_keys) or exists (select from modules)
                   or exists (select from secrets)) as "used!""#
    );
    bounded(used.fetch_one(&store.pool)).await
}
