//! What compiling a component may take. Whoever goes beyond it is told which limit that was, and takes no place from others.

use std::path::PathBuf;

use deedbox::config::Config;
use deedbox::probe;
use deedbox::registry::Error;
use deedbox_books::Options;

use super::assert_says;
use super::bytes_of::{MODULE, computing, module, section};
use super::confined::{compilers, soon_none};
use crate::harness::process::program;
use crate::harness::{TENANT, World, config, node};
use crate::wat_component::WatComponent;

async fn limited(change: impl FnOnce(&mut Config)) -> World {
    let mut config = config();
    change(&mut config);
    World::with(Options { keyless: false, convention: None }, config).await
}

fn good() -> Vec<u8> {
    // No other test compiles it, so it is in no cache.
    WatComponent { names: vec![uuid::Uuid::new_v4().to_string().leak()], ..WatComponent::default() }.bytes()
}

/// A component that is good but for its size: so many functions of a thousand bytes, and so much data.
pub fn large(functions: usize, data: usize) -> Vec<u8> {
    [good(), section(MODULE, &module(functions, &computing(1_000), data))].concat()
}

/// F-G03.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_compiles_for_too_long_is_refused_by_name_and_leaves_no_process() {
    let world = limited(|config| config.host.max_compile_ms = 300).await;
    let large = large(10_021, 0);
    let mark = format!("--bytes={} ", large.len());
    assert_says(&world.refusal(large).await, &["took longer than", "host.max_compile_ms", "300 ms"]);
    assert_eq!(compilers(&mark), Vec::<String>::new());
    let patient = node(&world.database, "patient", config(), probe::none()).await;
    assert!(patient.registry().upload(TENANT, good().into()).await.unwrap().fresh);
}

/// F-G03.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_takes_too_much_processor_time_is_refused_by_name() {
    let world = limited(|config| config.host.max_compile_cpu_ms = 1_000).await;
    let words = world.refusal(large(10_000, 0)).await;
    assert_says(&words, &["more processor time than", "host.max_compile_cpu_ms", "1000 ms"]);
    assert!(world.upload(good()).await.fresh);
}

/// F-G03.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_that_takes_too_much_memory_is_refused_by_name() {
    let world = limited(|config| config.host.max_compile_bytes = 64 << 20).await;
    let words = world.refusal(large(10, 48 << 20)).await;
    assert_says(&words, &["more memory than", "host.max_compile_bytes", "67108864 bytes"]);
    assert!(world.upload(good()).await.fresh);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_component_with_too_much_code_is_refused_by_name() {
    let world = limited(|config| config.host.max_code_bytes = 1 << 20).await;
    let words = world.refusal(large(10, 1 << 20)).await;
    assert_says(&words, &["more code than", "host.max_code_bytes", "1048576 bytes"]);
    assert!(world.upload(good()).await.fresh);
}

/// Without its program a node refuses to compile; it never does so itself.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_a_compiler_says_so() {
    for compiler in [PathBuf::from("/nowhere/deedbox"), program("deedbox-books")] {
        let world = limited(|config| config.host.compiler = Some(compiler)).await;
        let error = world.node.registry().upload(TENANT, good().into()).await.unwrap_err();
        assert!(matches!(error, Error::Internal(_)), "{error:?}");
        assert_says(&error.to_string(), &["host.compiler", "of this very version"]);
    }
}

/// One who uploads what compiles for long leaves a place to others.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_of_one_tenant_do_not_keep_another_waiting() {
    let world = limited(|config| config.host.max_compilations = 2).await;
    deedbox::store::tenant::create(world.node.store(), "quiet").await.unwrap();
    let registry = world.node.registry().clone();
    let bombs = [10_001, 10_002, 10_003].map(|functions| large(functions, 0));
    let marks = bombs.clone().map(|bomb| format!("--bytes={} ", bomb.len()));
    let noisy = bombs.map(|bomb| {
        let registry = registry.clone();
        tokio::spawn(async move { registry.upload(TENANT, bomb.into()).await })
    });
    super::confined::soon_one(&marks).await;
    assert!(registry.upload("quiet", good().into()).await.unwrap().fresh);
    let under_way: usize = marks.iter().map(|mark| compilers(mark).len()).sum();
    assert_eq!(under_way, 1, "the other was served while the first was compiled");
    for upload in &noisy {
        upload.abort();
    }
    for mark in &marks {
        soon_none(mark).await;
    }
}
