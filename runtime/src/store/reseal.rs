//! What versions before the data keys have sealed with a master key itself: found, counted, and put back sealed anew. Nothing is
//! put in the place of a value that was changed meanwhile.

use super::secret::Sealed;
use super::{Result, Store, bounded};

/// How many values of any tenant a master key has sealed itself.
#[derive(Clone, Debug)]
pub struct Direct {
    pub master_id: String,
    pub values: i64,
}

/// A secret.
#[derive(Clone, Debug)]
pub struct OldSecret {
    pub name: String,
    pub key_id: String,
    pub sealed: Vec<u8>,
}

/// An effect's recorded answer, look-up, or both.
#[derive(Clone, Debug)]
pub struct OldEffect {
    pub effect_id: Vec<u8>,
    pub sealed_with: Option<String>,
    pub headers: Option<String>,
    pub body: Option<Vec<u8>>,
    pub lookup_sealed_with: Option<String>,
    pub lookup: Option<String>,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct OldAnswer {
    pub record: Vec<u8>,
    pub sealed_with: Option<String>,
    pub body: Option<Vec<u8>>,
}

/// The master keys that secrets of any tenant name.
pub async fn masters_of_secrets(store: &Store) -> Result<Vec<String>> {
    let ids = sqlx::query_scalar!("select distinct key_id from secrets where key_id not like 'k%'");
    bounded(ids.fetch_all(&store.pool)).await
}

/// The master keys that have sealed values of any tenant themselves.
pub async fn direct(store: &Store) -> Result<Vec<Direct>> {
    let rows = sqlx::query_as!(
        Direct,
        r#"select o.key_id as "master_id!", count(*) as "values!" from (
             select s.key_id from secrets s where s.key_id not like 'k%'
             union all
             select e.sealed_with from effects e
             where (e.sealed_with not like 'k%' or e.lookup_sealed_with not like 'k%') and e.sealed_with not like 'k%'
             union all
             select e.lookup_sealed_with from effects e
             where (e.sealed_with not like 'k%' or e.lookup_sealed_with not like 'k%')
               and e.lookup_sealed_with not like 'k%'
             union all
             select k.sealed_with from request_keys k where k.sealed_with not like 'k%') o
           group by o.key_id order by o.key_id"#
    );
    bounded(rows.fetch_all(&store.pool)).await
}

pub async fn secrets(store: &Store, tenant: &str, after: Option<&str>, limit: i64) -> Result<Vec<OldSecret>> {
    let rows = sqlx::query_as!(
        OldSecret,
        "select name, key_id, sealed from secrets
         where tenant = $1 and key_id not like 'k%' and ($2::text is null or name > $2) order by name limit $3",
        tenant,
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// The secret's age stays as it is: its value is the same.
pub async fn put_secret(store: &Store, tenant: &str, old: &OldSecret, new: &Sealed) -> Result<bool> {
    let done = sqlx::query!(
        "update secrets set key_id = $3, sealed = $4
         where tenant = $1 and name = $2 and key_id = $5 and sealed = $6",
        tenant,
        old.name,
        new.key_id,
        new.sealed,
        old.key_id,
        old.sealed
    );
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected() == 1)
}

pub async fn effects(store: &Store, tenant: &str, after: Option<&[u8]>, limit: i64) -> Result<Vec<OldEffect>> {
    let rows = sqlx::query_as!(
        OldEffect,
        "select effect_id, sealed_with, headers, body, lookup_sealed_with, lookup from effects
         where tenant = $1 and (sealed_with not like 'k%' or lookup_sealed_with not like 'k%')
           and ($2::bytea is null or effect_id > $2)
         order by effect_id limit $3",
        tenant,
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

pub async fn put_answer(
    store: &Store,
    tenant: &str,
    old: &OldEffect,
    key_id: &str,
    headers: Option<&str>,
    body: Option<&[u8]>,
) -> Result<bool> {
    let done = sqlx::query!(
        "update effects set sealed_with = $3, headers = $4, body = $5
         where tenant = $1 and effect_id = $2 and sealed_with = $6 and headers is not distinct from $7
           and body is not distinct from $8",
        tenant,
        old.effect_id,
        key_id,
        headers,
        body,
        old.sealed_with,
        old.headers,
        old.body
    );
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected() == 1)
}

pub async fn put_lookup(
    store: &Store,
    tenant: &str,
    old: &OldEffect,
    key_id: &str,
    lookup: Option<&str>,
) -> Result<bool> {
    let done = sqlx::query!(
        "update effects set lookup_sealed_with = $3, lookup = $4
         where tenant = $1 and effect_id = $2 and lookup_sealed_with = $5 and lookup is not distinct from $6",
        tenant,
        old.effect_id,
        key_id,
        lookup,
        old.lookup_sealed_with,
        old.lookup
    );
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected() == 1)
}

pub async fn answers(store: &Store, tenant: &str, after: Option<&[u8]>, limit: i64) -> Result<Vec<OldAnswer>> {
    let rows = sqlx::query_as!(
        OldAnswer,
        "select record, sealed_with, body from request_keys
         where tenant = $1 and sealed_with not like 'k%' and ($2::bytea is null or record > $2)
         order by record limit $3",
        tenant,
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

pub async fn put_answer_to_request(
    store: &Store,
    tenant: &str,
    old: &OldAnswer,
    key_id: &str,
    body: Option<&[u8]>,
) -> Result<bool> {
    let done = sqlx::query!(
        "update request_keys set sealed_with = $3, body = $4
         where tenant = $1 and record = $2 and sealed_with = $5 and body is not distinct from $6",
        tenant,
        old.record,
        key_id,
        body,
        old.sealed_with,
        old.body
    );
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected() == 1)
}
