//! Components that were made to do harm: each is refused, or taken, within its limits, and the node serves the next one.

use std::time::{Duration, Instant};

use deedbox::registry::Error;
use deedbox_books::Options;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::bytes_of::{
    MODULE, component_header, component_with, computing, jumping, leb128, list_types, locals, module, nesting, section,
};
use super::limits::large;
use crate::api::client::{Client, whole_list};
use crate::cli::program::{Up, place};
use crate::harness::{TENANT, World, config};
use crate::wat_component::WatComponent;

/// Far more than two seconds of processor time take on a busy machine.
const IN_TIME: Duration = Duration::from_secs(60);

async fn strict() -> World {
    let mut config = config();
    config.host.describe_timeout_ms = 2_000;
    config.host.max_compile_cpu_ms = 2_000;
    config.host.max_compile_bytes = 512 << 20;
    config.host.max_code_bytes = 32 << 20;
    World::with(Options { keyless: false, convention: None }, config).await
}

impl World {
    /// Whether a component is taken; the words of its refusal if it is not.
    async fn judged(&self, what: &str, bytes: Vec<u8>) -> Result<(), String> {
        let began = Instant::now();
        let uploaded = self.node.registry().upload(TENANT, bytes.into()).await;
        assert!(began.elapsed() < IN_TIME, "{what} took {:?}", began.elapsed());
        match uploaded {
            Ok(_) => Ok(()),
            Err(Error::Invalid(words)) => Err(words),
            Err(other) => panic!("{what}: {other:?}"),
        }
    }
}

/// A component that is good, with a core module beside it that nobody uses.
fn beside(module: &[u8]) -> Vec<u8> {
    [WatComponent::default().bytes(), section(MODULE, module)].concat()
}

/// What is invalid whatever the limits.
fn invalid() -> Vec<(&'static str, Vec<u8>)> {
    let huge = leb128(u32::MAX as usize);
    let lists = |depth| {
        let text = format!("(component {})", list_types(depth));
        wat::parse_str(text).unwrap()
    };
    let nested = (0..1_000).fold(component_header(), |inner, _| component_with(4, &inner));
    vec![
        ("a section longer than the file", [component_header(), vec![1], huge.clone()].concat()),
        ("a section one byte too long", [component_header(), vec![0], leb128(6), b"\x04name".to_vec()].concat()),
        ("a section one byte too short", [component_header(), vec![0], leb128(3), b"\x04name".to_vec()].concat()),
        ("a length that does not end", [component_header(), vec![1], vec![0xff; 12]].concat()),
        ("four thousand million types", component_with(7, &huge)),
        ("four thousand million instances", component_with(5, &huge)),
        ("four thousand million imports", component_with(10, &huge)),
        ("a module of as many functions", beside(&[&b"\0asm\x01\0\0\0"[..], &section(3, &huge)].concat())),
        ("one function too many", beside(&module(1_000_001, &[0, 0x20, 0, 0x0b], 0))),
        ("one local too many", beside(&module(1, &locals(50_001), 0))),
        ("as many locals as can be said", beside(&module(1, &locals(u32::MAX as usize), 0))),
        ("a function larger than may be", beside(&module(1, &computing(8_000_000), 0))),
        ("lists in lists, 101 deep", lists(101)),
        ("lists in lists, 10,000 deep", lists(10_000)),
        ("components in components, 1,000 deep", nested),
        ("a section that is not known", component_with(99, &[0; 100])),
    ]
}

/// What is valid, and takes as long and as much as it can.
fn heavy() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a million functions", beside(&module(1_000_000, &[0, 0x20, 0, 0x0b], 0))),
        ("a function of seven megabytes", beside(&module(1, &computing(7_000_000), 0))),
        ("a jump to a million places", beside(&module(1, &jumping(1_000_000), 0))),
        ("a hundred thousand blocks in blocks", beside(&module(1, &nesting(100_000), 0))),
        ("fifty thousand locals, a hundred times", beside(&module(100, &locals(49_999), 0))),
        ("ten megabytes of code", large(10_000, 0)),
        ("forty megabytes of data", large(1, 40 << 20)),
    ]
}

/// F-G02, F-G03.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_invalid_is_refused_in_time() {
    let world = strict().await;
    for (what, bytes) in invalid() {
        let words = world.judged(what, bytes).await.expect_err(what);
        assert!(!words.contains("host.max_"), "{what}: no limit was needed: {words}");
    }
    world.none_is_listed_and_a_good_one_is_taken().await;
}

