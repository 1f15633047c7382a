//! Sockets are linked, because default components of some languages name them, and denied.

use serde_json::json;

use super::{GUESTS, deploy, fetched, post, world};
use crate::harness::cell::logs;
use crate::harness::dns::{NameServer, Says};
use crate::harness::{component, config};
use crate::wat_component::WatComponent;

/// Tries one operation against a listener, and expects that it is denied, that the log says what to use instead, and that
/// nobody knocks.
async fn denied(operation: &str) {
    let world = world(|_| {}).await;
    world.deploy_from(GUESTS, "use-sockets", "stripe", json!({})).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let run = world.start("use-sockets", json!({ "operations": [operation, operation], "port": port })).await;
    world.work().await;
    assert_eq!(world.output(run).await, json!(["access-denied", "access-denied"]));
    let printed: String = logs(&world, run).await.into_iter().map(|log| log.text).collect();
    assert_eq!(printed, "sockets are denied: use wasi:http or deedbox:activity/http\n", "once");
    let knock = tokio::time::timeout(std::time::Duration::from_millis(50), listener.accept()).await;
    assert!(knock.is_err());
}

macro_rules! denied {
    ($($(#[$doc:meta])* $name:ident => $operation:literal),* $(,)?) => {
        $($(#[$doc])* #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            denied($operation).await;
        })*
    };
}

denied! {
    /// F-E21.
    a_tcp_socket_cannot_be_made => "create-tcp",
    /// F-E21.
    a_tcp_socket_for_ipv6_cannot_be_made => "create-tcp6",
    /// F-E21.
    a_udp_socket_cannot_be_made => "create-udp",
    /// F-E21.
    a_udp_socket_for_ipv6_cannot_be_made => "create-udp6",
    /// F-E21.
    tcp_cannot_be_bound => "bind-tcp",
    /// F-E21.
    tcp_cannot_listen => "listen-tcp",
    /// F-E21.
    tcp_cannot_connect => "connect-tcp",
    /// F-E21.
    udp_cannot_be_bound => "bind-udp",
    /// F-E21.
    udp_cannot_send => "stream-udp",
    /// F-E21.
    a_name_cannot_be_looked_up => "look-up",
}

/// F-E21.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_server_hears_only_of_names_that_go_through_the_gateway() {
    let server = NameServer::start(|_, _| Says::NoSuchName).await;
    let world = world(|config| config.gateway.dns_servers = vec![server.address]).await;
    let reach = json!({ "egress": { "allow": ["http://canary.test"] }, "retry": { "max_attempts": 1 } });
    world.deploy_from(GUESTS, "use-sockets", "stripe", reach.clone()).await;
    let run = world.start("use-sockets", json!({ "operations": ["look-up", "look-up"], "port": 1 })).await;
    world.work().await;
    assert_eq!(world.output(run).await, json!(["access-denied", "access-denied"]));
    assert_eq!(server.names(), Vec::<String>::new());

    deploy(&world, "stripe", reach).await;
    let (_, outcome) = fetched(&world, &[post("http://canary.test/")]).await;
    assert!(outcome[0]["error"].is_string(), "{outcome}");
    assert!(server.asked_for("canary.test") >= 1, "this one it would have heard");
}

/// F-E21.
#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_imports_sockets_is_answered_with_a_warning() {
    let api = crate::api::Api::with(crate::harness::World::keyed().await, config()).await;
    let module = api.acme.upload(component(GUESTS)).await.expect(201);
    let warnings = module["warnings"].as_array().unwrap();
    assert_eq!(warnings.len(), 1, "{module}");
    assert!(warnings[0].as_str().unwrap().contains("every socket call fails"), "{module}");
    let shown = api.acme.get(&format!("/v1/modules/{}", module["digest"].as_str().unwrap())).await.expect(200);
    assert_eq!(shown["warnings"], module["warnings"]);
    let plain = api.acme.upload(component("charge_once.wasm")).await.expect(201);
    assert_eq!(plain["warnings"], json!([]));
}

/// Every version that the toolchains emit is taken; `incoming-handler` is not for an activity to import.
#[tokio::test(flavor = "multi_thread")]
async fn all_versions_of_wasi_http_are_linked() {
    let world = world(|_| {}).await;
    let upload = async |outer: String| {
        let bytes = WatComponent { outer, ..WatComponent::default() }.bytes();
        world.node.registry().upload(crate::harness::TENANT, bytes.into()).await
    };
    for patch in 0..=12 {
        let types = format!("(import \"wasi:http/types@0.2.{patch}\" (instance");
        let types = format!("{types} (export \"outgoing-request\" (type (sub resource)))))");
        let outer = format!("{types} (import \"wasi:http/outgoing-handler@0.2.{patch}\" (instance))");
        upload(outer).await.unwrap();
    }
    let incoming = upload("(import \"wasi:http/incoming-handler@0.2.0\" (instance))".to_owned()).await;
    let error = incoming.unwrap_err().to_string();
    assert!(error.contains("wasi:http/incoming-handler"), "{error}");
}
