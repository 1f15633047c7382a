//! Master keys from files, variables and commands, and `deedbox key`: an operator replaces the key of a fleet that works.

use std::path::Path;

use deedbox::gateway::vault::MasterKey;
use deedbox::store::{self, Store};
use serde_json::{Value, json};
use tokio::process::Command;

use super::program::{Running, deedbox, finish, place};
use crate::harness::{Database, shared};

/// A fleet's database with a tenant, and two master keys in files.
struct Fleet {
    place: tempfile::TempDir,
    database: Database,
    old: MasterKey,
    new: MasterKey,
}

impl Fleet {
    async fn new() -> Self {
        let (place, database) = (place(), Database::fresh().await);
        let old = MasterKey::read(&shared::master_key_file()).unwrap();
        std::fs::copy(shared::master_key_file(), place.path().join("old.key")).unwrap();
        let new = MasterKey::read_or_create(&place.path().join("new.key")).unwrap();
        let store = Store::connect(&database.url, 2).unwrap();
        store::tenant::create(&store, "acme").await.unwrap();
        store.close().await;
        Self { place, database, old, new }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.place.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap().trim().to_owned()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = deedbox(arguments);
        command.env("DATABASE_URL", &self.database.url);
        command
    }

    fn serve(&self) -> Command {
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--cache-dir").arg(self.file("cache"));
        command
    }

    /// The same with the new key in use and the old one at hand.
    fn with_both(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command.arg("--master-key-file").arg(self.file("new.key"));
        command.arg("--other-master-key-file").arg(self.file("old.key"));
        command
    }
}

/// Starts it, and ends it once it serves.
async fn serves(command: Command, log: &Path) {
    let mut running = Running::start(command, log.to_owned());
    assert!(running.line().await.starts_with("listening on "));
    running.signal("TERM").await;
    assert_eq!(running.end().await.code, Some(0));
}

fn row<'a>(list: &'a Value, key: &MasterKey) -> &'a Value {
    list.as_array().unwrap().iter().find(|row| row["master_key"] == json!(key.id())).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_replaces_the_master_key_and_sees_when_the_old_one_can_go() {
    let fleet = Fleet::new().await;
    let before = finish(fleet.with_both(&["--json", "key", "list"])).await.json();
    assert_eq!(
        (row(&before["items"], &fleet.old)["is"].as_str(), row(&before["items"], &fleet.old)["needed"].as_bool()),
        (Some("other"), Some(true))
    );
    assert_eq!(row(&before["items"], &fleet.new)["needed"], json!(false));

    let renewed = |tenant: &str| finish(fleet.with_both(&["--json", "key", "renew", tenant]));
    assert_eq!(renewed("acme").await.json(), json!({ "tenant": "acme", "key": "k1" }));
    assert_eq!(renewed("acme").await.json()["key"], "k2");
    assert!(renewed("nobody").await.failed(1).contains("nobody"));

    let rotated = finish(fleet.with_both(&["--json", "key", "rotate"])).await.json();
    assert_eq!((&rotated["rewrapped"], &rotated["left"]), (&json!(3), &json!([])), "{rotated}");
    assert_eq!(row(&rotated["master_keys"], &fleet.old)["needed"], json!(false));
    assert_eq!(row(&rotated["master_keys"], &fleet.new)["keys"], json!(5));
    let again = finish(fleet.with_both(&["--json", "key", "rotate"])).await.json();
    assert_eq!((&again["rewrapped"], &again["resealed"]), (&json!(0), &json!(0)));

    let mut old = fleet.serve();
    old.arg("--master-key-file").arg(fleet.file("old.key"));
    let refused = finish(old).await.failed(1);
    assert!(refused.contains(&fleet.new.id()) && refused.contains("--other-master-key-file"), "{refused}");
    let mut new = fleet.serve();
    new.arg("--master-key-file").arg(fleet.file("new.key"));
    serves(new, &fleet.file("new.log")).await;
    let told = finish(fleet.command(&["key", "list"])).await.well();
    assert!(told.contains(&fleet.new.id()) && !told.contains(&fleet.old.id()), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_key_comes_from_a_file_a_variable_or_a_command() {
    let fleet = Fleet::new().await;
    let cat = |name: &str| format!("cat {}", fleet.file(name).display());
    let mut by_variable = fleet.serve();
    by_variable
        .env("DEEDBOX_MASTER_KEY", fleet.text("new.key"))
        .env("DEEDBOX_OTHER_MASTER_KEYS", fleet.text("old.key"));
    serves(by_variable, &fleet.file("variable.log")).await;
    let mut by_command = fleet.serve();
    by_command.arg("--master-key-command").arg(cat("new.key"));
    by_command.env("DEEDBOX_OTHER_MASTER_KEY_COMMANDS", format!("{}\n{}", cat("old.key"), cat("new.key")));
    serves(by_command, &fleet.file("command.log")).await;

    assert!(finish(fleet.serve()).await.failed(2).contains("DEEDBOX_MASTER_KEY"));
    let mut twice = fleet.serve();
    twice.env("DEEDBOX_MASTER_KEY", fleet.text("old.key")).arg("--master-key-file").arg(fleet.file("old.key"));
    assert!(finish(twice).await.failed(2).contains("more than once"));
    let mut wrong = fleet.serve();
    wrong.env("DEEDBOX_MASTER_KEY", format!("{}zz", &fleet.text("old.key")[2..]));
    let said = finish(wrong).await.failed(1);
    assert!(said.contains("DEEDBOX_MASTER_KEY") && !said.contains(&fleet.text("old.key")[2..]), "{said}");
}

/// A crash writes no secrets down, unless that is asked for.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn no_core_is_dumped() {
    let fleet = Fleet::new().await;
    let core = async |more: &[&str]| {
        let mut command = fleet.serve();
        command.arg("--master-key-file").arg(fleet.file("old.key")).args(more);
        let mut running = Running::start(command, fleet.file("core.log"));
        running.line().await;
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", running.id())).unwrap();
        running.signal("TERM").await;
        running.end().await;
        let line = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap().to_owned();
        line.split_whitespace().skip(4).take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(core(&[]).await, ["0", "0"]);
    let own = std::fs::read_to_string("/proc/self/limits").unwrap();
    let own = own.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let own: Vec<_> = own.split_whitespace().skip(4).take(2).map(str::to_owned).collect();
    assert_eq!(core(&["--core-dumps"]).await, own);
}
