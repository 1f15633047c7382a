//! Files, from the guest to the disk: claims, replays, whole contents, and nothing outside the granted directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use deedbox::clock::SystemClock;
use deedbox::config::{Config, DirectoryConfig};
use deedbox::node::{Node, NodeSettings};
use deedbox::store::ledger;
use deedbox_books::Options;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::harness::{TENANT, World, config, shared, work_once};

mod crash;

/// A world whose node grants the directory `exports`.
struct Desk {
    world: World,
    root: TempDir,
    config: Config,
}

impl Desk {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut config = config();
        config.files.directories = granting(&[("exports", root.path(), &[])]);
        change(&mut config);
        let world = World::with(Options { keyless: false, convention: None }, config.clone()).await;
        let desk = Self { world, root, config };
        desk.deploy(json!({})).await;
        desk
    }

    async fn deploy(&self, policy: Value) {
        let mut whole = json!({ "files": { "allow": ["exports"] } });
        policy.as_object().unwrap().iter().for_each(|(name, value)| whole[name] = value.clone());
        self.world.deploy("write-files", "stripe", whole).await;
    }

    async fn start(&self, files: Value) -> Uuid {
        self.world.start("write-files", json!({ "files": files })).await
    }

    /// What came of these writes.
    async fn told(&self, files: Value) -> Value {
        let run = self.start(files).await;
        self.world.work().await;
        self.world.output(run).await
    }

    /// A path in the directory of the tenant.
    fn own(&self, path: &str) -> PathBuf {
        self.root.path().join(TENANT).join(path)
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.own(path)).unwrap()
    }

    fn names(&self, folder: &str) -> Vec<String> {
        names_in(&self.own(folder))
    }

    async fn entries(&self) -> Vec<ledger::Entry> {
        let all = ledger::Filter { limit: 100, ..ledger::Filter::default() };
        ledger::list(self.world.node.store(), TENANT, &all).await.unwrap()
    }
}

fn granting(directories: &[(&str, &Path, &[&str])]) -> BTreeMap<String, DirectoryConfig> {
    let granted = directories.iter().map(|(name, path, tenants)| {
        let tenants = tenants.iter().map(|tenant| (*tenant).to_owned()).collect();
        ((*name).to_owned(), DirectoryConfig { path: (*path).to_owned(), tenants })
    });
    granted.collect()
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// R-D13, R-E07, R-L24.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_written_whole_below_the_tenants_own_directory_and_recorded() {
    let desk = Desk::new().await;
    let run = desk.start(json!([{ "path": "exports/2026/orders ä.csv", "text": "a,b\n" }])).await;
    desk.world.work().await;
    let output = desk.world.output(run).await;
    assert_eq!(output[0]["source"], "sent");
    assert_eq!(desk.read("2026/orders ä.csv"), "a,b\n");
    assert_eq!(desk.names("2026"), ["orders ä.csv"], "no temporary file is left");
    let entry = &desk.entries().await[0];
    assert_eq!((entry.provider.as_str(), entry.method.as_str()), ("files", "WRITE"));
    assert_eq!(entry.url, "file:///exports/2026/orders%20%C3%A4.csv");
    assert_eq!((entry.state.as_str(), entry.status), ("completed", Some(200)));
    let sends = desk.world.sends(run).await;
    assert_eq!((sends.len(), &sends[0].wire_key), (1, &entry.wire_key));
    assert!(entry.wire_key.is_some());
}

