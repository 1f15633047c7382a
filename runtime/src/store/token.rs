//! Bearer tokens. The secret part is never here, only its hash.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::tenant::ADMIN;
use super::{Db, Result, Store, bounded};

#[derive(Clone, Debug)]
pub struct Token {
    pub token_id: Uuid,
    pub label: String,
    pub created_at: DateTime<Utc>,
}

/// A token to store.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub token_id: Uuid,
    pub secret_hash: [u8; 32],
    pub label: String,
    pub scopes: Vec<String>,
    pub expires_at: Option<DateTime<Utc>>,
}

impl NewToken {
    /// A token that may do all that its owner can allow, for ever.
    pub fn whole(tenant: &str, token_id: Uuid, secret_hash: [u8; 32], label: &str) -> Self {
        let scopes: &[&str] = if tenant == ADMIN { &["admin"] } else { &["deploy", "run", "read"] };
        let scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
        Self { token_id, secret_hash, label: label.to_owned(), scopes, expires_at: None }
    }
}

/// Stores a token; violates `tokens_tenant` when there is no such tenant.
pub async fn create(mut db: impl Db, tenant: &str, new: &NewToken) -> Result<()> {
    let done = sqlx::query!(
        "insert into tokens (tenant, token_id, secret_hash, label, scopes, expires_at) values ($1, $2, $3, $4, $5, $6)",
        tenant,
        new.token_id,
        &new.secret_hash[..],
        new.label,
        &new.scopes,
        new.expires_at
    );
    bounded(done.execute(&mut *db.connection().await?)).await?;
    Ok(())
}

/// What a token may do.
#[derive(Clone, Debug)]
pub struct Grant {
    pub secret_hash: Vec<u8>,
    pub scopes: Vec<String>,
    pub expired: bool,
}

pub async fn find(store: &Store, tenant: &str, token_id: Uuid) -> Result<Option<Grant>> {
    let row = sqlx::query_as!(
        Grant,
        r#"select secret_hash, scopes, coalesce(expires_at <= deedbox_now(), false) as "expired!"
           from tokens where tenant = $1 and token_id = $2"#,
        tenant,
        token_id
    );
    bounded(row.fetch_optional(&store.pool)).await
}

pub async fn list(store: &Store, tenant: &str) -> Result<Vec<Token>> {
    let rows = sqlx::query_as!(
        Token,
        "select token_id, label, created_at from tokens where tenant = $1 order by created_at, token_id",
        tenant
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// Revokes a token at once; false when there is no such token.
pub async fn delete(mut db: impl Db, tenant: &str, token_id: Uuid) -> Result<bool> {
    let done = sqlx::query!("delete from tokens where tenant = $1 and token_id = $2", tenant, token_id);
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}
