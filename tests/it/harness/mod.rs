//! What every test stands on: a database of its own, a node, a provider that keeps books, and short ways to deploy,
//! start and look.

pub mod cell;
mod database;
pub mod dns;
pub mod frames;
pub mod freeze;
pub mod http;
pub mod logs;
pub mod nats;
pub mod neighbour;
pub mod own_server;
pub mod pair;
pub mod process;
pub mod proxy;
pub mod ps;
pub mod raw;
pub mod severed;
pub mod shared;
pub mod tokens;
pub mod world;

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use uuid::Uuid;

pub use database::Database;
pub use world::{TENANT, World, config, deploy_version, lease, node, node_by, provider, rescue, work, work_once};

/// The states of all effects with the numbers of their sends, read in a session of its own.
pub async fn claimed(database: &Database) -> Vec<(String, i64)> {
    let sql = "select state, (select count(*) from sends s where s.tenant = e.tenant and s.effect_id = e.effect_id)
               from effects e order by first_sent_at";
    sqlx::query_as(sql).fetch_all(&mut database.connect().await).await.unwrap()
}

/// Makes a change in a transaction of its own.
pub async fn committed<T>(
    store: &deedbox::store::Store,
    change: impl AsyncFnOnce(&mut deedbox::store::Tx) -> deedbox::store::Result<T>,
) -> T {
    let mut tx = store.transaction().await.unwrap();
    let made = change(&mut tx).await.unwrap();
    tx.commit().await.unwrap();
    made
}

/// Where a built guest component lies, whether it is there or not.
pub fn component_path(name: &str) -> PathBuf {
    components_dir().join(name)
}

/// The bytes of a built guest component.
pub fn component(name: &str) -> Vec<u8> {
    let path = component_path(name);
    std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}; run `cargo xtask guests` first", path.display()))
}

/// A Python that has the client of the OpenWOP specification.
pub fn openwop_python() -> PathBuf {
    python("DEEDBOX_OPENWOP_PYTHON", "openwop_client").expect("the OpenWOP client: `cargo xtask test` installs it")
}

/// A Python that has Schemathesis.
pub fn schemathesis_python() -> PathBuf {
    python("DEEDBOX_SCHEMATHESIS", "schemathesis").expect("Schemathesis: `cargo xtask test --long` installs it")
}

/// The Python that a variable names, or the system's, if it can import the module.
fn python(variable: &str, module: &str) -> Option<PathBuf> {
    let has_module = |python: &PathBuf| {
        let imported = Command::new(python).args(["-c", &format!("import {module}")]).output();
        imported.is_ok_and(|ended| ended.status.success())
    };
    given(variable).map(PathBuf::from).into_iter().chain([PathBuf::from("python3")]).find(has_module)
}

/// Whether the long suite was asked for, as `cargo xtask test --long` does.
pub fn long() -> bool {
    given("DEEDBOX_LONG").is_some_and(|value| value == "1")
}

/// What chance begins with: `DEEDBOX_SEED`, to have the same again, else another number each time.
pub fn seed() -> u64 {
    let given = given("DEEDBOX_SEED").map(|text| text.to_str().and_then(|text| text.parse().ok()));
    given.map_or_else(|| Uuid::new_v4().as_u64_pair().0, |seed| seed.expect("DEEDBOX_SEED is a whole number"))
}

/// Says that a test did nothing, past the harness that keeps what tests print.
pub fn skipped(what: &str) {
    tell(&format!("skipped, for it is of the long suite (`cargo xtask test --long`): {what}"));
}

/// A component of an SDK, such as `samples_python.wasm`; none, with a word on it, when that language was not built and need not
/// be. `cargo xtask test` names in `DEEDBOX_SDKS` those that it has built.
pub fn sdk_component(kind: &str, language: &str) -> Option<Vec<u8>> {
    let file = format!("{kind}_{language}.wasm");
    let wanted = given("DEEDBOX_SDKS").unwrap_or_default();
    let wanted = wanted.to_string_lossy().split(',').any(|it| it == language);
    if wanted || components_dir().join(&file).exists() {
        return Some(component(&file));
    }
    tell(&format!("skipped, for {file} is not there (`cargo xtask test` builds it where it can): {language}"));
    None
}

/// Says one line, past the harness that keeps what tests print.
pub fn tell(line: &str) {
    // Nobody reads it: then nobody needs it.
    writeln!(std::io::stderr(), "{line}").ok();
}

fn components_dir() -> PathBuf {
    let given = given("DEEDBOX_COMPONENTS").map(PathBuf::from);
    given.unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/guests/components")))
}

#[allow(clippy::disallowed_methods, reason = "the one place of the tests that reads the environment")]
fn given(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}
