//! All SQL. One file per table, one verb-named function per statement; nothing else in the crate names sqlx.
//!
//! Every function takes the tenant first, and every statement holds each table that it touches to that tenant, so that the
//! rows of a tenant may lie anywhere. The few that cross tenants: `lease::lease`, `lease::renew` and `lease::give_back` (a
//! worker's own runs), the duties `duty::rescue`, `duty::promote`, `duty::expire`, `duty::end` and
//! `duty::escape_left`, `resolution::take_due`, `callback::take_due`, `callback::give_up`, `event::renumber`,
//! `retention::sweep`, `request_key::sweep`, `tenant::list`, and what looks after keys: `sealing_key::masters`,
//! `sealing_key::wrapped_by_others`, `sealing_key::in_use`, `reseal::masters_of_secrets`, `reseal::direct`.
//! A test reads all statements and holds them to this list.
//!
//! No transaction is open while a guest runs or a provider is called: what a run or an effect needs is one statement. Each
//! such function takes one owned request and gives one answer, so that many requests can be gathered into one statement
//! behind it without its callers knowing.

/// Carries out a transaction, an async block, and again if the database ended it for the sake of another: nothing of it was
/// changed then. A macro, because a closure that gives a borrowing future cannot say that the future is `Send`.
macro_rules! retried {
    ($transaction:expr) => {{
        let mut tries = 1;
        loop {
            let transaction = tokio::time::timeout($crate::store::STATEMENT, $transaction);
            let result: $crate::store::Result<_> = transaction.await.unwrap_or(Err($crate::store::Error::TimedOut));
            match result {
                Err(error) if error.was_rolled_back() && tries < $crate::store::TRIES => tries += 1,
                result => break result,
            }
        }
    }};
}

pub mod activity;
pub mod callback;
pub mod checkpoint;
pub mod control;
pub mod duty;
pub mod effect;
pub mod event;
pub mod hook;
pub mod late;
pub mod lease;
pub mod ledger;
pub mod log;
pub mod module;
pub mod notify;
pub mod provenance;
pub mod provider;
pub mod rate;
pub mod request_key;
pub mod reseal;
pub mod resolution;
pub mod retention;
pub mod run;
pub mod sealing_key;
pub mod secret;
pub mod send;
pub mod signal;
pub mod signature;
pub mod start;
pub mod tenant;
pub mod token;
pub mod turns;
mod tx;

use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection;
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};

pub use tx::{Db, Tx};

static MIGRATIONS: sqlx::migrate::Migrator = sqlx::migrate!("../migrations");

/// A pool of connections to the one database of a fleet.
#[derive(Clone, Debug)]
pub struct Store {
    pool: PgPool,
    turns: Arc<turns::Turns>,
}

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the database address cannot be read: {0}")]
    Address(#[source] sqlx::Error),
    #[error("the database cannot be reached or failed: {0}")]
    Unavailable(#[source] sqlx::Error),
    #[error("the connection to the database was lost")]
    ConnectionLost,
    #[error(
        "what the database tells of does not arrive, as behind a pooler that shares connections between transactions"
    )]
    Deaf,
    #[error("the database takes no changes now: it is a standby, or read-only")]
    ReadOnly,
    #[error("the database did not answer within {} s", STATEMENT.as_secs())]
    TimedOut,
    #[error("the database could not carry out a statement: {0}")]
    Statement(#[source] sqlx::Error),
    #[error("the database refused a change: constraint {0}")]
    Constraint(String),
    #[error(
        "the database was made by a newer version of Deedbox (migration {0} is unknown here): install that version or a newer one"
    )]
    NewerSchema(i64),
    #[error("the database's schema is not that of this version: run `deedbox migrate` against it")]
    NotMigrated,
    #[error("the schema could not be migrated: {0}")]
    Migration(#[source] sqlx::migrate::MigrateError),
    #[error("a stored value cannot be read: {0}")]
    Corrupt(String),
}

pub type Result<T> = std::result::Result<T, Error>;

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let Some(database) = error.as_database_error() else { return Self::Unavailable(error) };
        match (database.constraint(), database.code().as_deref()) {
            (Some(constraint), _) => Self::Constraint(constraint.to_owned()),
            (None, Some(code)) if is_statement_fault(code) => Self::Statement(error),
            _ => Self::Unavailable(error),
        }
    }
}

/// Classes of SQLSTATE that tell of a wrong statement or value, not of a database in trouble: data exception, integrity
/// constraint violation, syntax error or access rule violation (PostgreSQL manual, appendix A).
fn is_statement_fault(code: &str) -> bool {
    ["22", "23", "42"].iter().any(|class| code.starts_with(class))
}

impl Error {
    /// True when the database is in trouble and the same statement may succeed later. Whether it was carried out is not known.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::ConnectionLost | Self::TimedOut | Self::ReadOnly)
    }

    /// True when the database chose this statement to end a deadlock or a conflict: nothing was changed (SQLSTATE class 40).
    pub fn was_rolled_back(&self) -> bool {
        let Self::Unavailable(error) = self else { return false };
        error.as_database_error().and_then(|e| e.code()).is_some_and(|code| code.starts_with("40"))
    }

    /// True when the named constraint refused the change.
    pub fn violates(&self, constraint: &str) -> bool {
        matches!(self, Self::Constraint(name) if name == constraint)
    }
}

