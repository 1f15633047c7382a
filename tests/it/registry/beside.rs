//! What a large upload does to everything else on its node.

use std::time::{Duration, Instant};

use serde_json::json;

use super::limits::large;
use crate::api::client::{Client, whole_list};
use crate::cli::program::{Up, place};
use crate::harness::{component, tell};

/// How long the guests spin.
const SPUN_MS: u64 = 30_000;
const BEARABLE: Duration = Duration::from_millis(500);

/// F-F15. A component of 30 MB is compiled while as many guests compute as there are processors, and one more.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_upload_beside_computing_guests_holds_nobody_up() {
    let place = place();
    let settings = "[worker]\nlease_ms = 3000\n[host]\nmax_compile_ms = 300000\nmax_compile_cpu_ms = 120000\n";
    let up = Up::start_with(&place.path().join("d"), "127.0.0.1:0", settings).await;
    let client = Client::new(&up.address, Some(up.token.clone()));
    let runs = spinning(&client).await;
    // As in the components of languages with a runtime, most of it is data.
    let large = large(2_000, 28 << 20);
    assert!(large.len() > 30_000_000, "{}", large.len());
    let uploading = client.clone();
    let upload = tokio::spawn(async move { uploading.upload(large).await });
    let mut took = Vec::new();
    while !upload.is_finished() || took.len() < 200 {
        let began = Instant::now();
        client.get("/healthz").await.expect(200);
        took.push(began.elapsed());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    upload.await.unwrap().expect(201);
    took.sort_unstable();
    let p99 = took[took.len() * 99 / 100];
    tell(&format!("health beside a large upload: {} asked, p99 {p99:?}, most {:?}", took.len(), took[took.len() - 1]));
    assert!(p99 < BEARABLE, "{p99:?}");
    for run in runs {
        let ended = client.get(&format!("/v1/runs/{run}?wait=60")).await.expect(200);
        assert_eq!(ended["failure"]["code"], "timed-out", "{ended}");
        let attempts = whole_list(&client.get(&format!("/v1/runs/{run}/attempts")).await);
        assert_eq!(attempts.len(), 1, "a lease was lost: {attempts:?}");
    }
    up.stop("TERM").await;
}

/// Runs that spin until their time is over.
async fn spinning(client: &Client) -> Vec<String> {
    let module = client.upload(component("deedbox_test_guests.wasm")).await.expect(201)["digest"].clone();
    let policy = json!({ "retry": { "max_attempts": 1 }, "timeouts": { "start_to_close": format!("{SPUN_MS}ms") } });
    client.put("/v1/activities/spin", &json!({ "module": module, "policy": policy })).await.expect(201);
    let mut runs = Vec::new();
    for _ in 0..=std::thread::available_parallelism().unwrap().get() {
        let run = client.post("/v1/activities/spin/runs", &json!({ "input": {} })).await.expect(201);
        runs.push(run["run_id"].as_str().unwrap().to_owned());
    }
    runs
}
