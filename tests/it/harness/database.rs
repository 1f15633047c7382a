//! One PostgreSQL server for all tests of the process, and a fresh database for each, cloned from a migrated template.

use std::fs::{File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use deedbox::postgres::{Server, Settings};
use deedbox::store::Store;
use sqlx::{Connection, PgConnection};
use tokio::sync::Mutex;

use super::shared;

static SERVER: OnceLock<String> = OnceLock::new();
static CLONING: Mutex<()> = Mutex::const_new(());
static COUNT: AtomicU32 = AtomicU32::new(0);

const TEMPLATE: &str = "template_migrated";

/// A database of one test's own.
#[derive(Debug)]
pub struct Database {
    pub url: String,
}

impl Database {
    pub async fn fresh() -> Self {
        let postgres = server();
        // PostgreSQL copies a template only while nobody is connected to it.
        let _alone = CLONING.lock().await;
        let name = format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut connection = PgConnection::connect(&postgres).await.unwrap();
        let clone = format!("create database {name} template {TEMPLATE}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(clone)).execute(&mut connection).await.unwrap();
        Self { url: postgres.replacen("/postgres?", &format!("/{name}?"), 1) }
    }

    pub fn name(&self) -> &str {
        let path = self.url.split('?').next().unwrap();
        path.rsplit('/').next().unwrap()
    }

    /// Runs statements of the test's own.
    pub async fn execute(&self, sql: &str) {
        let mut connection = self.connect().await;
        sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
    }

    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// Moves the database's clock on, from now on and for good.
    pub async fn advance_seconds(&self, seconds: u32) {
        let sql = format!(
            "create or replace function deedbox_now() returns timestamptz language sql stable parallel safe
             as $$ select statement_timestamp() + interval '{seconds} seconds' $$"
        );
        self.execute(&sql).await;
    }
}

/// The address of the server's `postgres` database. The server lives as long as this process.
fn server() -> String {
    SERVER.get_or_init(|| std::thread::spawn(start).join().unwrap()).clone()
}

fn start() -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let data_dir = directory();
    let url = runtime.block_on(async {
        let server = Server::start(Settings { data_dir, bin_dir: None }).await.unwrap();
        let url = server.url("postgres");
        deedbox::store::create_database(&url, TEMPLATE).await.unwrap();
        let template = Store::connect(&server.url(TEMPLATE), 2).unwrap();
        template.migrate().await.unwrap();
        shared::found(&template).await;
        template.close().await;
        // The server ends with this process, by the signal that the launcher asked the kernel for.
        std::mem::forget(server);
        url
    });
    std::mem::forget(runtime);
    url
}

/// A directory that PostgreSQL's own user can reach. It is locked for as long as this process lives; those that nobody
/// locks any more are removed beside the tests.
pub(super) fn directory() -> PathBuf {
    // Of each user's own: one cannot write into what another made.
    let user = tempfile::tempfile().and_then(|file| file.metadata()).unwrap().uid();
    let all = std::env::temp_dir().join(format!("deedbox-test-servers-{user}"));
    std::fs::create_dir_all(&all).unwrap();
    // Nobody looks for what is free while another is between making its directory and locking it.
    let one_at_a_time = File::create(all.join("lock")).unwrap();
    one_at_a_time.lock().unwrap();
    let old: Vec<(PathBuf, File)> =
        std::fs::read_dir(&all).unwrap().flatten().filter_map(|entry| ended(entry.path())).collect();
    let own = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir_in(&all).unwrap().keep();
    let alive = File::create(own.join("lock")).unwrap();
    alive.lock().unwrap();
    std::mem::forget(alive);
    std::thread::spawn(move || old.iter().for_each(|(path, _locked)| drop(std::fs::remove_dir_all(path))));
    own.join("data")
}

/// The directory of a test process that has ended, and its lock, which is ours now.
fn ended(path: PathBuf) -> Option<(PathBuf, File)> {
    let lock = File::open(path.join("lock")).ok()?;
    lock.try_lock().ok()?;
    Some((path, lock))
}
