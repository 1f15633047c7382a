//! From a core module to a component, in this process: for toolchains that end at core WebAssembly. It knows the interface of
//! Deedbox and the adapter of WASI, and no language.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

const WIT: &str = include_str!("../../../../wit/activity.wit");
const ADAPTED: &str = "wasi_snapshot_preview1";

/// Encodes a component. `world`: the world of `deedbox:activity` whose type is written into the module first, for one whose
/// toolchain has not done so. `adapter`: puts the reactor adapter of WASI's first preview under it, for one that imports that.
///
/// The error says in words what does not fit.
pub fn component(core: &[u8], world: Option<&str>, adapter: bool) -> Result<Vec<u8>, String> {
    encode(core, world, adapter).map_err(|error| format!("{error:#}"))
}

fn encode(core: &[u8], world: Option<&str>, adapter: bool) -> anyhow::Result<Vec<u8>> {
    let mut module = core.to_vec();
    if let Some(world) = world {
        let mut resolve = Resolve::default();
        let package = resolve.push_source("activity.wit", WIT)?;
        let world = resolve.select_world(&[package], Some(world))?;
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8, false)?;
    }
    let mut encoder = ComponentEncoder::default();
    let mut encoder = encoder.module(&module)?.validate(true);
    if adapter {
        let bytes = wasi_preview1_component_adapter_provider::WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER;
        encoder = encoder.adapter(ADAPTED, bytes)?;
    }
    encoder.encode()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DESCRIBE: &str = "deedbox:activity/activities@0.1.0#describe";
    const RUN: &str = "deedbox:activity/activities@0.1.0#run";

    /// A core module with the exports of the world, and more text.
    fn core(more: &str) -> Vec<u8> {
        let text = format!(
            "(module {more}
               (memory (export \"memory\") 1)
               (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) unreachable)
               (func (export \"{DESCRIBE}\") (result i32) i32.const 0)
               (func (export \"{RUN}\") (param i32 i32 i32 i32) (result i32) unreachable))"
        );
        wat::parse_str(text).unwrap()
    }

    fn is_component(bytes: &[u8]) -> bool {
        bytes.starts_with(b"\0asm\x0d\0\x01\0")
    }

    #[test]
    fn a_module_with_the_exports_of_the_world_becomes_a_component() {
        assert!(is_component(&component(&core(""), Some("activity"), false).unwrap()));
    }

    #[test]
    fn a_module_that_lacks_an_export_is_told_which() {
        let empty = wat::parse_str("(module)").unwrap();
        let error = component(&empty, Some("activity"), false).unwrap_err();
        assert!(error.contains("deedbox:activity/activities"), "{error}");
    }

    #[test]
    fn the_first_preview_of_wasi_needs_the_adapter() {
        let import = "(import \"wasi_snapshot_preview1\" \"clock_time_get\"
                        (func $now (param i32 i64 i32) (result i32)))
                      (func (drop (call $now (i32.const 0) (i64.const 0) (i32.const 8))))";
        let module = core(import);
        assert!(component(&module, Some("activity"), false).unwrap_err().contains(ADAPTED));
        assert!(is_component(&component(&module, Some("activity"), true).unwrap()));
    }

    #[test]
    fn an_unknown_world_is_an_error() {
        assert!(component(&core(""), Some("other"), false).is_err());
    }
}
