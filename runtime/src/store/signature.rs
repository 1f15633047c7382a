//! The keys whose signatures count for a tenant, and the signatures of its modules. What is stored here was verified before.
//! A deployment holds the key that it counts on until it has committed: a key that is gone must let nothing in any more.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Db, Result, Store, Tx, bounded};

/// Keys of one tenant.
pub const MOST_SIGNERS: i64 = 32;

#[derive(Clone, Debug)]
pub struct Signer {
    pub signer: String,
    pub public_key: Vec<u8>,
    pub created_at: DateTime<Utc>,
    pub by_token: Uuid,
    pub by_label: String,
}

/// A key to add, and the administrator's token that adds it.
#[derive(Clone, Debug)]
pub struct NewSigner {
    pub signer: String,
    pub public_key: [u8; 32],
    pub by_token: Uuid,
    pub by_label: String,
}

/// What came of adding a key.
#[derive(Clone, Debug)]
pub enum Added {
    Fresh(Signer),
    /// The same key is there under the same name.
    Known(Signer),
    /// Another key has the name.
    NameTaken,
    /// The key has another name.
    KeyTaken(String),
    /// There are [`MOST_SIGNERS`].
    Full,
}

/// A signature that was verified, and the token that brings it.
#[derive(Clone, Debug)]
pub struct NewSignature {
    pub public_key: [u8; 32],
    pub signature: [u8; 64],
    pub by_token: Uuid,
    pub by_label: String,
}

/// A signature of a module, without its bytes.
#[derive(Clone, Debug)]
pub struct Signature {
    pub digest: Vec<u8>,
    /// The key's name now, or the one it had.
    pub signer: String,
    pub public_key: Vec<u8>,
    pub attached_at: DateTime<Utc>,
    pub by_token: Uuid,
    pub by_label: String,
    /// Its key is among the tenant's signers.
    pub counts: bool,
}

/// The signer that a deployment counts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedBy {
    pub signer: String,
    pub public_key: Vec<u8>,
}

/// Adds a key; violates `signers_tenant` when there is no such tenant.
pub async fn add_signer(tx: &mut Tx, tenant: &str, new: &NewSigner) -> Result<Added> {
    let made = sqlx::query_as!(
        Signer,
        "insert into signers (tenant, signer, public_key, by_token, by_label)
         select $1, $2, $3, $4, $5
         where (select count(*) from signers s where s.tenant = $1) < $6
         on conflict do nothing
         returning signer, public_key, created_at, by_token, by_label",
        tenant,
        new.signer,
        &new.public_key[..],
        new.by_token,
        new.by_label,
        MOST_SIGNERS
    );
    if let Some(made) = bounded(made.fetch_optional(tx.connection())).await? {
        return Ok(Added::Fresh(made));
    }
    let all = all_signers(tx, tenant).await?;
    let named = all.iter().find(|known| known.signer == new.signer);
    Ok(match (named, all.iter().find(|known| known.public_key == new.public_key)) {
        (Some(named), _) if named.public_key == new.public_key => Added::Known(named.clone()),
        (Some(_), _) => Added::NameTaken,
        (None, Some(same)) => Added::KeyTaken(same.signer.clone()),
        (None, None) => Added::Full,
    })
}

/// All keys of a tenant, by name.
pub async fn all_signers(mut db: impl Db, tenant: &str) -> Result<Vec<Signer>> {
    let rows = sqlx::query_as!(
        Signer,
        "select signer, public_key, created_at, by_token, by_label from signers where tenant = $1 order by signer",
        tenant
    );
    bounded(rows.fetch_all(&mut *db.connection().await?)).await
}

/// By name, behind one.
pub async fn list_signers(store: &Store, tenant: &str, after: Option<&str>, limit: i64) -> Result<Vec<Signer>> {
    let rows = sqlx::query_as!(
        Signer,
        "select signer, public_key, created_at, by_token, by_label from signers
         where tenant = $1 and ($2::text is null or signer > $2) order by signer limit $3",
        tenant,
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// Takes a key away; false when there is no such key. Waits for deployments that count on it.
pub async fn remove_signer(mut db: impl Db, tenant: &str, signer: &str) -> Result<bool> {
    let done = sqlx::query!("delete from signers where tenant = $1 and signer = $2", tenant, signer);
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}

/// Keeps a signature; what was recorded of the same key's stays. False when the key is no signer's any more. Violates
/// `module_signatures_module` when there is no such module.
pub async fn attach(tx: &mut Tx, tenant: &str, digest: &[u8; 32], new: &NewSignature) -> Result<bool> {
    let kept = sqlx::query_scalar!(
        r#"insert into module_signatures (tenant, digest, public_key, signer, signature, by_token, by_label)
           select $1, $2, s.public_key, s.signer, $4, $5, $6 from signers s where s.tenant = $1 and s.public_key = $3
           on conflict (tenant, digest, public_key) do update set signer = excluded.signer
           returning true as "kept!""#,
        tenant,
        &digest[..],
        &new.public_key[..],
        &new.signature[..],
        new.by_token,
        new.by_label
    );
    Ok(bounded(kept.fetch_optional(tx.connection())).await?.is_some())
}

/// The signatures of some modules, oldest first.
pub async fn of_modules(mut db: impl Db, tenant: &str, digests: &[Vec<u8>]) -> Result<Vec<Signature>> {
    let rows = sqlx::query_as!(
        Signature,
        r#"select m.digest, coalesce(s.signer, m.signer) as "signer!", m.public_key, m.attached_at, m.by_token,
                  m.by_label, s.signer is not null as "counts!"
           from module_signatures m
           left join signers s on s.tenant = m.tenant and s.public_key = m.public_key
           where m.tenant = $1 and m.digest = any($2)
           order by m.attached_at, m.public_key"#,
        tenant,
        digests
    );
    bounded(rows.fetch_all(&mut *db.connection().await?)).await
}

/// Whether deployments of the tenant need a signature. It stays so until the transaction ends.
pub async fn is_required(tx: &mut Tx, tenant: &str) -> Result<bool> {
    let required = sqlx::query_scalar!("select require_signature from tenants where tenant = $1 for share", tenant);
    Ok(bounded(required.fetch_optional(tx.connection())).await?.unwrap_or(true))
}

/// The oldest of the keys whose signatures of the module count. They stay until the transaction ends.
pub async fn counted_on(tx: &mut Tx, tenant: &str, digest: &[u8]) -> Result<Option<SignedBy>> {
    let rows = sqlx::query_as!(
        SignedBy,
        "select s.signer, s.public_key from signers s
         join module_signatures m on m.tenant = s.tenant and m.public_key = s.public_key
         where s.tenant = $1 and m.digest = $2
         order by s.created_at, s.signer
         for share of s",
        tenant,
        digest
    );
    Ok(bounded(rows.fetch_all(tx.connection())).await?.into_iter().next())
}
