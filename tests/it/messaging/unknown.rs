//! Messages of which nobody knows whether the server keeps them: sent again under the same id as long as the server
//! surely remembers it, and never after that.

use deedbox::probe::{self, Point};
use serde_json::json;

use super::*;
use crate::harness::freeze::Victim;
use crate::harness::severed::Severed;
use crate::harness::{node, work};

/// F-B01, R-E12, R-L02, R-L24: the worker dies between the acknowledgement and its record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_whose_worker_died_is_published_again_under_its_id_and_kept_once() {
    let (world, server) = (world().await, orders().await);
    deploy(&world, &server.url(), json!({})).await;
    let mut watch = Watch::start(&server, "orders.>").await;
    let run = world.start("publish", json!({ "messages": [message("paid 42")] })).await;
    let first = Victim::start(&world, "one", config(), Some(Point::AfterResponse));
    first.held().await;
    first.kill().await;
    world.expire_leases().await;
    let second = node(&world.database, "two", config(), probe::none()).await;
    work(&second).await;
    let output = world.output(run).await;
    assert_eq!((&output[0]["duplicate"], &output[0]["sequence"]), (&json!(true), &json!(1)), "{output}");
    assert_eq!(results(&world, run).await, ["unknown", "answered"]);
    let kept = server.kept("ORDERS").await;
    assert_eq!((kept.len(), &kept[0].id), (1, &entries(&world).await[0].wire_key));
    let id = kept[0].id.clone().unwrap();
    assert_eq!(watch.ids().await, [id.clone(), id]);
}

/// F-B10: the acknowledgement is lost on its way.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_acknowledgement_is_an_unknown_outcome_and_the_next_call_tells() {
    let (world, server) = (world().await, orders().await);
    let way = Severed::start(server.address(), "HPUB orders.", 1).await;
    deploy(&world, &format!("nats://{}", way.address), json!({})).await;
    let mut watch = Watch::start(&server, "orders.>").await;
    let messages = [named("a", "a"), named("a", "a")];
    let run = world.start("publish", json!({ "messages": messages })).await;
    world.work().await;
    let output = world.output(run).await;
    assert_eq!((&output[0]["error"], &output[1]["duplicate"]), (&json!("connection-lost"), &json!(true)), "{output}");
    assert_eq!(results(&world, run).await, ["unknown", "answered"]);
    assert_eq!((server.kept("ORDERS").await.len(), watch.ids().await.len()), (1, 2));
}

/// R-L02. A stream that remembers ids for two seconds, and a worker that comes back after five.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_not_sent_again_once_the_server_may_have_forgotten_its_id() {
    let mut short = config();
    (short.gateway.default_send_ms, short.gateway.max_send_ms) = (1_000, 1_000);
    let (world, server) = (world_with(short.clone()).await, Nats::start().await);
    server.stream("ORDERS", Duration::from_secs(2)).await;
    deploy(&world, &server.url(), json!({})).await;
    let mut watch = Watch::start(&server, "orders.>").await;
    let run = world.start("publish", json!({ "messages": [message("paid 42")] })).await;
    let first = Victim::start(&world, "one", short.clone(), Some(Point::AfterResponse));
    first.held().await;
    first.kill().await;
    world.database.advance_seconds(5).await;
    world.expire_leases().await;
    work(&node(&world.database, "two", short, probe::none()).await).await;
    let found = world.run(run).await;
    assert_eq!((found.state.as_str(), found.due_at), ("waiting", None));
    assert!(found.waiting_effect.is_some());
    assert_eq!(entries(&world).await[0].state, "escaped");
    assert_eq!(watch.ids().await.len(), 1);
}

/// The margin is the longest send: an id that is remembered for less is worth nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_forgets_sooner_than_a_send_may_last_is_not_relied_upon() {
    let (world, server) = (world().await, Nats::start().await);
    server.stream("ORDERS", Duration::from_secs(2)).await;
    let way = Severed::start(server.address(), "HPUB orders.", 1).await;
    deploy(&world, &format!("nats://{}", way.address), json!({})).await;
    let run = world.start("publish", json!({ "messages": [message("a")] })).await;
    world.work().await;
    assert_eq!(world.run(run).await.state, "waiting");
    assert_eq!(world.sends(run).await[0].state, "escaped");
    assert_eq!(server.kept("ORDERS").await.len(), 1);
}

/// F-C01: woken when its lease is long over, a worker that was about to publish does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_whose_lease_is_over_publishes_nothing() {
    let (world, server) = (world().await, orders().await);
    deploy(&world, &server.url(), json!({})).await;
    let mut watch = Watch::start(&server, "orders.>").await;
    let run = world.start("publish", json!({ "messages": [message("a")] })).await;
    let first = Victim::start(&world, "one", config(), Some(Point::AfterClaim));
    first.held().await;
    first.freeze().await;
    world.expire_leases().await;
    work(&node(&world.database, "two", config(), probe::none()).await).await;
    assert_eq!(world.output(run).await[0]["source"], "sent");
    first.wake().await;
    assert_eq!((watch.ids().await.len(), server.kept("ORDERS").await.len()), (1, 1));
}
