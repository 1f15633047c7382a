//! What statements run on: a connection of the pool, or a transaction that several of them share.

use std::ops::{Deref, DerefMut};

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, PgTransaction, Postgres};

use super::{Result, Store};

/// What a request changes things in, together with the record of its key. Dropped, it changes nothing.
#[derive(Debug)]
pub struct Tx(Inner);

#[derive(Debug)]
enum Inner {
    Transaction(PgTransaction<'static>),
    /// For work that is one statement, which is a transaction by itself.
    Statement(PoolConnection<Postgres>),
}

impl Store {
    pub async fn transaction(&self) -> Result<Tx> {
        Ok(Tx(Inner::Transaction(self.begin().await?)))
    }

    /// For work that is one statement and has nothing beside it.
    pub async fn statement(&self) -> Result<Tx> {
        Ok(Tx(Inner::Statement(self.pool.acquire().await?)))
    }
}

impl Tx {
    pub async fn commit(self) -> Result<()> {
        match self.0 {
            Inner::Transaction(tx) => Ok(tx.commit().await?),
            Inner::Statement(_) => Ok(()),
        }
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        match &mut self.0 {
            Inner::Transaction(tx) => tx,
            Inner::Statement(connection) => connection,
        }
    }
}

/// 64 bits for an advisory lock, which nobody can choose. Two things that share them only wait for each other.
pub(super) fn lock_of(context: &str, fields: &[&[u8]]) -> i64 {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    for field in fields {
        hasher.update(&(field.len() as u64).to_le_bytes()).update(field);
    }
    let mut first = [0; 8];
    hasher.finalize_xof().fill(&mut first);
    i64::from_le_bytes(first)
}

/// Where one statement can run: any connection, or a transaction.
pub trait Db: Send {
    fn connection(&mut self) -> impl Future<Output = Result<Connection<'_>>> + Send;
}

/// A connection for one statement.
#[derive(Debug)]
pub enum Connection<'a> {
    Pooled(PoolConnection<Postgres>),
    Shared(&'a mut PgConnection),
}

impl Deref for Connection<'_> {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        match self {
            Self::Pooled(connection) => connection,
            Self::Shared(connection) => connection,
        }
    }
}

impl DerefMut for Connection<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        match self {
            Self::Pooled(connection) => connection,
            Self::Shared(connection) => connection,
        }
    }
}

impl Db for &Store {
    async fn connection(&mut self) -> Result<Connection<'_>> {
        Ok(Connection::Pooled(self.pool.acquire().await?))
    }
}

impl Db for &mut Tx {
    async fn connection(&mut self) -> Result<Connection<'_>> {
        Ok(Connection::Shared(Tx::connection(self)))
    }
}
