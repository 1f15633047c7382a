//! Messages, from the guest to the stream of a real server: claims, ids, replays, refusals.

use std::time::Duration;

use async_nats::jetstream::{self, stream};
use deedbox::config::Config;
use deedbox::store::ledger;
use deedbox_books::Options;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::nats::{Nats, Watch, stream_config};
use crate::harness::{TENANT, World, config, work_once};

mod access;
mod unknown;

const TWO_MINUTES: Duration = Duration::from_secs(120);

async fn world() -> World {
    world_with(config()).await
}

async fn world_with(config: Config) -> World {
    World::with(Options { keyless: false, convention: None }, config).await
}

/// A server with the stream `ORDERS`, which takes `orders.>`.
async fn orders() -> Nats {
    let server = Nats::start().await;
    server.stream("ORDERS", TWO_MINUTES).await;
    server
}

async fn deploy(world: &World, server: &str, policy: Value) {
    let mut whole = json!({ "messaging": { "server": server } });
    policy.as_object().unwrap().iter().for_each(|(name, value)| whole[name] = value.clone());
    world.deploy("publish", "stripe", whole).await;
}

fn message(payload: &str) -> Value {
    json!({ "subject": "orders.paid", "payload": payload })
}

fn named(payload: &str, name: &str) -> Value {
    json!({ "subject": "orders.paid", "payload": payload, "identity": { "named": name } })
}

async fn entries(world: &World) -> Vec<ledger::Entry> {
    let all = ledger::Filter { limit: 100, ..ledger::Filter::default() };
    ledger::list(world.node.store(), TENANT, &all).await.unwrap()
}

async fn results(world: &World, run: Uuid) -> Vec<String> {
    world.sends(run).await.into_iter().map(|send| send.result.unwrap_or_else(|| "-".to_owned())).collect()
}

/// R-D08, R-E12, R-L24.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_is_published_once_under_an_id_of_the_hosts_and_recorded() {
    let (world, server) = (world().await, orders().await);
    deploy(&world, &server.url(), json!({})).await;
    let run = world.start("publish", json!({ "messages": [message("paid 42")] })).await;
    world.work().await;
    let output = world.output(run).await;
    let kept = server.kept("ORDERS").await;
    assert_eq!((kept.len(), kept[0].payload.as_str(), kept[0].subject.as_str()), (1, "paid 42", "orders.paid"));
    let entry = &entries(&world).await[0];
    assert_eq!((entry.provider.as_str(), entry.method.as_str()), ("nats", "PUBLISH"));
    assert_eq!(entry.url, format!("{}/orders.paid", server.url()));
    assert_eq!((entry.state.as_str(), entry.status), ("completed", Some(200)));
    assert!(entry.wire_key.is_some() && kept[0].id == entry.wire_key, "{kept:?}");
    let effect = output[0]["effect_id"].as_str().unwrap();
    let told = json!([{ "stream": "ORDERS", "sequence": 1, "duplicate": false, "message_id": entry.wire_key,
        "source": "sent", "effect_id": effect }]);
    assert_eq!((output.clone(), effect.len()), (told, 64));
}

/// R-L02. The server is not even there any more.
#[tokio::test(flavor = "multi_thread")]
async fn a_replay_sends_nothing_and_needs_no_server() {
    let (world, mut server) = (world().await, orders().await);
    deploy(&world, &server.url(), json!({})).await;
    let mut watch = Watch::start(&server, "orders.>").await;
    let messages = [message("a"), message("a"), named("b", "b")];
    let run = world.start("publish", json!({ "messages": messages, "then": ["fail", "fail", "return"] })).await;
    work_once(&world.node).await;
    work_once(&world.node).await;
    assert_eq!(watch.ids().await.len(), 3);
    server.stop();
    // Another node has asked nobody how long ids are remembered.
    let second = world.second("two", deedbox::probe::none()).await;
    work_once(&second).await;
    let output = world.output(run).await;
    let told: Vec<_> = output.as_array().unwrap().iter().map(|m| (&m["source"], &m["sequence"])).collect();
    let replayed = json!("replayed");
    assert_eq!(told, [(&replayed, &json!(1)), (&replayed, &json!(2)), (&replayed, &json!(3))]);
    server.start_again().await;
    let ids: Vec<_> = server.kept("ORDERS").await.into_iter().map(|kept| json!(kept.id)).collect();
    let told: Vec<_> = output.as_array().unwrap().iter().map(|m| m["message_id"].clone()).collect();
    assert_eq!(told, ids);
}

