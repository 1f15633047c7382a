//! Replicas that start at the same moment on a database that has nothing in it.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use deedbox::store;
use futures_util::future::join_all;
use serde_json::Value;

use crate::cli::program::{Running, deedbox, place};
use crate::harness::{Database, http, long, shared, tell};

const REPLICAS: usize = 5;
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A database without a schema on the tests' own server.
async fn empty() -> Database {
    let other = Database::fresh().await.url;
    let (path, query) = other.split_once('?').unwrap();
    let server = path.rsplit_once('/').unwrap().0;
    let name = format!("together_{}", COUNT.fetch_add(1, Ordering::Relaxed));
    store::create_database(&format!("{server}/postgres?{query}"), &name).await.unwrap();
    Database { url: format!("{server}/{name}?{query}") }
}

fn replica(database: &Database, dir: &Path, i: usize) -> Running {
    let mut command = deedbox(&["--json", "up", "--listen", "127.0.0.1:0", "--database-url", &database.url]);
    command.arg("--data-dir").arg(dir.join(i.to_string()));
    command.arg("--master-key-file").arg(shared::master_key_file());
    Running::start(command, dir.join(format!("{i}.log")))
}

/// F-I09.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_replicas_that_start_at_once_on_an_empty_database_are_all_ready() {
    let rounds = if long() { 20 } else { 2 };
    for _ in 0..rounds {
        let (place, database) = (place(), empty().await);
        let mut replicas: Vec<Running> = (0..REPLICAS).map(|i| replica(&database, place.path(), i)).collect();
        let said = join_all(replicas.iter_mut().map(Running::line)).await;
        for line in said {
            let said: Value = serde_json::from_str(&line).unwrap();
            let ready =
                http::client().get(format!("{}/readyz", said["address"].as_str().unwrap())).send().await.unwrap();
            assert_eq!(ready.status(), 200);
        }
        let versions: Vec<(i64, bool)> =
            sqlx::query_as("select version, success from _sqlx_migrations order by version")
                .fetch_all(&mut database.connect().await)
                .await
                .unwrap();
        let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../migrations")).unwrap();
        assert_eq!(versions.len(), files.count());
        assert!(versions.iter().all(|(_, success)| *success), "{versions:?}");
        for replica in replicas {
            replica.signal("TERM").await;
            let ended = replica.end().await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(!ended.err.contains("panicked"), "{ended:?}");
        }
    }
    tell(&format!("chaos together: {rounds} times {REPLICAS} replicas on an empty database, all ready"));
}
