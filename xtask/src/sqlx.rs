//! The recorded queries: what PostgreSQL says about every checked query, in `.sqlx`.
//!
//! With them the project builds without a database. They are never edited by hand: `record` writes
//! them, `check` proves that they are those of the source and of the migrations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::database::Database;
use crate::settings::Settings;
use crate::setup::Postgres;
use crate::shell;
use crate::workspace::Workspace;

/// Versions of PostgreSQL infer the nullability of some columns differently; this one's word counts.
const REFERENCE_MAJOR: u32 = 15;
const FOLDER: &str = ".sqlx";
/// A crate with checked queries: compiling it again makes the macros ask the database again.
const SOURCE: &str = "runtime/src/lib.rs";

/// File name to content.
type Queries = BTreeMap<String, String>;

/// What is compiled to find the queries.
pub enum Scope {
    /// Everything: what `cargo xtask test` does, and it shares its work with the lints.
    Workspace,
    Package(String),
}

impl Scope {
    pub fn of(package: Option<String>) -> Self {
        package.map_or(Self::Workspace, Self::Package)
    }
}

/// Brings `.sqlx` up to date.
pub fn record(settings: &Settings, workspace: &Workspace, postgres: &Postgres, scope: &Scope) -> Result<()> {
    let described = describe(settings, workspace, postgres, scope)?;
    let folder = workspace.root.join(FOLDER);
    let recorded = read(&folder)?;
    fs::create_dir_all(&folder)?;
    for (name, text) in described.iter().filter(|(name, text)| recorded.get(*name) != Some(*text)) {
        fs::write(folder.join(name), text)?;
    }
    let stale = recorded.keys().filter(|name| !described.contains_key(*name)).collect::<Vec<_>>();
    for name in &stale {
        fs::remove_file(folder.join(name))?;
    }
    println!("sqlx: {} queries recorded, {} stale ones removed", described.len(), stale.len());
    Ok(())
}

/// Fails when `record` would change anything.
pub fn check(settings: &Settings, workspace: &Workspace, postgres: &Postgres, scope: &Scope) -> Result<()> {
    let described = describe(settings, workspace, postgres, scope)?;
    let recorded = read(&workspace.root.join(FOLDER))?;
    let differences = differences(&recorded, &described, postgres.major == REFERENCE_MAJOR)?;
    if !differences.is_empty() {
        bail!("{FOLDER} is out of date, run `cargo xtask sqlx` and commit it:\n  {}", differences.join("\n  "));
    }
    println!("sqlx: {} recorded queries are those of the source", recorded.len());
    Ok(())
}

/// Compiles against a migrated database, so that the macros describe their queries.
fn describe(settings: &Settings, workspace: &Workspace, postgres: &Postgres, scope: &Scope) -> Result<Queries> {
    let database = Database::start(postgres)?;
    database.migrate(&workspace.root.join("migrations"))?;
    let folder = tempfile::tempdir()?;
    shell::run(Command::new("touch").arg(workspace.root.join(SOURCE)))?;
    let mut cargo = settings.cargo();
    cargo.args(["check", "--all-targets"]).current_dir(&workspace.root);
    match scope {
        Scope::Workspace => cargo.arg("--workspace"),
        Scope::Package(name) => cargo.args(["--package", name]),
    };
    cargo.env("SQLX_OFFLINE", "false").env("SQLX_OFFLINE_DIR", folder.path());
    shell::run(cargo.env("DATABASE_URL", database.url()))?;
    let described = read(folder.path())?;
    if described.is_empty() {
        bail!("no query was described: does {SOURCE} still belong to the crate with the queries?");
    }
    Ok(described)
}

fn read(folder: &Path) -> Result<Queries> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(Queries::new());
    };
    let mut queries = Queries::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with("query-") && name.ends_with(".json") {
            queries.insert(name, fs::read_to_string(&path)?);
        }
    }
    Ok(queries)
}

fn differences(recorded: &Queries, described: &Queries, strict: bool) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for name in recorded.keys().filter(|name| !described.contains_key(*name)) {
        found.push(format!("no longer in the source: {name}"));
    }
    for (name, text) in described {
        match recorded.get(name) {
            None => found.push(format!("not recorded: {}", first_words(text)?)),
            Some(before) if !same(before, text, strict)? => {
                found.push(format!("described differently: {}", first_words(text)?));
            }
            Some(_) => {}
        }
    }
    Ok(found)
}

fn same(before: &str, now: &str, strict: bool) -> Result<bool> {
    let (mut before, mut now) = (parse(before)?, parse(now)?);
    if !strict {
        before["describe"]["nullable"].take();
        now["describe"]["nullable"].take();
    }
    Ok(before == now)
}

fn first_words(text: &str) -> Result<String> {
    let query = parse(text)?;
    let words = query["query"].as_str().unwrap_or_default().split_whitespace().take(8);
    Ok(words.collect::<Vec<_>>().join(" "))
}

fn parse(text: &str) -> Result<Value> {
    serde_json::from_str(text).context("a recorded query is not JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queries(entries: &[(&str, &str, bool)]) -> Queries {
        let entry = |(name, query, nullable): &(&str, &str, bool)| {
            let value = serde_json::json!({ "query": query, "describe": { "nullable": [nullable] } });
            ((*name).to_owned(), value.to_string())
        };
        entries.iter().map(entry).collect()
    }

    #[test]
    fn new_stale_and_changed_queries_are_named() {
        let recorded = queries(&[("a", "select 1", false), ("b", "select 2", false)]);
        let described = queries(&[("b", "select 2", true), ("c", "select 3", false)]);
        let found = differences(&recorded, &described, true).unwrap();
        assert_eq!(found, ["no longer in the source: a", "described differently: select 2", "not recorded: select 3"]);
        assert!(differences(&recorded, &recorded, true).unwrap().is_empty());
    }

    #[test]
    fn another_version_may_infer_another_nullability() {
        let (recorded, described) = (queries(&[("a", "select 1", false)]), queries(&[("a", "select 1", true)]));
        assert!(differences(&recorded, &described, false).unwrap().is_empty());
        assert_eq!(differences(&recorded, &described, true).unwrap().len(), 1);
    }
}
