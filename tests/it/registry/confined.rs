//! The compiling processes: what they may do, and that none is left behind.

use std::time::{Duration, Instant};

use super::limits::large;
use super::world;
use crate::api::client::Client;
use crate::cli::program::{Up, place};
use crate::harness::{TENANT, ps};
use crate::worker::until;

const SOON: Duration = Duration::from_secs(20);

/// The command lines of all compiling processes that bear a mark.
pub fn compilers(mark: &str) -> Vec<String> {
    ps::all().into_iter().filter(|line| line.contains(" compile --parent=") && line.contains(mark)).collect()
}

pub async fn soon_none(mark: &str) {
    until(&format!("no compiler with {mark}"), async || compilers(mark).is_empty()).await;
}

/// Waits until a compiler with one of the marks is there; gives its process id.
pub async fn soon_one(marks: &[String]) -> u32 {
    let give_up = Instant::now() + SOON;
    loop {
        if let Some(line) = marks.iter().flat_map(|mark| compilers(mark)).next() {
            return line.split_whitespace().next().unwrap().parse().unwrap();
        }
        assert!(Instant::now() < give_up, "no compiler with {marks:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_nobody_waits_for_leaves_no_process() {
    let world = world().await;
    let bomb = large(10_011, 0);
    let mark = format!("--bytes={} ", bomb.len());
    let registry = world.node.registry().clone();
    let upload = tokio::spawn(async move { registry.upload(TENANT, bomb.into()).await });
    soon_one(std::slice::from_ref(&mark)).await;
    upload.abort();
    soon_none(&mark).await;
    let modules = deedbox::store::module::list(world.node.store(), TENANT, None, 10).await.unwrap();
    assert!(modules.is_empty());
}

/// What the system itself says of it.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_compiling_process_is_confined() {
    let world = world().await;
    let bomb = large(10_012, 0);
    let mark = format!("--bytes={} ", bomb.len());
    let registry = world.node.registry().clone();
    let upload = tokio::spawn(async move { registry.upload(TENANT, bomb.into()).await });
    let id = soon_one(std::slice::from_ref(&mark)).await;
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{id}/{name}"));
    // The last limit that it sets before it reads.
    until("it is confined", async || row(&read("limits").unwrap(), "Max open files") == ["3", "3"]).await;
    let limits = read("limits").unwrap();
    assert_eq!(row(&limits, "Max core file size"), ["0", "0"]);
    assert_eq!(row(&limits, "Max file size"), ["0", "0"]);
    assert_eq!(row(&limits, "Max cpu time"), ["60", "65"]);
    assert_eq!(row(&limits, "Max data size"), [(2_u64 << 30).to_string(), (2_u64 << 30).to_string()]);
    let stat = read("stat").unwrap();
    let (_, numbers) = stat.rsplit_once(") ").unwrap();
    let nice: i32 = numbers.split(' ').nth(16).unwrap().parse().unwrap();
    assert!(nice >= 5, "{stat}");
    // Readable for the superuser alone, because the process may not be looked into.
    match std::fs::read(format!("/proc/{id}/environ")) {
        Ok(environment) => assert_eq!(environment, b"RAYON_NUM_THREADS=2\0"),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
    upload.abort();
    soon_none(&mark).await;
}

/// The soft and the hard limit of this name.
#[cfg(target_os = "linux")]
fn row(limits: &str, name: &str) -> Vec<String> {
    let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().take(2).map(str::to_owned).collect()
}

/// However a node ends, its compilers end with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_ends_leaves_no_compiler() {
    for signal in ["KILL", "TERM"] {
        let place = place();
        let up = Up::start(&place.path().join("d")).await;
        let mark = format!("--parent={} ", up.running.id());
        let client = Client::new(&up.address, Some(up.token.clone()));
        let request = client.request(reqwest::Method::POST, "/v1/modules").header("content-type", "application/wasm");
        let upload = tokio::spawn(request.body(large(10_013, 0)).send());
        soon_one(std::slice::from_ref(&mark)).await;
        up.running.signal(signal).await;
        let ended = up.running.end().await;
        assert_eq!(ended.code, (signal == "TERM").then_some(0), "{ended:?}");
        soon_none(&mark).await;
        // Cut, or told that the node shuts down.
        assert!(!upload.await.unwrap().is_ok_and(|answer| answer.status().is_success()));
    }
}
