//! Who may publish where, and with which credential.

use serde_json::json;

use super::*;
use crate::harness::logs;

const CREDENTIAL: &str = "canary-9c41f0aa7d";

async fn told(world: &World) -> Value {
    let run = world.start("publish", json!({ "messages": [message("a")] })).await;
    world.work().await;
    world.output(run).await[0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn publishing_is_denied_where_the_policy_names_no_server() {
    let world = world().await;
    world.deploy("publish", "stripe", json!({})).await;
    let told = told(&world).await;
    assert_eq!(told["error"], "denied");
    assert!(told["message"].as_str().unwrap().contains("messaging.server"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_at_a_private_address_is_denied_unless_the_policy_names_the_address() {
    let (world, server) = (world().await, orders().await);
    let named = server.url().replace("127.0.0.1", "localhost");
    deploy(&world, &named, json!({})).await;
    let denied = told(&world).await;
    assert_eq!(denied["error"], "denied");
    assert!(denied["message"].as_str().unwrap().contains("policy.egress.private_addresses"), "{denied}");
    deploy(&world, &named, json!({ "egress": { "private_addresses": ["127.0.0.1", "::1"] } })).await;
    assert_eq!(told(&world).await["stream"], "ORDERS");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_opens_the_server_and_shows_nowhere() {
    logs::keep();
    let (world, server) = (world().await, Nats::start_with(&["--user", "bank", "--pass", CREDENTIAL]).await);
    let options = async_nats::ConnectOptions::with_user_and_password("bank".into(), CREDENTIAL.into());
    let context = jetstream::new(options.connect(server.url()).await.unwrap());
    context.create_stream(stream_config("ORDERS")).await.unwrap();
    let policy = json!({ "server": server.url(), "user": "bank", "secret": "key", "account": "main" });
    world.deploy("publish", "stripe", json!({ "messaging": policy })).await;
    let missing = told(&world).await;
    assert_eq!(missing["error"], "denied");
    assert!(missing["message"].as_str().unwrap().contains("deedbox secret set key"), "{missing}");

    world.node.gateway().vault().put(TENANT, "key", "wrong").await.unwrap();
    let wrong = told(&world).await;
    assert_eq!(wrong["error"], "unreachable");
    assert!(wrong["message"].as_str().unwrap().contains("refused the credential"), "{wrong}");
    assert!(entries(&world).await.is_empty());

    // Another node has no opened credential in memory.
    let second = world.second("two", deedbox::probe::none()).await;
    world.node.gateway().vault().put(TENANT, "key", CREDENTIAL).await.unwrap();
    let run = world.start("publish", json!({ "messages": [message("a")] })).await;
    crate::harness::work(&second).await;
    assert_eq!(world.output(run).await[0]["stream"], "ORDERS");
    let entry = &entries(&world).await[0];
    assert_eq!(entry.account, "main");
    assert!(!format!("{entry:?}").contains(CREDENTIAL));
    assert!(!logs::all().contains(CREDENTIAL));
}

#[test]
fn a_policy_with_a_server_that_is_none_is_refused() {
    use deedbox::policy::Policy;
    let with = |messaging: Value| Policy::parse(&json!({ "messaging": messaging }).to_string());
    for server in ["http://a", "nats://", "nats://a:0", "nats://a/b", "nats://u:p@a", "a:4222", "nats://*:4222"] {
        assert!(with(json!({ "server": server })).is_err(), "{server}");
    }
    assert!(with(json!({ "server": "nats://a", "password": "x" })).unwrap_err().contains("unknown field"));
    assert!(with(json!({ "server": "nats://a", "user": "x" })).unwrap_err().contains("policy.messaging.secret"));
    for (server, shown) in
        [("nats://a", "nats://a:4222"), ("tls://[::1]:1", "tls://[::1]:1"), ("nats://[::1]", "nats://[::1]:4222")]
    {
        let policy = with(json!({ "server": server })).unwrap();
        assert_eq!(policy.messaging.as_ref().unwrap().server.to_string(), shown);
        let again = Policy::parse(&serde_json::to_string(&policy).unwrap()).unwrap();
        assert_eq!(again.messaging, policy.messaging);
    }
}