impl Store {
    /// Connects lazily: the first statement opens the first connection.
    pub fn connect(url: &str, max_connections: u32) -> Result<Self> {
        let options: PgConnectOptions = url.parse().map_err(Error::Address)?;
        // Every statement is written for read committed, whatever the database's default is.
        let options = options.options([("default_transaction_isolation", "read committed")]);
        let pool = PgPoolOptions::new()
            .max_connections(max_connections)
            .acquire_timeout(Duration::from_secs(10))
            .test_before_acquire(false)
            // The pool asks a connection that comes back whether it lives, and would wait for ever for one that died without a
            // word. Until then its place is taken, and in the end all places are.
            .after_release(|connection, _| {
                Box::pin(async {
                    let dead = |_| sqlx::Error::Io(std::io::ErrorKind::TimedOut.into());
                    tokio::time::timeout(RELEASE, connection.ping()).await.map_err(dead)??;
                    Ok(true)
                })
            })
            // After a failover the address may lead to the old primary for a while: a connection to a standby would stay one.
            .after_connect(|connection, _| Box::pin(refuse_standby(connection)))
            .connect_lazy_with(options);
        Ok(Self { pool, turns: Arc::new(turns::Turns::new(max_connections)) })
    }

    /// Brings the schema up to this version. Safe to call from many nodes at once.
    pub async fn migrate(&self) -> Result<()> {
        match MIGRATIONS.run(&self.pool).await {
            Ok(()) => event::renumber(self).await,
            Err(sqlx::migrate::MigrateError::VersionMissing(version)) => Err(Error::NewerSchema(version)),
            Err(sqlx::migrate::MigrateError::Execute(error)) => Err(Error::Unavailable(error)),
            Err(error) => Err(Error::Migration(error)),
        }
    }

    /// For the start of a node: succeeds when the database answers and its schema is this version's, and then sees to the
    /// events of a dump, which may have been restored without a migration.
    pub async fn check_schema(&self) -> Result<()> {
        self.ping().await?;
        // Not checked when it is compiled: the table is sqlx's own.
        let there: bool =
            sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null").fetch_one(&self.pool).await?;
        if !there {
            return Err(Error::NotMigrated);
        }
        let applied: Vec<i64> =
            sqlx::query_scalar("select version from _sqlx_migrations where success").fetch_all(&self.pool).await?;
        if MIGRATIONS.iter().any(|migration| !applied.contains(&migration.version)) {
            return Err(Error::NotMigrated);
        }
        match applied.into_iter().find(|version| !MIGRATIONS.version_exists(*version)) {
            Some(newer) => Err(Error::NewerSchema(newer)),
            None => event::renumber(self).await,
        }
    }

    /// Succeeds when the database answers and takes changes.
    pub async fn ping(&self) -> Result<()> {
        let read_only =
            sqlx::query_scalar!(r#"select current_setting('transaction_read_only') = 'on' as "read_only!""#);
        if bounded(read_only.fetch_one(&self.pool)).await? { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Begins a transaction. A caller that is dropped meanwhile does not break this off: the connection would go back to the
    /// pool with the transaction open, and whatever used it next would never be committed.
    async fn begin(&self) -> Result<sqlx::PgTransaction<'static>> {
        let pool = self.pool.clone();
        let begun = tokio::spawn(async move { pool.begin().await }).await;
        Ok(begun.map_err(|_| Error::ConnectionLost)??)
    }

    /// Ends the connections; those that do not answer are left to the end of the process.
    pub async fn close(&self) {
        if tokio::time::timeout(CLOSE, self.pool.close()).await.is_err() {
            tracing::warn!("some connections to the database did not end in time");
        }
    }
}

async fn refuse_standby(connection: &mut sqlx::PgConnection) -> std::result::Result<(), sqlx::Error> {
    let standby = sqlx::query_scalar!(r#"select pg_is_in_recovery() as "standby!""#).fetch_one(connection).await?;
    if standby { Err(sqlx::Error::protocol("this server is a standby")) } else { Ok(()) }
}

/// Creates a database on the server of `url` if it is not there. `name` must be an identifier that needs no quotes.
pub async fn create_database(url: &str, name: &str) -> Result<()> {
    let store = Store::connect(url, 2)?;
    let there = sqlx::query_scalar!("select 1 as one from pg_database where datname = $1", name);
    if there.fetch_optional(&store.pool).await?.is_none() {
        let create = sqlx::AssertSqlSafe(format!("create database {name}"));
        sqlx::raw_sql(create).execute(&store.pool).await?;
    }
    store.close().await;
    Ok(())
}

/// Creates a database as a copy of another on the same server, to which nobody may be connected. Both names must be
/// identifiers that need no quotes.
pub async fn copy_database(url: &str, name: &str, template: &str) -> Result<()> {
    on_server(url, format!("create database {name} template {template}")).await
}

/// Removes a database with all that is connected to it. `name` must be an identifier that needs no quotes.
pub async fn drop_database(url: &str, name: &str) -> Result<()> {
    on_server(url, format!("drop database if exists {name} with (force)")).await
}

async fn on_server(url: &str, statement: String) -> Result<()> {
    let store = Store::connect(url, 2)?;
    let done = sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&store.pool).await;
    store.close().await;
    done?;
    Ok(())
}

/// The longest wait for a statement that a run depends on. A lost network would otherwise hold it for ever.
pub const STATEMENT: Duration = Duration::from_secs(15);

/// How long a connection that nobody uses any more may take to answer.
const RELEASE: Duration = Duration::from_secs(3);

/// How long the connections may take to end.
const CLOSE: Duration = Duration::from_secs(5);

async fn bounded<T>(statement: impl Future<Output = std::result::Result<T, sqlx::Error>>) -> Result<T> {
    Ok(tokio::time::timeout(STATEMENT, statement).await.map_err(|_| Error::TimedOut)??)
}

/// How often a transaction is tried again that the database ended for the sake of another.
pub const TRIES: usize = 10;

/// PostgreSQL text cannot hold NUL: it is shown as the replacement character.
pub fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// PostgreSQL has no unsigned integers: counts and milliseconds are kept as `bigint`, cut at its end.
fn big(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
