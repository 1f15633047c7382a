//! The SDKs and their templates as this program carries them: the sources in `guest-sdk/`, which `build.rs` lists.

/// Path below `guest-sdk/` with slashes, and content.
type File = (&'static str, &'static [u8]);

/// Sorted by path.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/sdks.rs"));

/// What an SDK has for its own development alone.
const FOR_ITSELF: [&str; 3] = ["template", "test", "tests"];

/// The files of a template, by their paths in it.
pub(super) fn below(sdk: &str, folder: &str) -> impl Iterator<Item = File> {
    let prefix = format!("{sdk}/{folder}/");
    FILES.iter().filter_map(move |(path, bytes)| Some((path.strip_prefix(&prefix)?, *bytes)))
}

/// The files of an SDK that a project needs, by their paths in it.
pub(super) fn sdk(sdk: &str) -> impl Iterator<Item = File> {
    let prefix = format!("{sdk}/");
    let files = FILES.iter().filter_map(move |(path, bytes)| Some((path.strip_prefix(&prefix)?, *bytes)));
    files.filter(|(path, _)| {
        let first = path.split_once('/').map_or("", |(first, _)| first);
        !FOR_ITSELF.contains(&first) && !first.starts_with("template-")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_carried_and_what_is_built_from_them_is_not() {
        let paths: Vec<&str> = FILES.iter().map(|(path, _)| *path).collect();
        assert!(paths.is_sorted() && paths.contains(&"rust/src/lib.rs") && paths.contains(&"rust/template/.gitignore"));
        let built = ["target", "node_modules", "__pycache__", ".venv", "venv", "dist", ".gocache", ".pytest_cache"];
        let is_built = |path: &&&str| path.split('/').any(|part| built.contains(&part)) || path.ends_with(".wasm");
        assert_eq!(paths.iter().find(is_built), None);
        let bytes: usize = FILES.iter().map(|(_, bytes)| bytes.len()).sum();
        assert!(bytes < 8 << 20, "{bytes} bytes are carried: is something in guest-sdk that was built?");
    }

    #[test]
    fn an_sdk_goes_into_a_project_without_its_tests_and_templates() {
        let paths: Vec<&str> = sdk("rust").map(|(path, _)| path).collect();
        assert!(paths.contains(&"Cargo.toml") && paths.contains(&"macros/src/lib.rs"));
        assert!(paths.iter().all(|path| !path.starts_with("tests/") && !path.starts_with("template")));
        assert!(below("rust", "template").any(|(path, _)| path == "src/lib.rs"));
    }
}
