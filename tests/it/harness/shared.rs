//! What all tests of the process share: a master key, and a directory of compiled code, so that each guest is compiled once.

use std::path::PathBuf;
use std::sync::OnceLock;

use deedbox::gateway::vault::{self, MasterKey, MasterKeys};
use deedbox::store::{self, Store};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use super::{Database, component, config, node};

static DIR: OnceLock<TempDir> = OnceLock::new();
static COMPILED: OnceCell<()> = OnceCell::const_new();

/// The key of every node that the harness opens.
pub fn master_key_file() -> PathBuf {
    let path = dir().join("master.key");
    MasterKey::read_or_create(&path).unwrap();
    path
}

/// The same, read.
pub fn master_keys() -> MasterKeys {
    MasterKey::read(&master_key_file()).unwrap().into()
}

/// Gives a database that is made for a test the keys that all others have: else compiled code of one would be no good for another.
pub async fn found(store: &Store) {
    vault::found(store, &MasterKey::read(&master_key_file()).unwrap()).await.unwrap();
}

pub fn cache_dir() -> PathBuf {
    dir().join("cache")
}

/// Leaves the guests' compiled code in the cache.
pub async fn compile_guests_once(database: &Database) {
    COMPILED
        .get_or_init(|| async {
            let node = node(database, "compiler", config(), deedbox::probe::none()).await;
            store::tenant::create(node.store(), "compiler").await.unwrap();
            for name in
                ["charge_once.wasm", "deedbox_test_guests.wasm", "deedbox_test_guests_wasi_http.wasm", "hazards.wasm"]
            {
                node.registry().upload("compiler", component(name).into()).await.unwrap();
            }
        })
        .await;
}

fn dir() -> PathBuf {
    DIR.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        MasterKey::read_or_create(&dir.path().join("master.key")).unwrap();
        dir
    })
    .path()
    .to_owned()
}
