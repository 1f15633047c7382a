//! Activities and their versions.

use chrono::{DateTime, Utc};

use uuid::Uuid;

use super::provenance::By;
use super::signature::SignedBy;
use super::{Db, Result, Store, Tx, bounded};

/// One version of an activity. `policy` is a JSON text.
#[derive(Clone, Debug)]
pub struct Version {
    pub activity: String,
    pub version: i32,
    pub digest: Vec<u8>,
    pub export: String,
    pub policy: String,
    pub created_at: DateTime<Utc>,
    /// Who deployed it.
    pub by_kind: String,
    pub by_token: Option<Uuid>,
    pub by_label: Option<String>,
    /// Whose signature the deployment counted on.
    pub signer: Option<String>,
    pub signer_key: Option<Vec<u8>>,
}

/// A version to deploy. `policy` is a JSON text.
#[derive(Clone, Copy, Debug)]
pub struct NewVersion<'a> {
    pub activity: &'a str,
    pub digest: &'a [u8],
    pub export: &'a str,
    pub policy: &'a str,
    /// Runs of the activity at once, whatever their version; none: no limit.
    pub max_running: Option<i32>,
    pub by: &'a By,
    pub signed: Option<&'a SignedBy>,
}

/// Where an activity stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// 0: it has no version.
    pub latest: i32,
    pub retired: bool,
}

/// Where an activity stands, known or not. Nobody else deploys it before the transaction ends, which must deploy it or
/// change nothing.
pub async fn hold(tx: &mut Tx, tenant: &str, activity: &str) -> Result<Head> {
    let made = sqlx::query!(
        "insert into activities (tenant, activity, latest) values ($1, $2, 0) on conflict do nothing",
        tenant,
        activity
    );
    bounded(made.execute(tx.connection())).await?;
    let head = sqlx::query_as!(
        Head,
        "select latest, retired from activities where tenant = $1 and activity = $2 for update",
        tenant,
        activity
    );
    bounded(head.fetch_one(tx.connection())).await
}

/// Deploys the next version and gives its number. Violates `activity_versions_module` when there is no such module.
pub async fn deploy(mut db: impl Db, tenant: &str, new: NewVersion<'_>) -> Result<i32> {
    let version = sqlx::query_scalar!(
        r#"with head as (
             insert into activities (tenant, activity, latest, max_running) values ($1, $2, 1, $6)
             on conflict (tenant, activity) do update
             set latest = activities.latest + 1, retired = false, max_running = $6
             returning latest)
           insert into activity_versions
             (tenant, activity, version, digest, export, policy, by_kind, by_token, by_label, signer, signer_key)
           select $1, $2, latest, $3, $4, $5, $7, $8, $9, $10, $11 from head
           returning version"#,
        tenant,
        new.activity,
        new.digest,
        new.export,
        new.policy,
        new.max_running,
        new.by.kind(),
        new.by.token_id(),
        new.by.label(),
        new.signed.map(|signed| signed.signer.as_str()),
        new.signed.map(|signed| &signed.public_key[..])
    );
    bounded(version.fetch_one(&mut *db.connection().await?)).await
}

/// The version that new runs get; none when the activity is unknown or retired.
pub async fn find_latest(mut db: impl Db, tenant: &str, activity: &str) -> Result<Option<Version>> {
    let row = sqlx::query_as!(
        Version,
        "select v.activity, v.version, v.digest, v.export, v.policy, v.created_at, v.by_kind, v.by_token, v.by_label,
                v.signer, v.signer_key
         from activities a
         join activity_versions v on v.tenant = a.tenant and v.activity = a.activity and v.version = a.latest
         where a.tenant = $1 and a.activity = $2 and not a.retired",
        tenant,
        activity
    );
    bounded(row.fetch_optional(&mut *db.connection().await?)).await
}

pub async fn find(mut db: impl Db, tenant: &str, activity: &str, version: i32) -> Result<Option<Version>> {
    let row = sqlx::query_as!(
        Version,
        "select activity, version, digest, export, policy, created_at, by_kind, by_token, by_label, signer, signer_key
         from activity_versions where tenant = $1 and activity = $2 and version = $3",
        tenant,
        activity,
        version
    );
    bounded(row.fetch_optional(&mut *db.connection().await?)).await
}

/// The policy that a run works under, a JSON text.
pub async fn policy_of_run(mut db: impl Db, tenant: &str, run_id: Uuid) -> Result<Option<String>> {
    let policy = sqlx::query_scalar!(
        "select v.policy from runs r
         join activity_versions v on v.tenant = r.tenant and v.activity = r.activity and v.version = r.version
         where r.tenant = $1 and r.run_id = $2",
        tenant,
        run_id
    );
    bounded(policy.fetch_optional(&mut *db.connection().await?)).await
}

/// The latest version of every activity that is not retired, by name, behind one.
pub async fn list(store: &Store, tenant: &str, after: Option<&str>, limit: i64) -> Result<Vec<Version>> {
    let rows = sqlx::query_as!(
        Version,
        "select v.activity, v.version, v.digest, v.export, v.policy, v.created_at, v.by_kind, v.by_token, v.by_label,
                v.signer, v.signer_key
         from activities a
         join activity_versions v on v.tenant = a.tenant and v.activity = a.activity and v.version = a.latest
         where a.tenant = $1 and not a.retired and ($2::text is null or a.activity > $2)
         order by a.activity limit $3",
        tenant,
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// The versions of one activity, newest first, before a number.
pub async fn list_versions(
    store: &Store,
    tenant: &str,
    activity: &str,
    before: Option<i32>,
    limit: i64,
) -> Result<Vec<Version>> {
    let rows = sqlx::query_as!(
        Version,
        "select activity, version, digest, export, policy, created_at, by_kind, by_token, by_label, signer, signer_key
         from activity_versions
         where tenant = $1 and activity = $2 and ($3::integer is null or version < $3)
         order by version desc limit $4",
        tenant,
        activity,
        before,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// Retires an activity: no new runs; the runs it has go on. False when there is none to retire.
pub async fn retire(mut db: impl Db, tenant: &str, activity: &str) -> Result<bool> {
    let done = sqlx::query!(
        "update activities set retired = true where tenant = $1 and activity = $2 and not retired",
        tenant,
        activity
    );
    Ok(bounded(done.execute(&mut *db.connection().await?)).await?.rows_affected() == 1)
}

/// Whether attempts of the activity's runs may begin.
pub async fn is_paused(store: &Store, tenant: &str, activity: &str) -> Result<bool> {
    let paused = sqlx::query_scalar!(
        r#"select exists (select from activities where tenant = $1 and activity = $2 and paused_at is not null) as "paused!""#,
        tenant,
        activity
    );
    bounded(paused.fetch_one(&store.pool)).await
}
