//! Compiled code on disk. Where a test must show that it was or was not loaded, the stored component is made useless:
//! then a run can only succeed with code from the disk.

use std::path::PathBuf;
use std::sync::Arc;

use deedbox::gateway::vault::{MasterKey, MasterKeys};
use deedbox::node::{Node, NodeSettings};
use deedbox::{clock::SystemClock, probe};
use serde_json::json;

use crate::harness::{TENANT, World, component, config, shared, work};
use crate::wat_component::WatComponent;

const GUESTS: &str = "deedbox_test_guests.wasm";

/// A world with a cache that no other test uses. Compiled code is made there by the first run of a module.
struct Place {
    world: World,
    cache: PathBuf,
}

impl Place {
    /// `noop` is deployed, and its module is compiled in the cache.
    async fn with_compiled_noop() -> Self {
        let place = Self::empty().await;
        place.world.deploy("noop", "stripe", json!({ "retry": { "max_attempts": 1 } })).await;
        assert_eq!(place.outcome_on(&place.restarted().await).await, "completed");
        place
    }

    async fn empty() -> Self {
        let world = World::keyed().await;
        let cache = world.dir.path().join("own-cache");
        Self { world, cache }
    }

    /// The node once more, with nothing in memory.
    async fn restarted(&self) -> Node {
        self.node(shared::master_keys()).await
    }

    /// A node whose fleet has other keys.
    async fn of_another_fleet(&self) -> Node {
        let stranger = MasterKey::read_or_create(&self.world.dir.path().join("stranger.key")).unwrap();
        self.forget_keys().await;
        self.node(stranger.into()).await
    }

    /// The next node makes the fleet's keys anew, from its master key, because the database has been used.
    async fn forget_keys(&self) {
        self.world.database.execute("delete from sealing_keys").await;
    }

    async fn node(&self, master_keys: MasterKeys) -> Node {
        let settings = NodeSettings {
            database_url: self.world.database.url.clone(),
            master_keys,
            cache_dir: self.cache.clone(),
            config: config(),
            name: "elsewhere".to_owned(),
        };
        Node::open_with(settings, Arc::new(SystemClock), probe::none()).await.unwrap()
    }

    /// How the only attempt of a new run ends on that node.
    async fn outcome_on(&self, node: &Node) -> String {
        let run = self.world.start("noop", json!({})).await;
        work(node).await;
        let outcomes = self.world.outcomes(run).await;
        assert_eq!(outcomes.len(), 1);
        outcomes[0].clone()
    }

    async fn spoil_stored_bytes(&self) {
        self.put_stored_bytes(&[0]).await;
    }

    async fn put_stored_bytes(&self, bytes: &[u8]) {
        let mut connection = self.world.database.connect().await;
        sqlx::query("update modules set bytes = $1").bind(bytes).execute(&mut connection).await.unwrap();
    }

    fn files(&self) -> Vec<PathBuf> {
        std::fs::read_dir(&self.cache).unwrap().map(|entry| entry.unwrap().path()).collect()
    }

    /// The one file of compiled code.
    fn file(&self) -> PathBuf {
        let files = self.files();
        assert_eq!(files.len(), 1, "{files:?}");
        files[0].clone()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_node_uses_its_compiled_code() {
    let place = Place::with_compiled_noop().await;
    place.spoil_stored_bytes().await;
    assert_eq!(place.outcome_on(&place.restarted().await).await, "completed");
}

/// F-G01.
#[tokio::test(flavor = "multi_thread")]
async fn a_changed_file_is_never_loaded_and_is_written_anew() {
    let place = Place::with_compiled_noop().await;
    let file = place.file();
    for bad in changed(&std::fs::read(&file).unwrap()) {
        std::fs::write(&file, &bad).unwrap();
        place.spoil_stored_bytes().await;
        let node = place.restarted().await;
        assert_eq!(place.outcome_on(&node).await, "module-unavailable");
        place.put_stored_bytes(&component(GUESTS)).await;
        assert_eq!(place.outcome_on(&node).await, "completed");
        place.spoil_stored_bytes().await;
        assert_eq!(place.outcome_on(&place.restarted().await).await, "completed", "the file was not written anew");
    }
}

/// A byte flipped in the keyed hash, and at the start, in the middle and at the end of the code; cut; longer.
fn changed(good: &[u8]) -> Vec<Vec<u8>> {
    let flips = [0, 32, good.len() / 2, good.len() - 1].map(|at| {
        let mut bytes = good.to_vec();
        bytes[at] ^= 1;
        bytes
    });
    let mut all = flips.to_vec();
    all.extend([good[..good.len() / 2].to_vec(), good[..31].to_vec(), Vec::new(), [good, &[0]].concat()]);
    all
}

/// F-G01.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_another_fleets_key_vouches_for_is_never_loaded() {
    let place = Place::with_compiled_noop().await;
    std::fs::remove_file(place.file()).unwrap();
    assert_eq!(place.outcome_on(&place.of_another_fleet().await).await, "completed");
    place.spoil_stored_bytes().await;
    place.forget_keys().await;
    assert_eq!(place.outcome_on(&place.restarted().await).await, "module-unavailable");
    assert_eq!(place.outcome_on(&place.of_another_fleet().await).await, "completed");
}

/// A file that is good for one component is nothing for another.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_under_the_name_of_another_component_is_never_loaded() {
    let place = Place::with_compiled_noop().await;
    let file = place.file();
    std::fs::remove_file(&file).unwrap();
    let other = WatComponent { names: vec!["noop"], ..Default::default() }.bytes();
    place.restarted().await.registry().upload(TENANT, other.into()).await.unwrap();
    std::fs::rename(place.file(), &file).unwrap();
    place.spoil_stored_bytes().await;
    assert_eq!(place.outcome_on(&place.restarted().await).await, "module-unavailable");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_node_compiles_for_itself() {
    let mut place = Place::with_compiled_noop().await;
    let first = place.file();
    place.cache = place.world.dir.path().join("second-cache");
    let second = place.restarted().await;
    assert!(place.files().is_empty());
    assert_eq!(place.outcome_on(&second).await, "completed");
    assert_eq!(place.file().file_name(), first.file_name());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_refused_leaves_nothing_on_the_disk() {
    let place = Place::empty().await;
    let refused = WatComponent { describe: "(unreachable)", ..Default::default() }.bytes();
    let error = place.restarted().await.registry().upload(TENANT, refused.into()).await.unwrap_err();
    assert!(error.to_string().contains("`describe` ended with trap"), "{error}");
    assert_eq!(place.files(), [] as [PathBuf; 0]);
}

/// What is stored under a digest has that digest, or is not run.
#[tokio::test(flavor = "multi_thread")]
async fn stored_bytes_with_another_digest_are_not_run() {
    let mut place = Place::with_compiled_noop().await;
    let other = WatComponent { names: vec!["noop"], ..Default::default() }.bytes();
    place.put_stored_bytes(&other).await;
    place.cache = place.world.dir.path().join("second-cache");
    assert_eq!(place.outcome_on(&place.restarted().await).await, "module-unavailable");
}
