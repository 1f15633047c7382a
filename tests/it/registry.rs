//! Uploads that are refused, each with words that help, and compiled code on a node's disk.

use bytes_of::{WASM_HEADER, component_header};
use deedbox::registry::Error;
use deedbox_books::Options;

use crate::harness::{TENANT, World, component, config};
use crate::wat_component::{LOOP, WatComponent};

mod artefacts;
mod beside;
mod bytes_of;
mod confined;
mod hostile;
mod limits;

async fn world() -> World {
    let mut config = config();
    config.host.describe_timeout_ms = 500;
    config.host.max_instances = 2;
    World::with(Options { keyless: false, convention: None }, config).await
}

impl World {
    /// Why an upload is refused. Nothing of it is listed.
    async fn refusal(&self, bytes: impl Into<Vec<u8>>) -> String {
        let error = self.node.registry().upload(TENANT, bytes.into().into()).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        assert!(deedbox::store::module::list(self.node.store(), TENANT, None, 1_000).await.unwrap().is_empty());
        error.to_string()
    }

    async fn upload(&self, bytes: Vec<u8>) -> deedbox::registry::Uploaded {
        self.node.registry().upload(TENANT, bytes.into()).await.unwrap()
    }
}

#[track_caller]
fn assert_says(message: &str, words: &[&str]) {
    assert!(words.iter().all(|word| message.contains(word)), "`{message}` does not say {words:?}");
}

/// F-G01, F-G02.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_component_is_refused_by_name() {
    let world = world().await;
    assert_says(&world.refusal([]).await, &["empty"]);
    assert_says(&world.refusal([7; 64]).await, &["not a WebAssembly component"]);
    assert_says(&world.refusal([0, b'a']).await, &["not a WebAssembly component"]);
    let elf = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    assert_says(&world.refusal(&elf[..4096]).await, &["not a WebAssembly component"]);
    let text = WatComponent::default().text();
    assert_says(&world.refusal(text).await, &["not a WebAssembly component"]);
    let core = wat::parse_str("(module)").unwrap();
    assert_says(&world.refusal(core).await, &["core WebAssembly module", "component"]);
    assert_says(&world.refusal([WASM_HEADER, &[9, 0, 9, 0]].concat()).await, &["version"]);
}

/// F-G01.
#[tokio::test(flavor = "multi_thread")]
async fn compiled_code_is_refused() {
    let world = world().await;
    let engine = world.node.registry().engine().wasmtime();
    let compiled = engine.precompile_component(&WatComponent::default().bytes()).unwrap();
    assert_says(&world.refusal(compiled).await, &["not a WebAssembly component"]);
}

/// F-G02.
#[tokio::test(flavor = "multi_thread")]
async fn a_broken_component_is_refused_and_the_whole_one_is_taken_later() {
    let world = world().await;
    let whole = WatComponent::default().bytes();
    for length in [9, 64, whole.len() / 2, whole.len() - 1] {
        assert_says(&world.refusal(&whole[..length]).await, &["the component"]);
    }
    let trailing = [&whole[..], b"and more"].concat();
    assert_says(&world.refusal(trailing).await, &["the component is not valid"]);
    let twice = [&whole[..], &whole[..]].concat();
    assert_says(&world.refusal(twice).await, &["the component is not valid"]);
    assert!(world.upload(whole).await.fresh);
}

/// F-G09.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_import_is_named_with_what_is_known() {
    let world = world().await;
    let imports = [
        "acme:storage/blobs@1.0.0",
        "deedbox:activity/context@0.0.9",
        "deedbox:activity/context",
        "wasi:http/incoming-handler@0.2.3",
        "deedbox:activity/context@0.2.0",
        "wasi:random/random@0.3.0",
    ];
    for name in imports {
        let component = importing(name, "");
        assert_says(&world.refusal(component).await, &[name, "deedbox:activity/*@0.1.x", "wasi:io/*@0.2.x"]);
    }
    let both = format!("(import \"{}\" (instance)) (import \"{}\" (instance))", imports[0], imports[1]);
    let component = WatComponent { outer: both, ..WatComponent::default() }.bytes();
    assert_says(&world.refusal(component).await, &imports[..2]);
}

