//! Providers that take no key but a condition: objects.

use deedbox_books::{Behaviour, Convention, Options};
use serde_json::{Value, json};

use crate::harness::{World, config};

async fn storage(provider: Convention, profile: &str) -> World {
    let mut config = config();
    config.gateway.max_send_ms = 500;
    config.gateway.max_look_up_pause_ms = 50;
    let world = World::with(Options { keyless: false, convention: Some(provider) }, config).await;
    world.deploy("send", profile, json!({})).await;
    world
}

async fn outputs(world: &World, calls: Value) -> Value {
    let run = world.start("send", json!({ "calls": calls })).await;
    world.work().await;
    world.output(run).await
}

fn put(world: &World, path: &str, body: &str) -> Value {
    json!({ "method": "PUT", "url": format!("{}{path}", world.origin()), "body": body })
}

/// R-E10: a create is create-only; a second one is refused, and what is there stays.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_create_of_an_object_is_refused() {
    let world = storage(Convention::gcs(), "gcs").await;
    let url = format!("{}/upload/storage/v1/b/b/o?uploadType=media&name=a.txt", world.origin());
    let create = |body: &str| json!({ "method": "POST", "url": url, "body": body, "identity": { "named": body } });
    let output = outputs(&world, json!([create("one"), create("two")])).await;
    assert_eq!((&output[0]["status"], &output[1]["status"]), (&json!(200), &json!(412)), "{output}");
    let sent = &world.books.arrivals().await.unwrap()[0].path_and_query;
    assert!(sent.ends_with("name=a.txt&ifGenerationMatch=0"), "{sent}");
}

/// R-E10: an update states its own generation, which stays.
#[tokio::test(flavor = "multi_thread")]
async fn an_update_keeps_the_guest_s_own_condition() {
    let world = storage(Convention::gcs(), "gcs").await;
    let url = format!("{}/upload/storage/v1/b/b/o?uploadType=media&name=a.txt", world.origin());
    let created = outputs(&world, json!([{ "method": "POST", "url": url, "body": "one" }])).await;
    let body: Value = serde_json::from_str(created[0]["body"].as_str().unwrap()).unwrap();
    let generation = body["generation"].as_str().unwrap();
    let update = format!("{url}&ifGenerationMatch={generation}");
    world.script(&[Behaviour::CutAfterApply]).await;
    let call = json!({ "method": "POST", "url": update, "body": "two", "repeat": 1 });
    let output = outputs(&world, json!([call])).await;
    assert_eq!((&output[0]["status"], &output[0]["source"]), (&json!(200), &json!("looked-up")), "{output}");
    let sent = world.books.arrivals().await.unwrap().pop().unwrap().path_and_query;
    assert_eq!(sent.matches("ifGenerationMatch").count(), 1, "{sent}");
    assert_eq!(world.books.applied().await.unwrap().len(), 2);
}

/// R-E09: what the first read saw is what later attempts read.
#[tokio::test(flavor = "multi_thread")]
async fn a_read_is_pinned_to_the_generation_of_the_first_attempt() {
    let world = storage(Convention::gcs(), "gcs").await;
    let upload = format!("{}/upload/storage/v1/b/b/o?uploadType=media&name=a.txt", world.origin());
    outputs(&world, json!([{ "method": "POST", "url": upload, "body": "first" }])).await;
    let read = json!({ "method": "GET", "url": format!("{}/storage/v1/b/b/o/a.txt?alt=media", world.origin()) });
    let run = world.start("send", json!({ "calls": [read], "then": ["fail", "return"] })).await;
    assert!(world.node.worker().run_once().await.unwrap());
    let generation: Value = serde_json::from_str(
        outputs(
            &world,
            json!([{ "method": "POST", "url": format!("{upload}&ifGenerationMatch=1"), "body": "second" }]),
        )
        .await[0]["body"]
            .as_str()
            .unwrap(),
    )
    .unwrap();
    assert!(generation["name"].as_str().unwrap().ends_with("a.txt"), "the object has changed meanwhile: {generation}");
    world.work().await;
    assert_eq!(world.output(run).await[0]["body"], "first");
}

/// The object of somebody else is not taken for ours: it carries no mark of the effect.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_was_there_is_not_taken_for_the_effect_s_own() {
    let world = storage(Convention::s3(), "s3").await;
    world.books.script(&[Behaviour::Normal, Behaviour::CutBeforeApply]).await.unwrap();
    let foreign = outputs(&world, json!([put(&world, "/bucket/a.txt", "theirs")])).await;
    assert_eq!(foreign[0]["status"], 200);
    let mut ours = put(&world, "/bucket/a.txt", "ours");
    (ours["identity"], ours["repeat"]) = (json!({ "named": "ours" }), json!(3));
    let run = world.start("send", json!({ "calls": [ours] })).await;
    let begun = std::time::Instant::now();
    while world.run(run).await.state != "completed" {
        world.work().await;
        assert!(begun.elapsed().as_secs() < 30);
    }
    assert_eq!(world.output(run).await[0]["status"], 412, "the truth: it is not ours");
    assert_eq!(world.books.applied().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_whose_answer_was_lost_is_known_by_its_mark() {
    let world = storage(Convention::s3(), "s3").await;
    world.script(&[Behaviour::CutAfterApply]).await;
    let mut ours = put(&world, "/bucket/a.txt", "ours");
    (ours["identity"], ours["repeat"]) = (json!({ "named": "ours" }), json!(3));
    let output = outputs(&world, json!([ours])).await;
    assert_eq!((&output[0]["status"], &output[0]["source"]), (&json!(200), &json!("looked-up")), "{output}");
    let first = &world.books.arrivals().await.unwrap()[0];
    assert_eq!(first.header("if-none-match"), Some("*"));
    assert_eq!(first.header("x-amz-meta-deedbox-effect"), output[0]["effect_id"].as_str());
}

/// The signature covers what the host has added: the condition and the mark.
#[tokio::test(flavor = "multi_thread")]
async fn a_signed_request_is_signed_with_all_that_the_host_adds() {
    let world = storage(Convention::s3(), "s3").await;
    let secret = r#"{"access_key_id":"AK","secret_access_key":"a-secret-of-aws","region":"eu-north-1"}"#;
    world.node.gateway().vault().put("acme", "aws", secret).await.unwrap();
    world.deploy("send", "s3", json!({ "credentials": { "s3": { "secret": "aws", "account": "main" } } })).await;
    let output = outputs(&world, json!([put(&world, "/bucket/a.txt", "x")])).await;
    assert_eq!(output[0]["status"], 200, "{output}");
    let arrival = &world.books.arrivals().await.unwrap()[0];
    let authorization = arrival.header("authorization").unwrap();
    assert!(authorization.starts_with("AWS4-HMAC-SHA256 Credential=AK/"), "{authorization}");
    assert!(authorization.contains("/eu-north-1/s3/aws4_request"), "{authorization}");
    for header in ["host", "if-none-match", "x-amz-content-sha256", "x-amz-meta-deedbox-effect"] {
        assert!(authorization.contains(header), "{header}: {authorization}");
    }
}
