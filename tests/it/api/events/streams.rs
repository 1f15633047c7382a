//! Streams as connections: how many there may be, how they stay alive, how they end, and what a slow reader costs.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::super::serve;
use super::{Api, PLAIN, Reader, kinds, page, path, settled, waiting, with};
use crate::harness::config;
use crate::worker::until;

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_stream_begins_now_and_tells_what_was_asked_for() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    api.deploy("run-info", json!({})).await;
    let before = api.start("noop", json!(1)).await;
    // Now is behind all that is settled, on the whole database server.
    settled(&api).await;
    let mut all = Reader::open(&api.acme, "/v1/events", None).await;
    let mut ends = Reader::open(&api.acme, "/v1/events?activity=noop&kind=run.completed", None).await;
    let foreign = api.tenant("other").await;
    let mut others = Reader::open(&foreign, "/v1/events", None).await;
    // The opening of each says where it begins.
    for stream in [&mut all, &mut ends, &mut others] {
        stream.block().await.unwrap();
    }
    let after = api.start("run-info", json!(null)).await;
    let last = api.start("noop", json!(2)).await;
    let (first, second) = (all.one().await, all.one().await);
    assert_eq!((&first.body["run_id"], &second.body["run_id"]), (&json!(after), &json!(last)));
    api.work().await;
    let ended = [ends.one().await, ends.one().await];
    let mut runs: Vec<&str> = ended.iter().map(|event| event.body["run_id"].as_str().unwrap()).collect();
    runs.sort_unstable();
    let mut expected = [before.as_str(), last.as_str()];
    expected.sort_unstable();
    assert_eq!((kinds(&ended), runs.as_slice()), (vec!["run.completed"; 2], &expected[..]));

    let body = json!({ "module": api.upload(crate::api::GUESTS).await, "policy": {} });
    foreign.upload(crate::harness::component(crate::api::GUESTS)).await;
    foreign.put("/v1/activities/noop", &body).await.expect(201);
    let theirs = foreign.post("/v1/activities/noop/runs", &json!({ "input": 1 })).await.expect(201);
    assert_eq!(others.one().await.body["run_id"], theirs["run_id"], "they see nothing before their own");
}

