//! Proxies that the environment names are not used: they would see what is sent, and connect to what they like.

use serde_json::json;

use super::capture::Canary;
use super::post;
use crate::harness::World;
use crate::harness::process::Process;
use crate::worker::until;

const SETTINGS: &str = "worker = { lease_ms = 10000, poll_ms = 100, grace_ms = 10000 }";

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_asks_no_proxy_that_its_environment_names() {
    let (world, canary) = (World::keyed().await, Canary::new());
    let proxy = format!("http://127.0.0.1:{}", canary.port());
    let named = format!("http://localhost:{}", world.books.address.port());
    let tls = world.origin().replace("http://", "https://");
    let policy = json!({
        "egress": { "allow": [world.origin(), named, tls], "private_addresses": ["127.0.0.1", "::1"] },
        "providers": { &named: "stripe", &tls: "stripe" },
        "retry": { "max_attempts": 1 },
    });
    world.deploy("send", "stripe", policy).await;
    let names = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "ftp_proxy"];
    let mut environment: Vec<_> = names.iter().map(|name| (*name, proxy.as_str())).collect();
    environment.extend([("no_proxy", ""), ("NO_PROXY", "")]);
    let worker = Process::start_in(&world, "one", None, SETTINGS, &environment).await;
    let calls = [&world.origin(), &named, &tls].map(|origin| post(&format!("{origin}/v1/charges")));
    let run = world.start("send", json!({ "calls": calls })).await;
    until("the run has ended", async || world.run(run).await.state == "completed").await;
    worker.drain().await;
    let output = world.output(run).await;
    assert_eq!([&output[0]["status"], &output[1]["status"]], [201, 201], "{output}");
    assert!(output[2]["error"].is_string(), "it speaks no TLS: {output}");
    assert_eq!(world.books.applied().await.unwrap().len(), 2);
    canary.untouched();
}