/// R-D08, R-E08.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_writes_nothing() {
    let desk = Desk::new().await;
    let files = json!([{ "path": "exports/a", "text": "one" }, { "path": "exports/b", "identity": { "named": "b" } }]);
    let run = desk.world.start("write-files", json!({ "files": files, "then": ["fail", "return"] })).await;
    work_once(&desk.world.node).await;
    std::fs::write(desk.own("a"), "touched since").unwrap();
    std::fs::remove_file(desk.own("b")).unwrap();
    work_once(&desk.world.node).await;
    let output = desk.world.output(run).await;
    assert!(output.as_array().unwrap().iter().all(|file| file["source"] == "replayed"), "{output}");
    assert_eq!((desk.read("a").as_str(), desk.names("").len()), ("touched since", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_run_replaces_the_file_and_a_shared_business_write_is_made_once() {
    let desk = Desk::new().await;
    for text in ["first", "second, and longer"] {
        assert_eq!(desk.told(json!([{ "path": "exports/a", "text": text }])).await[0]["source"], "sent");
        assert_eq!(desk.read("a"), text);
    }
    let shared = json!([{ "path": "exports/day", "text": "x", "identity": { "business": ["export", "monday"] } }]);
    let (first, second) = (desk.told(shared.clone()).await, desk.told(shared).await);
    assert_eq!((&first[0]["source"], &second[0]["source"]), (&json!("sent"), &json!("replayed")));
    assert_eq!(first[0]["effect_id"], second[0]["effect_id"]);
}

/// F-B05.
#[tokio::test(flavor = "multi_thread")]
async fn other_bytes_under_a_claimed_identity_are_refused_and_not_written() {
    let desk = Desk::new().await;
    let files = json!([{ "path": "exports/a", "text": "attempt {attempt}", "identity": { "named": "volatile" } }]);
    let run = desk.world.start("write-files", json!({ "files": files, "then": ["fail", "return"] })).await;
    desk.world.work().await;
    assert_eq!(desk.world.output(run).await[0]["error"], "effect-mismatch");
    assert_eq!(desk.read("a"), "attempt 1");
}

/// R-D13.
#[tokio::test(flavor = "multi_thread")]
async fn an_append_is_refused_with_the_reason_and_advice() {
    let desk = Desk::new().await;
    desk.world.deploy("append", "stripe", json!({ "files": { "allow": ["exports"] } })).await;
    let run = desk.world.start("append", json!({ "path": "exports/log" })).await;
    desk.world.work().await;
    let output = desk.world.output(run).await;
    assert_eq!(output["error"], "denied");
    let said = output["message"].as_str().unwrap();
    assert!(said.contains("made twice writes twice") && said.contains("idempotency-key"), "{said}");
    assert!(names_in(desk.root.path()).is_empty() && desk.entries().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_that_could_lead_elsewhere_is_refused_before_anything_is_claimed() {
    let desk = Desk::new().await;
    let paths =
        ["exports/../other/x", "/exports/x", "exports//x", "exports/./x", "exports/x/", "exports", "exports\\x/y"];
    let files: Vec<_> = paths.iter().map(|path| json!({ "path": path })).collect();
    let output = desk.told(json!(files)).await;
    assert_eq!(output.as_array().unwrap().len(), paths.len());
    assert!(output.as_array().unwrap().iter().all(|file| file["error"] == "invalid-request"), "{output}");
    assert!(desk.entries().await.is_empty() && names_in(desk.root.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_must_be_allowed_by_the_deployment_and_granted_to_the_tenant() {
    let (theirs, ours) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let granted = granting(&[("theirs", theirs.path(), &["other"]), ("ours", ours.path(), &["other", TENANT])]);
    let desk = Desk::with(|config| config.files.directories.extend(granted)).await;
    desk.deploy(json!({ "files": { "allow": ["theirs", "ours", "nowhere"] } })).await;
    let paths = ["exports/x", "theirs/x", "nowhere/x", "ours/x"].map(|path| json!({ "path": path }));
    let output = desk.told(json!(paths)).await;
    assert!(output[0]["message"].as_str().unwrap().contains("policy.files.allow"), "{output}");
    assert!(output[1]["message"].as_str().unwrap().contains("grants no directory `theirs`"), "{output}");
    // A tenant is not told which directories others have.
    let neutral = |of: &Value, name: &str| of["message"].as_str().unwrap().replace(name, "?");
    assert_eq!(neutral(&output[1], "theirs"), neutral(&output[2], "nowhere"));
    assert_eq!((&output[2]["error"], &output[3]["source"]), (&json!("denied"), &json!("sent")));
    assert_eq!((names_in(theirs.path()).len(), names_in(ours.path())), (0, vec![TENANT.to_owned()]));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenants_files_cannot_be_reached() {
    let desk = Desk::new().await;
    let other = desk.root.path().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("x"), "theirs").unwrap();
    desk.told(json!([{ "path": "exports/other/x", "text": "mine" }, { "path": "exports/../other/x" }])).await;
    assert_eq!(std::fs::read_to_string(other.join("x")).unwrap(), "theirs");
    assert_eq!(desk.read("other/x"), "mine");
}

/// Whoever put them there: a link that leads out is not followed, and one in a file's own place is replaced.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_out_of_the_directory_is_not_followed() {
    let (desk, outside) = (Desk::new().await, tempfile::tempdir().unwrap());
    std::fs::write(outside.path().join("x"), "theirs").unwrap();
    std::fs::create_dir(desk.own("")).unwrap();
    std::os::unix::fs::symlink(outside.path(), desk.own("out")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("x"), desk.own("x")).unwrap();
    let output = desk.told(json!([{ "path": "exports/out/y" }, { "path": "exports/x", "text": "mine" }])).await;
    assert_eq!((&output[0]["error"], &output[1]["source"]), (&json!("write-failed"), &json!("sent")), "{output}");
    assert_eq!(names_in(outside.path()), ["x"]);
    assert_eq!(std::fs::read_to_string(outside.path().join("x")).unwrap(), "theirs");
    assert!(desk.own("x").symlink_metadata().unwrap().is_file());
    assert_eq!(desk.read("x"), "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_cannot_be_made_is_released_and_made_once_it_can() {
    let desk = Desk::new().await;
    std::fs::create_dir_all(desk.own("a")).unwrap();
    let files = json!([{ "path": "exports/a", "text": "x" }]);
    let run = desk.world.start("write-files", json!({ "files": files, "fail_on_error": true })).await;
    work_once(&desk.world.node).await;
    let sends = desk.world.sends(run).await;
    assert_eq!((sends[0].state.as_str(), sends[0].result.as_deref()), ("released", Some("not-applied")));
    assert_eq!(desk.names(""), ["a"], "no temporary file is left");
    std::fs::remove_dir(desk.own("a")).unwrap();
    desk.world.work().await;
    assert_eq!(desk.world.output(run).await[0]["source"], "sent");
    assert_eq!(desk.read("a"), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_above_the_limit_is_refused_and_one_at_it_is_written() {
    let desk = Desk::with(|config| config.files.max_file_bytes = 1_000).await;
    let output =
        desk.told(json!([{ "path": "exports/a", "fill": 1_001 }, { "path": "exports/b", "fill": 1_000 }])).await;
    assert!(output[0]["message"].as_str().unwrap().contains("the limit is 1000"), "{output}");
    assert_eq!((output[0]["error"].as_str(), desk.read("b").len()), (Some("invalid-request"), 1_000));
    assert_eq!(desk.entries().await.len(), 1);
}

/// Names up to the file system's limit have a temporary name as well.
#[tokio::test(flavor = "multi_thread")]
async fn the_longest_name_can_be_written() {
    let (desk, name) = (Desk::new().await, "ä".repeat(127));
    let output = desk.told(json!([{ "path": format!("exports/{name}"), "text": "x" }])).await;
    assert_eq!((output[0]["source"].as_str(), desk.names("")), (Some("sent"), vec![name]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_does_not_start_with_a_directory_that_it_cannot_use() {
    let desk = Desk::new().await;
    let missing = desk.root.path().join("missing");
    let cases = [
        ("a", missing.as_path(), "make it first"),
        ("a", Path::new("a/b"), "absolute"),
        ("a/b", desk.root.path(), "name"),
    ];
    for (name, path, said) in cases {
        let mut config = config();
        config.files.directories = granting(&[(name, path, &[])]);
        let settings = NodeSettings {
            database_url: desk.world.database.url.clone(),
            master_keys: shared::master_keys(),
            cache_dir: shared::cache_dir(),
            config,
            name: "bad".to_owned(),
        };
        let clock = std::sync::Arc::new(SystemClock);
        let error = Node::open_with(settings, clock, deedbox::probe::none()).await.unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("files.directories"), "{error}");
    }
}