/// Nobody is told twice of what nobody asked for: the place moves on with the heartbeat.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_stream_says_that_it_is_alive_and_where_it_is() {
    let api = with(|config| config.api.heartbeat_ms = 50).await;
    let run = waiting(&api).await;
    let mut stream = Reader::open(&api.acme, &path(&run), None).await;
    for kind in ["run.queued", "run.started", "run.waiting"] {
        assert_eq!(stream.one().await.kind, kind);
    }
    for _ in 0..3 {
        assert_eq!(stream.block().await.unwrap(), ": heartbeat");
    }
    let mut failures = Reader::open(&api.acme, "/v1/events?kind=run.failed", None).await;
    let opening = failures.block().await.unwrap();
    let first = opening.lines().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    api.start("listen", json!({ "asks": [] })).await;
    let moved = async {
        loop {
            let block = failures.block().await.unwrap();
            assert!(block.starts_with(": heartbeat"), "{block}");
            if let Some(id) = block.lines().find_map(|line| line.strip_prefix("id: ")) {
                return id.to_owned();
            }
        }
    };
    let moved = tokio::time::timeout(super::SOON, moved).await.unwrap();
    assert_ne!(moved, first);
    let rest = page(&api.acme, &format!("/v1/events?after={moved}")).await;
    assert_eq!(rest["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_are_limited_by_tenant_and_by_node() {
    let api = with(|config| {
        config.api.heartbeat_ms = 50;
        (config.api.max_streams, config.api.max_tenant_streams) = (3, 2);
    })
    .await;
    let (first, _second) =
        (Reader::open(&api.acme, "/v1/events", None).await, Reader::open(&api.acme, "/v1/events", None).await);
    let refused = api.acme.get("/v1/events").await;
    assert!(refused.message(429, "rate_limited").contains("limit"));
    assert!(refused.header("retry-after").parse::<u32>().unwrap() > 0);
    page(&api.acme, "/v1/events").await;
    let (other, third) = (api.tenant("other").await, api.tenant("third").await);
    let _other = Reader::open(&other, "/v1/events", None).await;
    third.get("/v1/events").await.refused(429, "rate_limited");
    drop(first);
    let is_free = async || {
        let answer = third.request(reqwest::Method::GET, "/v1/events").send().await.unwrap();
        answer.status() == 200
    };
    until("a place is free again", is_free).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_when_its_token_is_revoked() {
    let api = with(|config| config.api.heartbeat_ms = 50).await;
    let admin = api.admin().await;
    let made = admin.post("/v1/tenants/acme/tokens", &json!({})).await.expect(201);
    let client = api.acme.with_token(made["token"].as_str().unwrap());
    let run = waiting(&api).await;
    settled(&api).await;
    let of_run = Reader::open(&client, &path(&run), None).await;
    let of_tenant = Reader::open(&client, "/v1/events", None).await;
    let mut own = Reader::open(&api.acme, &path(&run), None).await;
    admin.delete(&format!("/v1/tenants/acme/tokens/{}", made["token_id"].as_str().unwrap())).await.expect(204);
    assert_eq!(of_run.rest().await.len(), 3);
    assert!(of_tenant.rest().await.is_empty());
    for _ in 0..3 {
        own.one().await;
    }
    assert_eq!(own.block().await.unwrap(), ": heartbeat", "another token's stream goes on");
    api.acme.post(&format!("/v1/runs/{run}/cancel"), &json!({})).await.expect(200);
    assert_eq!(kinds(&own.rest().await), ["run.cancelled"]);
}

/// What was seen on one node is gone on behind on another.
#[tokio::test(flavor = "multi_thread")]
async fn streams_end_with_their_node_and_are_taken_up_on_another() {
    let api = with(|_| {}).await;
    let run = waiting(&api).await;
    let mut stream = Reader::open(&api.acme, &path(&run), None).await;
    for _ in 0..3 {
        stream.one().await;
    }
    let last = stream.last.clone().unwrap();
    let of_tenant = Reader::open(&api.acme, "/v1/events", None).await;
    api.stop.cancel();
    assert!(stream.rest().await.is_empty() && of_tenant.rest().await.is_empty());

    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let origin = serve(&api.world.database, config(), stop).await;
    let other = super::Client::new(&origin, Some(crate::api::mint(&api.world, "acme").await));
    let stream = Reader::open(&other, &path(&run), Some(&last)).await;
    other.post(&format!("/v1/runs/{run}/cancel"), &json!({})).await.expect(200);
    assert_eq!(kinds(&stream.rest().await), ["run.cancelled"]);
}

/// The server reads on only when what it has sent was taken. Another reader, which takes all that there is, gives a server
/// that did not care the time to have read everything for the slow one.
#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_does_not_read_is_not_read_for() {
    const EVENTS: usize = 20_000;
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    api.start("noop", json!(1)).await;
    let many = format!(
        "insert into events (tenant, run_id, kind, data)
         select tenant, run_id, 'signal.received', json_build_object('name', repeat('x', 3000), 'sequence', n)::text
         from runs, generate_series(1, {EVENTS}) n"
    );
    api.world.database.execute(&many).await;
    let mut slow = Reader::open(&api.acme, "/v1/events?from=oldest", None).await;
    assert_eq!(slow.one().await.kind, PLAIN[0]);
    let mut quick = Reader::open(&api.acme, "/v1/events?from=oldest", None).await;
    assert_eq!(quick.one().await.kind, PLAIN[0]);
    for n in 1..=EVENTS {
        assert_eq!(quick.one().await.body["data"]["sequence"], json!(n), "none is lost");
    }
    api.world.database.execute("delete from events where kind = 'signal.received'").await;
    let last = api.start("noop", json!(2)).await;
    let mut taken = 0;
    loop {
        let event = slow.one().await;
        if event.kind == PLAIN[0] {
            assert_eq!(event.body["run_id"], json!(last));
            break;
        }
        taken += 1;
        assert_eq!(event.body["data"]["sequence"], json!(taken), "in their order");
    }
    assert!(taken < EVENTS, "the server had read {taken} events for a client that took none");
    assert_eq!(quick.one().await.body["run_id"], json!(last));
}
