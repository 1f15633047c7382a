//! What an SDK hands on to the host, and where the host has the last word.

use std::time::Duration;

use deedbox_books::{Behaviour, Options};
use serde_json::json;

use crate::harness::{World, config};

/// F-J07: the SDKs' own tests show that each hands its caller's time-out on; this is what the host makes of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_out_is_the_callers_and_at_most_the_hosts() {
    let (asked, most, busy) = (Duration::from_millis(300), Duration::from_secs(3), Duration::from_secs(5));
    let mut config = config();
    config.gateway.default_send_ms = 1_000;
    config.gateway.max_send_ms = most.as_millis() as u64;
    let world = World::with(Options { keyless: false, convention: None }, config).await;
    world.deploy("send", "stripe", json!({ "retry": { "max_attempts": 1 } })).await;
    for (timeout, from, to) in [(asked, asked, most), (Duration::from_secs(3_600), most, most + busy)] {
        world.script(&[Behaviour::HoldBeforeApply]).await;
        let call = json!({ "method": "POST", "url": world.charges(), "timeout_ms": timeout.as_millis() as u64 });
        let run = world.start("send", json!({ "calls": [call] })).await;
        world.work().await;
        assert_eq!(world.output(run).await[0]["error"], "timed-out");
        let send = &world.sends(run).await[0];
        let took = (send.ended_at.unwrap() - send.started_at).to_std().unwrap();
        assert!((from..to).contains(&took), "asked for {timeout:?}, took {took:?}");
    }
}
