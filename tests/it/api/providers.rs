//! `/v1/providers`: a tenant's own conventions, and those in the place of shipped ones.

use deedbox_books::{Behaviour, Carrier, Convention, Options};
use serde_json::{Value, json};

use super::Api;
use super::client::whole_list;
use crate::harness::{World, config};

const OWN: &str = r#"
name = "acme-pay"
version = "1"
source = "our own docs"
confidence = "H"

[[operation]]
[operation.key]
carrier = { query = "dedupe" }
rendering = "hex"
retention = "1h"
"#;

async fn put(api: &Api, name: &str, text: &str) -> super::client::Answer {
    api.acme.put(&format!("/v1/providers/{name}"), &json!({ "profile": text })).await
}

fn names(list: &[Value]) -> Vec<&str> {
    list.iter().map(|provider| provider["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_s_own_profile_is_used_and_seen_by_nobody_else() {
    let provider = Convention { carrier: Carrier::Query("dedupe".to_owned()), ..Convention::default() };
    let world = World::with(Options { keyless: false, convention: Some(provider) }, config()).await;
    let api = Api::with(world, config()).await;
    assert_eq!(put(&api, "acme-pay", OWN).await.expect(201)["own"], true);
    assert_eq!(put(&api, "acme-pay", OWN).await.status, 200, "the same again");
    api.deploy("send", api.policy("acme-pay")).await;
    api.world.script(&[Behaviour::CutAfterApply]).await;
    let mut call = api.charge("x");
    call["repeat"] = json!(1);
    let run = api.start("send", json!({ "calls": [call] })).await;
    api.work().await;
    let effect = api.effects_of(&run).await.remove(0);
    assert_eq!((&effect["state"], &effect["provider"]), (&json!("completed"), &json!("acme-pay")));
    let arrivals = api.world.books.arrivals().await.unwrap();
    let key = effect["wire_key"].as_str().unwrap();
    assert_eq!(key.len(), 32);
    assert!(arrivals.iter().all(|a| a.path_and_query.ends_with(&format!("?dedupe={key}"))), "{arrivals:?}");
    assert_eq!((arrivals.len(), api.world.books.applied().await.unwrap().len()), (2, 1));
    let other = api.tenant("other").await;
    assert!(!names(&whole_list(&other.get("/v1/providers").await)).contains(&"acme-pay"));
    assert_eq!(other.get("/v1/providers/acme-pay").await.status, 404);
    assert_eq!(other.delete("/v1/providers/acme-pay").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_takes_the_place_of_a_shipped_profile_until_it_is_deleted() {
    let api = Api::idle().await;
    let shipped = api.acme.get("/v1/providers/stripe").await.expect(200);
    assert_eq!(shipped["own"], false);
    let text = "extends = \"stripe\"\nname = \"stripe\"\nversion = \"acme-1\"\non_unknown = \"at-most-once\"\n";
    put(&api, "stripe", text).await.expect(201);
    let shown = api.acme.get("/v1/providers/stripe").await.expect(200);
    assert_eq!(
        (&shown["own"], &shown["version"], &shown["hosts"]),
        (&json!(true), &json!("acme-1"), &shipped["hosts"])
    );
    assert!(shown["profile"].as_str().unwrap().contains("Idempotency-Key"), "what it extends is in it: {shown}");
    assert_eq!(api.acme.delete("/v1/providers/stripe").await.status, 204);
    assert_eq!(api.acme.get("/v1/providers/stripe").await.expect(200), shipped);
    assert_eq!(api.acme.delete("/v1/providers/stripe").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_profile_is_refused_with_its_file_line_and_field() {
    let api = Api::idle().await;
    for (name, text, said) in [
        ("acme-pay", OWN.replace("query", "cookie"), vec!["acme-pay.toml", "line 9", "cookie"]),
        ("acme-pay", OWN.replace("retention = \"1h\"", "retention = 3"), vec!["line 11"]),
        ("other-name", OWN.to_owned(), vec!["name", "acme-pay"]),
        ("acme-pay", "name = ".to_owned(), vec!["line 1"]),
    ] {
        let answer = put(&api, name, &text).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        said.iter().for_each(|word| assert!(message.contains(word), "{word}: {message}"));
    }
    let deployed = api.acme.get("/v1/providers").await;
    assert!(!names(&whole_list(&deployed)).contains(&"acme-pay"), "nothing of it is stored");
}

/// The profile's name is a part of an effect's identity: one that is put between two attempts must not make a second effect.
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_that_is_put_later_does_not_rename_the_effects_of_a_deployment() {
    let api = Api::idle().await;
    let policy = json!({ "egress": { "allow": [api.world.origin()] }, "retry": { "initial_interval": "1ms" } });
    let deployed = api.deploy("send", policy).await;
    assert_eq!(deployed["policy"]["providers"][api.world.origin()], "unlisted", "{deployed}");
    let run = api.start("send", json!({ "calls": [api.charge("x")], "then": ["fail", "return"] })).await;
    assert!(api.world.node.worker().run_once().await.unwrap());
    let host = "unlisted";
    put(&api, host, "extends = \"generic\"\nname = \"unlisted\"\n").await.expect(201);
    api.work().await;
    let effects = api.effects_of(&run).await;
    assert_eq!(effects.len(), 1, "{effects:?}");
    assert_eq!(api.world.books.arrivals().await.unwrap().len(), 1);
}
