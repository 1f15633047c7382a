//! What came out of a build, looked at as an upload looks at it: a component of the world, its size, digest and imports, and its
//! activities where telling them takes no time. It changes nothing.

use std::path::Path;

use serde_json::{Value, json};
use wasmparser::{Parser, Payload};

use super::super::output::{Output, items, plain, text};
use super::super::settings;
use super::super::table::{Table, pairs};
use crate::config::HostConfig;
use crate::host::{self, Engine};
use crate::registry;

/// Components of this size are compiled and asked for their activities. Larger ones take seconds to minutes to compile, which
/// the upload does anyway.
const DESCRIBED_BYTES: usize = 2 << 20;

/// What a host asks of a component.
const EXPORT: &str = "deedbox:activity/activities@0.1.0";

/// Prints what the component is. Fails when it could not be uploaded.
pub(super) async fn show(file: &Path, language: &str, output: &Output) -> anyhow::Result<()> {
    let bytes = settings::read(file).await?;
    let imports = imports(&bytes)?;
    let mut seen = json!({
        "path": file.display().to_string(), "language": language, "size_bytes": bytes.len(),
        "digest": blake3::hash(&bytes).to_hex().as_str(), "imports": imports,
    });
    if bytes.len() <= DESCRIBED_BYTES {
        let engine = Engine::new(HostConfig { max_instances: 1, ..HostConfig::default() })
            .map_err(|error| anyhow::anyhow!("the WebAssembly engine cannot start: {error:#}"))?;
        seen["activities"] = json!({ "items": registry::inspect(engine, bytes).await? });
    }
    output.show(&seen, |seen| in_words(seen, file))
}

/// The interfaces that a component imports. Fails, with what to do, when the host would not take it.
fn imports(bytes: &[u8]) -> anyhow::Result<Vec<String>> {
    registry::check_header(bytes)?;
    let (imports, exports) = outside(bytes)?;
    anyhow::ensure!(
        exports.iter().any(|export| export == EXPORT),
        "the component does not export {EXPORT}: does the project use the Deedbox SDK, and declare an activity?"
    );
    let unknown: Vec<&str> = imports.iter().map(String::as_str).filter(|import| !host::is_known(import)).collect();
    anyhow::ensure!(
        unknown.is_empty(),
        "the component imports what no host offers: {}; they offer {}",
        unknown.join(", "),
        host::known_in_words()
    );
    Ok(imports)
}

/// The names of a component's own imports and exports, not of what is nested in it.
fn outside(bytes: &[u8]) -> Result<(Vec<String>, Vec<String>), wasmparser::BinaryReaderError> {
    let (mut imports, mut exports, mut depth) = (Vec::new(), Vec::new(), 0_usize);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    imports.push(import?.name.name.to_owned());
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    exports.push(export?.name.name.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok((imports, exports))
}

fn in_words(seen: &Value, file: &Path) -> String {
    let of = |pointer: &str| text(seen, pointer);
    let size = format!("{} bytes", of("/size_bytes"));
    let mut rows = vec![("component", of("/path")), ("size", size), ("digest", of("/digest"))];
    let mut name = "imports";
    for import in seen["imports"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        rows.push((std::mem::take(&mut name), plain(import)));
    }
    let mut table = Table::new(&["activity", "summary…"]);
    for activity in items(&seen["activities"]) {
        table.row([text(activity, "/name"), text(activity, "/summary")]);
    }
    let activities = table.render("");
    format!("{}\n{activities}Deploy it with: deedbox deploy {}", pairs(&rows), file.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The component of the conformance fixtures, which the binary carries.
    const FIXTURES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openwop.wasm"));

    #[test]
    fn the_imports_of_a_component_are_told_and_anything_else_is_refused() {
        let mut told = imports(FIXTURES).unwrap();
        told.sort();
        assert_eq!(told, ["deedbox:activity/http@0.1.0", "wasi:clocks/monotonic-clock@0.2.0", "wasi:io/poll@0.2.0"]);
        let error = |bytes: &[u8]| imports(bytes).unwrap_err().to_string();
        assert!(error(b"\0asm\x01\0\0\0").contains("core WebAssembly module"));
        assert!(error(b"text").contains("not a WebAssembly component"));
        let other = wat::parse_str("(component)").unwrap();
        assert!(error(&other).contains("does not export deedbox:activity/activities"), "{}", error(&other));
    }

    #[test]
    fn people_are_told_each_import_on_a_line_of_its_own() {
        let seen = json!({ "path": "a.wasm", "size_bytes": 7, "digest": "d", "imports": ["x", "y"],
            "activities": { "items": [{ "name": "charge-once", "summary": "Charges." }] } });
        let words = in_words(&seen, Path::new("a.wasm"));
        assert!(
            words.starts_with("component  a.wasm\nsize       7 bytes\ndigest     d\nimports    x\n           y\n"),
            "{words}"
        );
        assert!(words.contains("charge-once  Charges."), "{words}");
        assert!(words.ends_with("deedbox deploy a.wasm"), "{words}");
    }
}
