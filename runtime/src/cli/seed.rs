//! What has to be there before the first start of `up`: the data directory, the database and its schema, a tenant, and tokens that
//! stay the same over restarts. Only one process uses a data directory at a time; a revoked token must never come back to life.

use std::fs::{DirBuilder, File, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::settings::{ADMIN_TOKEN, POSTGRES, TOKEN};
use crate::store::token::NewToken;
use crate::store::{self, Store, tenant};
use crate::{postgres, token};

/// The tenant of a machine of one's own, and the database's name there.
pub(super) const TENANT: &str = "default";
const DATABASE: &str = "deedbox";
/// Enough for statements that follow one another.
const CONNECTIONS: u32 = 2;

/// A data directory that is ours until this is dropped.
#[derive(Debug)]
pub(super) struct DataDir {
    path: PathBuf,
    lock: File,
}

impl Drop for DataDir {
    fn drop(&mut self) {
        // A child that is being started may hold the same open file a moment longer. Failing to unlock changes nothing: the
        // process ends next.
        let _ = self.lock.unlock();
    }
}

impl DataDir {
    /// Creates what is missing and locks the directory.
    pub(super) fn open(path: PathBuf) -> anyhow::Result<Self> {
        // Root's PostgreSQL runs as another user, who must get through; the files inside are closed each for itself.
        let mode = if rustix::process::geteuid().is_root() { 0o755 } else { 0o700 };
        let created = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| create(&path, mode));
        created
            .with_context(|| format!("cannot create the data directory {}; pass another --data-dir", path.display()))?;
        let name = path.join("lock");
        let opened = File::options().append(true).create(true).mode(0o600).open(&name);
        let lock = opened
            .with_context(|| format!("cannot use the data directory {}; pass another --data-dir", path.display()))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path, lock }),
            Err(TryLockError::WouldBlock) => {
                anyhow::bail!(
                    "{} is in use by another deedbox: stop that one, or pass another --data-dir",
                    path.display()
                )
            }
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", name.display())),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn create(path: &Path, mode: u32) -> std::io::Result<()> {
    match DirBuilder::new().mode(mode).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        other => other,
    }
}

/// Starts the private PostgreSQL server of a data directory; gives it with the URL of our database in it.
pub(super) async fn start_postgres(dir: &Path) -> anyhow::Result<(postgres::Server, String)> {
    let settings = postgres::Settings { data_dir: dir.join(POSTGRES), bin_dir: None };
    let server = postgres::Server::start(settings).await?;
    match store::create_database(&server.url("postgres"), DATABASE).await {
        Ok(_) => {
            let url = server.url(DATABASE);
            Ok((server, url))
        }
        Err(error) => {
            server.stop().await;
            Err(error.into())
        }
    }
}

/// The texts of the tokens of a data directory.
#[derive(Clone)]
pub(super) struct Tokens {
    /// Of the tenant `default`.
    pub tenant: String,
    pub admin: String,
}

/// Brings the schema up to date, and makes the tenant and the tokens that are missing.
pub(super) async fn prepare(database_url: &str, dir: &Path) -> anyhow::Result<Tokens> {
    let store = Store::connect(database_url, CONNECTIONS)?;
    let tokens = fill(&store, dir).await;
    store.close().await;
    tokens
}

async fn fill(store: &Store, dir: &Path) -> anyhow::Result<Tokens> {
    store.migrate().await?;
    tenant::create(store, TENANT).await?;
    Ok(Tokens {
        tenant: keep_token(store, TENANT, &dir.join(TOKEN)).await?,
        admin: keep_token(store, tenant::ADMIN, &dir.join(ADMIN_TOKEN)).await?,
    })
}

/// The token in the file while the database knows it; else a new one.
async fn keep_token(store: &Store, tenant: &str, file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    if let Some(parsed) = token::parse(text.trim()).filter(|parsed| parsed.tenant == tenant) {
        let known = store::token::find(store, tenant, parsed.token_id).await?;
        if known.is_some_and(|grant| grant.secret_hash == token::hash(parsed.secret) && !grant.expired) {
            return Ok(text.trim().to_owned());
        }
    }
    let (token_id, text, hash) = token::mint(tenant);
    write_private(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    store::token::create(store, tenant, &NewToken::whole(tenant, token_id, hash, "deedbox up")).await?;
    Ok(text)
}

/// Replaces a file as a whole; only its owner can read it.
fn write_private(file: &Path, text: &str) -> std::io::Result<()> {
    let unfinished = file.with_extension("unfinished");
    match std::fs::remove_file(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut new = File::options().write(true).create_new(true).mode(0o600).open(&unfinished)?;
    writeln!(new, "{text}")?;
    new.sync_all()?;
    std::fs::rename(unfinished, file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_data_directory_has_one_user() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a/b");
        let first = DataDir::open(dir.clone()).unwrap();
        let error = DataDir::open(dir.clone()).unwrap_err().to_string();
        assert!(error.contains("in use") && error.contains("--data-dir"), "{error}");
        drop(first);
        assert_eq!(DataDir::open(dir.clone()).unwrap().path(), dir);
    }

    #[test]
    fn a_private_file_is_replaced_whole_and_only_for_its_owner() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("token");
        write_private(&file, "one").unwrap();
        write_private(&file, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(root.path().read_dir().unwrap().count(), 1);
    }
}
