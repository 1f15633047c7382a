//! The committed bindings of the Rust SDK are what the WIT says today.
//!
//! To write them anew: `cargo test -p deedbox-tests --test it -- --ignored write_generated_bindings`.
//! The check itself must never write.

use std::path::{Path, PathBuf};

use anyhow::Result;
use wit_bindgen_core::wit_parser::Resolve;
use wit_bindgen_core::{Files, WorldGenerator};

/// Each generated file: its name and its bytes.
pub fn generate(wit_dir: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit_dir)?;
    let world = resolve.select_world(&[package], Some("activity"))?;
    let mut files = Files::default();
    options().build().generate(&mut resolve, world, &mut files)?;
    Ok(files.iter().map(|(name, bytes)| (name.to_owned(), bytes.to_vec())).collect())
}

#[test]
fn generated_bindings_are_current() {
    for (name, bytes) in generate(&root().join("wit")).unwrap() {
        let committed = std::fs::read(generated().join(&name)).unwrap_or_default();
        assert!(committed == bytes, "{name} is not what wit/ gives: write the bindings anew and commit them");
    }
}

#[test]
#[ignore = "writes the bindings"]
fn write_generated_bindings() {
    for (name, bytes) in generate(&root().join("wit")).unwrap() {
        std::fs::write(generated().join(name), bytes).unwrap();
    }
}

fn options() -> wit_bindgen_rust::Opts {
    wit_bindgen_rust::Opts {
        generate_all: true,
        additional_derive_attributes: vec!["PartialEq".to_owned()],
        export_macro_name: Some("export_component".to_owned()),
        ..Default::default()
    }
}

fn generated() -> PathBuf {
    root().join("guest-sdk/rust/src/generated")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
