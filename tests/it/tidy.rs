//! The sources keep to the shape that is agreed: the line of modules, one home for each technology, sizes, and what no
//! file may say. Each rule is tried on small bad examples as well, so that it is known to find them.

mod examples;
mod line;
mod names;
mod prose;
mod size;
mod source;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use source::{Breach, Source};

/// Folders that hold nothing of our own writing.
const SKIPPED: [&str; 5] = ["target", ".git", "node_modules", ".venv", "__pycache__"];

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

/// All files, by their paths from the root, in order.
fn files() -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            let skipped = SKIPPED.iter().any(|name| entry.file_name() == *name);
            if kind.is_dir() && !skipped {
                folders.push(entry.path());
            } else if kind.is_file() {
                files.push(relative(&entry.path()));
            }
        }
    }
    files.sort();
    files
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().replace('\\', "/")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
