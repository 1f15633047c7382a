//! Copies of source folders in which tools may leave what they make, and a digest of what is in them.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// What tools leave beside sources.
const BUILT: [&str; 8] =
    ["target", "node_modules", "venv", ".venv", "__pycache__", "dist", ".gocache", ".pytest_cache"];

/// Makes the copy have these files and folders of the root as they are now. What tools have left in it stays, so that they
/// need not do it again.
pub fn mirror(root: &Path, copy: &Path, paths: &[PathBuf]) -> Result<()> {
    let files = files(root, paths)?;
    for file in &files {
        let (from, to) = (root.join(file), copy.join(file));
        let bytes = fs::read(&from)?;
        if !fs::read(&to).is_ok_and(|there| there == bytes) {
            fs::create_dir_all(to.parent().context("a file without a folder")?)?;
            fs::copy(&from, &to).with_context(|| format!("cannot write {}", to.display()))?;
        }
    }
    for file in self::files(copy, paths)?.difference(&files) {
        fs::remove_file(copy.join(file))?;
    }
    Ok(())
}

/// Another number for other names or contents, as far as chance allows.
pub fn digest(root: &Path, paths: &[PathBuf]) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    for file in files(root, paths)? {
        file.hash(&mut hasher);
        fs::read(root.join(file))?.hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// All files at and below these paths, from the root. Paths that are not there have none.
fn files(root: &Path, paths: &[PathBuf]) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut left: Vec<PathBuf> = paths.to_vec();
    while let Some(path) = left.pop() {
        let full = root.join(&path);
        if full.is_file() {
            found.insert(path);
        } else if full.is_dir() {
            for entry in fs::read_dir(&full)? {
                let name = entry?.file_name();
                if !BUILT.iter().any(|built| name == *built) {
                    left.push(path.join(name));
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_follows_its_sources_and_keeps_what_was_made_in_it() {
        let (root, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let paths = [PathBuf::from("sdk"), PathBuf::from("one.json"), PathBuf::from("not-there")];
        let write = |at: &Path, text: &str| {
            fs::create_dir_all(at.parent().unwrap()).unwrap();
            fs::write(at, text).unwrap();
        };
        write(&root.path().join("sdk/src/a"), "1");
        write(&root.path().join("sdk/b"), "1");
        write(&root.path().join("sdk/target/built"), "1");
        write(&root.path().join("one.json"), "1");
        mirror(root.path(), copy.path(), &paths).unwrap();
        write(&copy.path().join("sdk/node_modules/made"), "1");
        let before = digest(root.path(), &paths).unwrap();
        assert_eq!(digest(copy.path(), &paths).unwrap(), before);

        write(&root.path().join("sdk/src/a"), "2");
        fs::remove_file(root.path().join("sdk/b")).unwrap();
        assert_ne!(digest(root.path(), &paths).unwrap(), before);
        mirror(root.path(), copy.path(), &paths).unwrap();
        assert_eq!(fs::read_to_string(copy.path().join("sdk/src/a")).unwrap(), "2");
        assert!(!copy.path().join("sdk/b").exists() && !copy.path().join("sdk/target").exists());
        assert!(copy.path().join("sdk/node_modules/made").exists());
    }
}