/// R-D08: as with HTTP, a key of the run goes out as it is.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_the_guest_sets_is_kept_replaced_or_trusted_by_the_rules_for_keys() {
    let (world, server) = (world().await, orders().await);
    let with_id = |id: &str| json!({ "subject": "orders.paid", "payload": id, "headers": [["Nats-Msg-Id", id]] });
    let messages = [with_id("{run-key}"), with_id("{subkey:email}"), with_id("order-7")];
    let ids = async || -> Vec<_> {
        server.kept("ORDERS").await.into_iter().map(|kept| (kept.payload, kept.id.unwrap())).collect()
    };
    deploy(&world, &server.url(), json!({})).await;
    let run = world.start("publish", json!({ "messages": messages })).await;
    world.work().await;
    let (run_key, output) = (deedbox::key::run_key(TENANT, run), world.output(run).await);
    let subkey = deedbox::key::subkey(&run_key, "email").unwrap().text();
    let kept = ids().await;
    assert_eq!((&kept[0].1, &kept[1].1), (&run_key.text(), &subkey));
    assert_eq!(output[1]["message_id"], subkey);
    assert_ne!(kept[2].1, "order-7");

    deploy(&world, &server.url(), json!({ "guest_keys": "trust" })).await;
    let run = world.start("publish", json!({ "messages": [with_id("order-7")], "then": ["trap", "return"] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["source"], "replayed");
    assert_eq!(entries(&world).await[3].identity, "order-7");
    assert_ne!(ids().await[3].1, "order-7", "the server gets a key derived from it");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_that_name_one_business_operation_share_one_message() {
    let (world, server) = (world().await, orders().await);
    deploy(&world, &server.url(), json!({})).await;
    let paid = json!({ "subject": "orders.paid", "payload": "42", "identity": { "business": ["paid", "42"] } });
    let mut told = Vec::new();
    for _ in 0..2 {
        let run = world.start("publish", json!({ "messages": [paid] })).await;
        world.work().await;
        told.push(world.output(run).await[0].clone());
    }
    assert_eq!((&told[0]["source"], &told[1]["source"]), (&json!("sent"), &json!("replayed")));
    assert_eq!(told[0]["message_id"], told[1]["message_id"]);
    assert_eq!(server.kept("ORDERS").await.len(), 1);
}

/// F-B05.
#[tokio::test(flavor = "multi_thread")]
async fn another_message_under_a_claimed_identity_is_refused_and_not_sent() {
    let (world, server) = (world().await, orders().await);
    deploy(&world, &server.url(), json!({})).await;
    let messages = [named("attempt {attempt}", "volatile")];
    let run = world.start("publish", json!({ "messages": messages, "then": ["fail", "return"] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["error"], "effect-mismatch");
    assert_eq!(server.kept("ORDERS").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subject_that_no_stream_takes_is_refused_before_anything_is_claimed_or_sent() {
    let (world, server) = (world().await, orders().await);
    deploy(&world, &server.url(), json!({})).await;
    let mut watch = Watch::start(&server, ">").await;
    let messages = [json!({ "subject": "invoices.paid" }), json!({ "subject": "orders.*" })];
    let run = world.start("publish", json!({ "messages": messages })).await;
    world.work().await;
    let output = world.output(run).await;
    assert!(output.as_array().unwrap().iter().all(|m| m["error"] == "invalid-request"), "{output}");
    assert!(output[0]["message"].as_str().unwrap().contains("no stream takes this subject"), "{output}");
    assert!(world.sends(run).await.is_empty());
    assert!(watch.ids().await.iter().all(String::is_empty), "only questions were asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_above_a_limit_is_refused_before_anything_is_claimed() {
    let mut settings = config();
    settings.gateway.max_request_bytes = 2 << 20;
    let (world, server) = (world_with(settings).await, orders().await);
    deploy(&world, &server.url(), json!({})).await;
    let of_size = |fill: usize| json!({ "subject": "orders.paid", "fill": fill });
    let messages = [of_size(3 << 20), of_size(3 << 19), of_size(1 << 19)];
    let run = world.start("publish", json!({ "messages": messages })).await;
    world.work().await;
    let output = world.output(run).await;
    assert!(output[0]["message"].as_str().unwrap().contains("the limit is 2097152"), "{output}");
    assert!(output[1]["message"].as_str().unwrap().contains("the server's limit is 1048576"), "{output}");
    assert_eq!(output[2]["stream"], "ORDERS");
    assert_eq!(world.sends(run).await.len(), 1);
}

/// The server says that it kept nothing: the effect is free again, under its key.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_server_refuses_is_released_and_may_be_published_later() {
    let (world, server) = (world().await, Nats::start().await);
    let context = jetstream::new(server.client().await);
    let small = stream::Config { max_messages: 1, discard: stream::DiscardPolicy::New, ..stream_config("ORDERS") };
    let full = context.create_stream(small).await.unwrap();
    deploy(&world, &server.url(), json!({ "retry": { "max_attempts": 2 } })).await;
    context.publish("orders.first", "x".into()).await.unwrap().await.unwrap();
    let run = world.start("publish", json!({ "messages": [message("y")], "fail_on_error": true })).await;
    work_once(&world.node).await;
    let released = &entries(&world).await[0];
    assert_eq!(
        (released.state.as_str(), results(&world, run).await.as_slice()),
        ("released", &["not-applied".into()][..])
    );
    assert_eq!(world.sends(run).await[0].status, Some(503), "as the server put it");
    assert_eq!(world.outcomes(run).await, ["failed"]);
    full.purge().await.unwrap();
    world.work().await;
    assert_eq!(world.output(run).await[0]["source"], "sent");
    let kept = server.kept("ORDERS").await;
    assert_eq!((kept.len(), &kept[0].id), (1, &released.wire_key));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_leaves_the_effect_released_and_the_next_attempt_publishes() {
    let (world, mut server) = (world().await, orders().await);
    deploy(&world, &server.url(), json!({ "retry": { "max_attempts": 2 } })).await;
    // The server has said how long it remembers ids.
    world.start("publish", json!({ "messages": [message("before")] })).await;
    world.work().await;
    server.stop();
    let run = world.start("publish", json!({ "messages": [message("down")], "fail_on_error": true })).await;
    work_once(&world.node).await;
    assert_eq!(
        (world.sends(run).await[0].state.as_str(), results(&world, run).await.as_slice()),
        ("released", &["not-applied".into()][..])
    );
    server.start_again().await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["duplicate"], false);
    assert_eq!(results(&world, run).await, ["not-applied", "answered"]);
    assert_eq!(server.kept("ORDERS").await.len(), 2);
}

/// Nobody knows then how long an id would be good for.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_never_there_is_unreachable_and_nothing_is_claimed() {
    let world = world().await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    deploy(&world, &format!("nats://{nobody}"), json!({})).await;
    let run = world.start("publish", json!({ "messages": [message("a")] })).await;
    world.work().await;
    assert_eq!(world.output(run).await[0]["error"], "unreachable");
    assert!(world.sends(run).await.is_empty());
}
