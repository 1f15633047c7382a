//! Every stored input keeps the laws, also where no fuzzer can be built; and every target is there in all of its places.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::TARGETS;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("fuzz")
}

/// The names in a folder, in order.
fn listed(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_stored_input_keeps_the_laws() {
    for (name, target) in TARGETS {
        let folder = root().join("corpus").join(name);
        let inputs = listed(&folder);
        assert!(inputs.len() >= 3, "{name}: store more inputs than {}", inputs.len());
        for input in inputs {
            // Shown when the test fails.
            println!("{name}/{input}");
            target(&std::fs::read(folder.join(input)).unwrap());
        }
    }
}

/// A reader keeps its laws on what it was not made for, too.
#[test]
fn every_target_takes_every_stored_input_of_the_others() {
    let inputs = TARGETS.iter().flat_map(|(name, _)| {
        let folder = root().join("corpus").join(name);
        listed(&folder).into_iter().map(move |input| folder.join(input))
    });
    for path in inputs {
        let input = std::fs::read(&path).unwrap();
        for (name, target) in TARGETS {
            println!("{name} {}", path.display());
            target(&input);
        }
    }
}

#[test]
fn every_target_is_in_the_table_the_manifest_and_the_folders() {
    let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    assert!(names.is_sorted(), "{names:?}");
    let manifest: toml::Table = std::fs::read_to_string(root().join("Cargo.toml")).unwrap().parse().unwrap();
    let programs = manifest["bin"].as_array().unwrap().iter().map(|bin| bin["name"].as_str().unwrap());
    assert_eq!(programs.collect::<Vec<_>>(), names);
    let folders: Vec<String> = listed(&root().join("corpus")).into_iter().collect();
    assert_eq!(folders, names);
    let files = listed(&root().join("fuzz_targets"));
    assert_eq!(
        files.into_iter().collect::<Vec<_>>(),
        names.iter().map(|name| format!("{name}.rs")).collect::<Vec<_>>()
    );
    for name in names {
        let text = std::fs::read_to_string(root().join("fuzz_targets").join(format!("{name}.rs"))).unwrap();
        assert!(text.contains(&format!("deedbox::fuzzing::{name}(data)")), "{name}.rs calls another target");
    }
}