/// F-G03. Whether the limits are reached is the compiler's affair; that they hold is ours.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_heavy_is_taken_or_refused_by_the_name_of_a_limit() {
    let world = strict().await;
    let mut refused = 0;
    for (what, bytes) in heavy() {
        if let Err(words) = world.judged(what, bytes).await {
            let known = ["host.max_", "nested too deeply", "the component is not valid", "signal"];
            assert!(known.iter().any(|known| words.contains(known)), "{what}: {words}");
            refused += 1;
        }
    }
    assert!(refused > 0, "none was heavy enough to reach a limit");
    assert!(world.judged("a good one", WatComponent::default().bytes()).await.is_ok());
}

/// F-G02. Wherever it is cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_component_is_refused_wherever_it_ends() {
    let world = strict().await;
    let whole = WatComponent::default().bytes();
    for end in (0..whole.len()).step_by(whole.len() / 40) {
        let what = format!("{end} of {} bytes", whole.len());
        world.judged(&what, whole[..end].to_vec()).await.expect_err(&what);
    }
    world.none_is_listed_and_a_good_one_is_taken().await;
}

/// F-G02.
#[tokio::test(flavor = "multi_thread")]
async fn random_bytes_and_damaged_components_do_no_harm() {
    let world = strict().await;
    let seed = crate::harness::seed();
    println!("DEEDBOX_SEED={seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    for number in 0..10 {
        let random: Vec<u8> = (0..4096).map(|_| chance.random()).collect();
        let what = format!("random bytes, number {number} of seed {seed}");
        world.judged(&what, [component_header(), random].concat()).await.expect_err(&what);
    }
    world.none_is_listed_and_a_good_one_is_taken().await;
    for number in 0..20 {
        let mut damaged = WatComponent::default().bytes();
        let at = chance.random_range(8..damaged.len());
        damaged[at] ^= 1 << chance.random_range(0..8);
        // A flip in a text or a number leaves it good.
        let _ = world.judged(&format!("flip {number} of seed {seed}"), damaged).await;
    }
}

/// F-G02.
#[tokio::test(flavor = "multi_thread")]
async fn a_custom_section_of_many_megabytes_is_only_bytes() {
    let world = strict().await;
    let custom = section(0, &[&b"\x04name"[..], &vec![0xff; 20 << 20]].concat());
    let bytes = [WatComponent::default().bytes(), custom].concat();
    assert_eq!(world.judged("a custom section", bytes).await, Ok(()));
}

impl World {
    async fn none_is_listed_and_a_good_one_is_taken(&self) {
        assert!(deedbox::store::module::list(self.node.store(), TENANT, None, 10).await.unwrap().is_empty());
        assert_eq!(self.judged("a good one", WatComponent::default().bytes()).await, Ok(()));
    }
}

/// F-G02, F-G03. A real node, over HTTP: it lives, it does not swell, and it takes the next good one.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_node_outlives_them_all_and_does_not_swell() {
    let place = place();
    let settings = "[host]\nmax_compile_cpu_ms = 2000\nmax_compile_bytes = 536870912\nmax_code_bytes = 33554432\n";
    let mut up = Up::start_with(&place.path().join("d"), "127.0.0.1:0", settings).await;
    let client = Client::new(&up.address, Some(up.token.clone()));
    client.upload(WatComponent { names: vec!["first"], ..WatComponent::default() }.bytes()).await.expect(201);
    let before = peak_memory(up.running.id());
    let mut taken = 1;
    for (what, bytes) in invalid().into_iter().chain(heavy()) {
        let answer = client.upload(bytes).await;
        match answer.status {
            201 => taken += 1,
            _ => assert!(!answer.message(400, "validation_error").is_empty(), "{what}"),
        }
    }
    assert!(!up.running.has_ended());
    let grown = peak_memory(up.running.id()) - before;
    // A body, its compiled code, and copies of both.
    assert!(grown < 512 << 20, "{grown} bytes");
    client.upload(WatComponent::default().bytes()).await.expect(201);
    assert_eq!(whole_list(&client.get("/v1/modules").await).len(), taken + 1);
    up.stop("TERM").await;
}

/// The most memory that a process ever had, in bytes.
#[cfg(target_os = "linux")]
fn peak_memory(id: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    kilobytes.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}