/// F-G09.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_function_of_a_known_package_is_named() {
    let world = world().await;
    let unknown_interface = importing("deedbox:activity/teleport@0.1.0", r#"(export "go" (func))"#);
    assert_says(&world.refusal(unknown_interface).await, &["deedbox:activity/teleport@0.1.0"]);
    let unknown_function = importing("deedbox:activity/context@0.1.0", r#"(export "teleport" (func))"#);
    assert_says(&world.refusal(unknown_function).await, &["teleport"]);
    let other_type = importing("deedbox:activity/context@0.1.0", r#"(export "cancelled" (func (result u64)))"#);
    assert_says(&world.refusal(other_type).await, &["cancelled"]);
}

/// F-G09.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_without_the_export_is_refused_with_its_name() {
    let world = world().await;
    let bare = wat::parse_str("(component)").unwrap();
    assert_says(&world.refusal(bare).await, &["deedbox:activity/activities"]);
    for export in ["deedbox:activity/activities@0.2.0", "deedbox:activity/activities@0.0.9"] {
        let other = WatComponent { export, ..WatComponent::default() };
        assert_says(&world.refusal(other.bytes()).await, &["deedbox:activity/activities@0.1.0"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_description_that_cannot_be_had_is_no_upload() {
    let world = world().await;
    let describing = |describe| WatComponent { describe, ..WatComponent::default() }.bytes();
    assert_says(&world.refusal(describing("(unreachable)")).await, &["describe", "trap", "unreachable"]);
    assert_says(&world.refusal(describing(LOOP)).await, &["describe", "500 ms"]);
    let grow = "(if (i32.eq (memory.grow (i32.const 60000)) (i32.const -1)) (then unreachable))";
    assert_says(&world.refusal(describing(grow)).await, &["describe", "out-of-memory"]);
    let deep = WatComponent { describe: "(drop (call $deep))", core: DEEP, ..WatComponent::default() };
    assert_says(&world.refusal(deep.bytes()).await, &["describe", "stack-overflow"]);
}

const DEEP: &str = "(func $deep (result i32) (i32.add (call $deep) (i32.const 1)))";

#[tokio::test(flavor = "multi_thread")]
async fn names_that_cannot_be_used_are_refused() {
    let world = world().await;
    let named = |names: &[&'static str]| WatComponent { names: names.to_vec(), ..WatComponent::default() }.bytes();
    assert_says(&world.refusal(named(&["one", "two", "one"])).await, &["`one`", "twice"]);
    assert_says(&world.refusal(named(&[])).await, &["1 to 256", "0"]);
    let long: &'static str = "n".repeat(129).leak();
    for name in ["", "a b", "a/b", "ü", "a\0b", long] {
        assert_says(&world.refusal(named(&[name])).await, &["1 to 128 letters"]);
    }
    assert!(world.upload(named(&["A.b_c-9"])).await.fresh);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_bytes_are_stored_once() {
    let world = world().await;
    let bytes = component("deedbox_test_guests.wasm");
    let first = world.upload(bytes.clone()).await;
    let second = world.upload(bytes).await;
    assert_eq!((first.fresh, second.fresh), (true, false));
    assert_eq!(first.digest, second.digest);
    assert_eq!(deedbox::store::module::list(world.node.store(), TENANT, None, 1_000).await.unwrap().len(), 1);
}

/// There are fewer places than there may be uploads: the others wait.
#[tokio::test(flavor = "multi_thread")]
async fn many_uploads_at_once_all_get_their_description() {
    let mut config = config();
    (config.host.describe_timeout_ms, config.host.max_instances) = (30_000, 1);
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    // Each stays in `describe` for a while, so that they overlap.
    let busy = "(local $n i32) (loop $on (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if $on (i32.lt_u (local.get $n) (i32.const 300000000))))";
    let uploads = names.map(|name| {
        let registry = world.node.registry().clone();
        let bytes = WatComponent { names: vec![name], describe: busy, ..WatComponent::default() }.bytes();
        tokio::spawn(async move { registry.upload(TENANT, bytes.into()).await })
    });
    for upload in uploads {
        assert!(upload.await.unwrap().unwrap().fresh);
    }
}

/// F-G03.
#[tokio::test(flavor = "multi_thread")]
async fn nesting_does_not_end_the_process() {
    let world = world().await;
    for depth in [101, 10_000] {
        let outer = format!(
            "{} (import \"deedbox:activity/deep@0.1.0\" (instance (alias outer 1 {depth} (type $deep))
             (export \"f\" (func (param \"a\" $deep)))))",
            bytes_of::list_types(depth)
        );
        let component = WatComponent { outer, ..WatComponent::default() }.bytes();
        assert_says(&world.refusal(component).await, &["the component"]);
    }
    let mut nested = component_header();
    for _ in 0..1_000 {
        nested = bytes_of::component_with(4, &nested);
    }
    assert_says(&world.refusal(nested).await, &["the component"]);
    assert!(world.upload(WatComponent::default().bytes()).await.fresh);
}

/// F-G11.
#[tokio::test(flavor = "multi_thread")]
async fn memory_and_tables_beyond_the_caps_are_refused_at_upload() {
    let world = world().await;
    let with = |core| WatComponent { core, ..WatComponent::default() }.bytes();
    assert_says(&world.refusal(with("(table 20001 funcref)")).await, &["table", "20001", "20000"]);
    let memory = WatComponent::default().text().replace("\"memory\") 4)", "\"memory\") 8193)");
    let (asked, most) = ((8193 << 16).to_string(), (512 << 20).to_string());
    assert_says(&world.refusal(wat::parse_str(memory).unwrap()).await, &["memory", &asked, &most]);
}

fn importing(name: &str, exports: &str) -> Vec<u8> {
    let outer = format!("(import \"{name}\" (instance {exports}))");
    WatComponent { outer, ..WatComponent::default() }.bytes()
}
