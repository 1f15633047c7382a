//! Bearer tokens. The secret part is never here, only its hash.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Result, Store, bounded};

#[derive(Clone, Debug)]
pub struct Token {
    pub token_id: Uuid,
    pub label: String,
    pub created_at: DateTime<Utc>,
}

/// Stores a token; violates `tokens_tenant` when there is no such tenant.
pub async fn create(store: &Store, tenant: &str, token_id: Uuid, secret_hash: &[u8; 32], label: &str) -> Result<()> {
    let done = sqlx::query!(
        "insert into tokens (tenant, token_id, secret_hash, label) values ($1, $2, $3, $4)",
        tenant,
        token_id,
        &secret_hash[..],
        label
    );
    bounded(done.execute(&store.pool)).await?;
    Ok(())
}

/// The hash of a token's secret, when there is such a token.
pub async fn find_hash(store: &Store, tenant: &str, token_id: Uuid) -> Result<Option<Vec<u8>>> {
    let hash =
        sqlx::query_scalar!("select secret_hash from tokens where tenant = $1 and token_id = $2", tenant, token_id);
    bounded(hash.fetch_optional(&store.pool)).await
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
pub async fn delete(store: &Store, tenant: &str, token_id: Uuid) -> Result<bool> {
    let done = sqlx::query!("delete from tokens where tenant = $1 and token_id = $2", tenant, token_id);
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected() == 1)
}
