//! The sources keep to the shape that is agreed: the line of modules, one home for each technology, sizes, and what no
//! file may say. Each rule is tried on small bad examples as well, so that it is known to find them.

mod confined;
mod coverage;
mod examples;
mod line;
mod names;
mod prose;
mod size;
mod source;
mod statements;
mod tables;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use source::{Breach, Source};

#[test]
fn modules_use_only_those_to_their_right() {
    let sources = sources();
    let runtime: Vec<&Source> = sources.iter().filter(|source| source.is_under("runtime/src/")).collect();
    assert!(runtime.len() > 50, "the runtime's sources were not found");
    let used: usize = runtime.iter().map(|source| line::used_modules(source).len()).sum();
    assert!(used > 100, "the uses of modules were not found: {used}");
    none(runtime.into_iter().flat_map(line::breaches));
}

#[test]
fn each_technology_is_named_only_at_its_home() {
    let mut needed = BTreeSet::new();
    let mut found = Vec::new();
    for source in sources() {
        let (breaches, exceptions) = names::breaches(&source);
        found.extend(breaches);
        needed.extend(exceptions);
    }
    for (i, (what, path, _)) in names::EXCEPTIONS.iter().enumerate() {
        if !needed.contains(&i) {
            found.push(Breach(format!("{path}: needs no exception for {what}: take it out of the table")));
        }
    }
    none(found);
}

#[test]
fn the_host_cannot_name_a_secret() {
    let sources = sources();
    assert!(sources.iter().any(|source| source.is_under("runtime/src/host/")));
    none(sources.iter().flat_map(names::secret_words));
}

#[test]
fn functions_and_files_are_short_and_say_what_they_are_for() {
    let sources = sources();
    assert!(sources.iter().map(|source| size::functions(source).len()).sum::<usize>() > 500);
    none(sources.iter().flat_map(size::breaches));
}

#[test]
fn every_statement_keeps_to_one_tenant_but_for_the_listed_few() {
    let sources = sources();
    let store: Vec<&Source> = sources.iter().filter(|source| source.is_under(statements::STORE)).collect();
    let (breaches, statements) = statements::breaches(&store);
    assert!(statements > 80, "the statements were not found: {statements}");
    none(breaches);
}

#[test]
fn every_table_can_be_spread_by_its_tenant() {
    let migrations = files().into_iter().filter(|path| path.starts_with("migrations/"));
    let texts: Vec<String> = migrations.map(|path| std::fs::read_to_string(root().join(path)).unwrap()).collect();
    let docs = std::fs::read_to_string(root().join("docs/operating.md")).unwrap();
    let (breaches, tables) = tables::breaches(&texts.concat(), &docs);
    assert!(tables.len() > 15, "the tables were not found: {tables:?}");
    none(breaches);
}

#[test]
fn every_condition_on_a_tenant_would_be_missed() {
    let mut tried = 0;
    let mut unmissed = Vec::new();
    for source in sources().iter().filter(|source| source.is_under(statements::STORE)) {
        for written in statements::statements(source) {
            let sql = written.sql.unwrap_or_default();
            if confined::findings(&sql).is_ok_and(|found| found.is_empty()) {
                let without = statements::without_each_condition(&sql);
                tried += without.len();
                let missed = |sql: &String| confined::findings(sql).is_ok_and(|found| !found.is_empty());
                let unseen = without.iter().filter(|sql| !missed(sql));
                unmissed.extend(unseen.map(|sql| source.breach(written.line, &format!("nothing is missing in {sql}"))));
            }
        }
    }
    assert!(tried > 80, "the conditions were not found: {tried}");
    none(unmissed);
}

#[test]
fn every_line_that_is_asked_for_is_named_by_a_test_or_accounted_for() {
    let is_test = |path: &str| {
        path.starts_with("tests/it/") && !path.starts_with("tests/it/tidy")
            || path.contains("/tests/")
            || path.ends_with("tests.rs")
    };
    let tests = files().into_iter().filter(|path| path.ends_with(".rs") && is_test(path));
    let mut named = BTreeSet::new();
    for path in tests {
        named.extend(coverage::named(&std::fs::read_to_string(root().join(&path)).unwrap_or_default()));
    }
    let rows = std::fs::read_to_string(root().join("docs/coverage.md")).unwrap();
    // What a row's reason names is named by tests.
    let lines: Vec<&str> = rows.lines().filter_map(|row| row.split('|').nth(1)).collect();
    let accounted = coverage::named(&lines.join("\n"));
    let missing: Vec<_> = coverage::asked().difference(&named).filter(|id| !accounted.contains(*id)).cloned().collect();
    assert!(missing.is_empty(), "name them in a test or say why not in docs/coverage.md: {missing:?}");
    let twice: Vec<_> = accounted.intersection(&named).collect();
    assert!(twice.is_empty(), "a test names them, so docs/coverage.md need not: {twice:?}");
}

#[test]
fn no_file_names_a_registry_or_a_place_on_a_disk() {
    let texts = files().into_iter().filter_map(|path| Some((std::fs::read_to_string(root().join(&path)).ok()?, path)));
    none(texts.flat_map(|(text, path)| prose::breaches(&path, &text)));
}

fn none(breaches: impl IntoIterator<Item = Breach>) {
    let lines: Vec<String> = breaches.into_iter().map(|breach| breach.0).collect();
    assert!(lines.is_empty(), "{} breaches:\n{}", lines.len(), lines.join("\n"));
}

/// All Rust sources that people write.
fn sources() -> Vec<Source> {
    let written = |path: &String| path.ends_with(".rs") && !path.split('/').any(|part| part == "generated");
    files().into_iter().filter(written).map(|path| Source::read(&root(), &path)).collect()
}

/// All files that are written here, by their paths from the root, in order: what git knows, and what it would take.
fn files() -> Vec<String> {
    // In a container the checkout may be another user's.
    let listing = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").args(listing).current_dir(root()).output();
    let listed = listed.unwrap_or_else(|e| panic!("git must be installed, to tell which files are written here: {e}"));
    let said = String::from_utf8_lossy(&listed.stderr);
    assert!(listed.status.success(), "git cannot list the files of {}: {said}", root().display());
    let paths = String::from_utf8(listed.stdout).unwrap();
    // Deleted files are listed until that is committed, and one in conflict more than once.
    let there = paths.split('\0').filter(|path| root().join(path).is_file());
    there.map(str::to_owned).collect::<BTreeSet<_>>().into_iter().collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
