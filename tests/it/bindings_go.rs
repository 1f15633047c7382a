//! The committed bindings of the Go SDK are what the WIT says today.
//!
//! To write them anew: `cargo test -p deedbox-tests --test it -- --ignored write_generated_go_bindings`.
//! The check itself must never write.

use std::path::{Path, PathBuf};

use anyhow::Result;
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;

const PACKAGE: &str = "deedbox.local/deedbox/internal/wit";
const EXPORTS: &str = "wit_exports.go";

#[test]
fn generated_go_bindings_are_current() {
    let files = generate().unwrap();
    assert!(files.len() > 10, "{} files are too few", files.len());
    for (name, text) in files {
        let committed = std::fs::read_to_string(generated().join(&name)).unwrap_or_default();
        assert!(committed == text, "{name} is not what the WIT gives: write the bindings anew and commit them");
    }
}

#[test]
#[ignore = "writes the bindings"]
fn write_generated_go_bindings() {
    for (name, text) in generate().unwrap() {
        let path = generated().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Each generated file: its path below `internal/wit` and its text.
fn generate() -> Result<Vec<(String, String)>> {
    let mut all = of_world(&root().join("wit"), "activity")?;
    let http = of_world(&root().join("guest-sdk/go/wit"), "http")?;
    // That world has no exports.
    all.extend(http.into_iter().filter(|(name, _)| name != EXPORTS));
    Ok(all.into_iter().map(|(name, text)| (placed(name), changed(&text))).collect())
}

fn of_world(wit: &Path, world: &str) -> Result<Vec<(String, String)>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit)?;
    let world = resolve.select_world(&[package], Some(world))?;
    let options = wit_bindgen_go::Opts { format: wit_bindgen_go::Format::False, ..Default::default() };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files)?;
    let sources = files.iter().filter(|(name, _)| name.ends_with(".go"));
    sources.map(|(name, bytes)| Ok((name.to_owned(), String::from_utf8(bytes.to_vec())?))).collect()
}

fn placed(name: String) -> String {
    if name == EXPORTS { format!("exports/{name}") } else { name }
}

/// Puts a file into the SDK: its packages instead of those of a program and of wit-bindgen's own module, and for
/// WebAssembly alone, where imports have a meaning.
fn changed(text: &str) -> String {
    let mut text = text
        .replace("package main\n", "package exports\n")
        .replace("// Unused, but present to make the compiler happy\nfunc main() {}\n", "")
        .replace("go.bytecodealliance.org/pkg/wit", PACKAGE)
        .replace("wit_component/", &format!("{PACKAGE}/"))
        // The collector must not call the host: resources are dropped where the program says so.
        .replace("runtime.AddCleanup(", "witRuntime.NoCleanup(");
    if !text.contains("runtime.Pinner") {
        text = text.replace("\"runtime\"\n", "");
    }
    format!("//go:build wasip1\n\n{text}")
}

fn generated() -> PathBuf {
    root().join("guest-sdk/go/internal/wit")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
