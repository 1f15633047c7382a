//! Bearer tokens. The secret part is never here, only its hash.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Db, Result, Store, big, bounded, tenant};
use crate::token::Scope;

#[derive(Clone, Debug)]
pub struct Token {
    pub token_id: Uuid,
    pub label: String,
    pub scopes: Vec<String>,
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
}

/// Until when a token is good, by the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    Never,
    At(DateTime<Utc>),
    AfterMs(u64),
}

/// When a token was made, and until when it is good.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    pub created_at: DateTime<Utc>,
    pub expires_at: Option<DateTime<Utc>>,
}

/// What a token may do.
#[derive(Clone, Debug)]
pub struct Grant {
    pub secret_hash: Vec<u8>,
    pub label: String,
    pub scopes: Vec<String>,
    pub expired: bool,
}

/// A token to store.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub token_id: Uuid,
    pub secret_hash: [u8; 32],
    pub label: String,
    pub scopes: Vec<String>,
    pub expiry: Expiry,
}

impl NewToken {
    /// A token that may do all that its owner can allow, for ever.
    pub fn whole(owner: &str, token_id: Uuid, secret_hash: [u8; 32], label: &str) -> Self {
        let scopes = Scope::names(Scope::of(owner == tenant::ADMIN));
        Self { token_id, secret_hash, label: label.to_owned(), scopes, expiry: Expiry::Never }
    }
}

/// Stores a token; violates `tokens_tenant` when there is no such tenant.
pub async fn create(mut db: impl Db, tenant: &str, new: &NewToken) -> Result<Term> {
    let (at, after_ms) = match new.expiry {
        Expiry::Never => (None, None),
        Expiry::At(time) => (Some(time), None),
        Expiry::AfterMs(ms) => (None, Some(big(ms) as f64)),
    };
    let made = sqlx::query_as!(
        Term,
        "insert into tokens (tenant, token_id, secret_hash, label, scopes, expires_at)
         values ($1, $2, $3, $4, $5, coalesce($6, deedbox_now() + $7::float8 * interval '1 millisecond'))
         returning created_at, expires_at",
        tenant,
        new.token_id,
        &new.secret_hash[..],
        new.label,
        &new.scopes,
        at,
        after_ms
    );
    bounded(made.fetch_one(&mut *db.connection().await?)).await
}

/// Stores an administrator's token that never expires, unless there is one that is good: then only if `another` is wanted. False
/// when it was not stored.
pub async fn create_first(
    store: &Store,
    token_id: Uuid,
    secret_hash: &[u8; 32],
    label: &str,
    another: bool,
) -> Result<bool> {
    let tenant = tenant::ADMIN;
    retried!(async {
        let mut tx = store.begin().await?;
        // Of two at once the second must see what the first has stored.
        sqlx::query!("select tenant from tenants where tenant = $1 for update", tenant).fetch_one(&mut *tx).await?;
        let done = sqlx::query!(
            "insert into tokens (tenant, token_id, secret_hash, label, scopes)
             select $1, $2, $3, $4, array['admin']
             where $5 or not exists (
               select from tokens where tenant = $1 and (expires_at is null or expires_at > deedbox_now()))",
            tenant,
            token_id,
            &secret_hash[..],
            label,
            another
        );
        let stored = done.execute(&mut *tx).await?.rows_affected() == 1;
        tx.commit().await?;
        Ok(stored)
    })
}

/// What is known of a token; none when there is no such token.
pub async fn find(store: &Store, tenant: &str, token_id: Uuid) -> Result<Option<Grant>> {
    let row = sqlx::query_as!(
        Grant,
        r#"select secret_hash, label, scopes, coalesce(expires_at <= deedbox_now(), false) as "expired!"
           from tokens where tenant = $1 and token_id = $2"#,
        tenant,
        token_id
    );
    bounded(row.fetch_optional(&store.pool)).await
}

/// Oldest first, behind a place: a creation time and an id.
pub async fn list(store: &Store, tenant: &str, after: Option<(DateTime<Utc>, Uuid)>, limit: i64) -> Result<Vec<Token>> {
    let (after_time, after_id) = after.unzip();
    let rows = sqlx::query_as!(
        Token,
        "select token_id, label, scopes, created_at, expires_at from tokens
         where tenant = $1 and ($2::timestamptz is null or (created_at, token_id) > ($2, $3))
         order by created_at, token_id limit $4",
        tenant,
        after_time,
        after_id,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// Revokes a token at once; false when there is no such token.
pub async fn delete(mut db: impl Db, tenant: &str, token_id: Uuid) -> Result<bool> {
    let done = sqlx::query!("delete from tokens where tenant = $1 and token_id = $2", tenant, token_id);
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}
