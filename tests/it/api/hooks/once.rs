//! A delivery that comes again is answered again, and done once.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::api::{serve, serve_alone};
use crate::harness::{World, config};

/// R-E23, R-Z01.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_comes_again_is_answered_with_the_first_run() {
    let api = api("s").await;
    put(&api.acme, "hook", &starting(&json!({}))).await;
    let nobody = api.nobody();
    let first = github("s", "d-1", r#"{"n": 1}"#).to(&nobody, "acme.hook").await;
    let run = accepted(&first);
    assert!(!is_replay(&first));
    for body in [r#"{"n": 1}"#, r#"{"n": 2}"#, "no json"] {
        let again = github("s", "d-1", body).to(&nobody, "acme.hook").await;
        assert_eq!((again.status, &again.text, is_replay(&again)), (202, &first.text, true), "{body}");
    }
    // Whatever the hook makes of it now.
    put(&api.acme, "hook", &starting(&json!({ "start": { "activity": "gone" } }))).await;
    assert_eq!(accepted(&github("s", "d-1", "{}").to(&nobody, "acme.hook").await), run);
    assert_eq!(runs(&api).await.len(), 1);
}

/// R-E23: over two nodes.
#[tokio::test(flavor = "multi_thread")]
async fn twenty_deliveries_at_once_start_one_run() {
    let api = api("s").await;
    put(&api.acme, "hook", &starting(&json!({}))).await;
    let stop = CancellationToken::new();
    let second = Client::new(&serve(&api.world.database, config(), stop.clone()).await, None);
    let nodes = [api.nobody(), second];
    let sent = github("s", "d-1", r#"{"n": 1}"#);
    let answers = join_all((0..20).map(|n| sent.to(&nodes[n % 2], "acme.hook"))).await;
    let told: BTreeSet<String> = answers.iter().map(accepted).collect();
    assert_eq!(told.len(), 1, "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| !is_replay(answer)).count(), 1);
    assert_eq!(runs(&api).await.len(), 1);
    stop.cancel();
}

/// R-Z03.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_any_form_tells_deliveries_apart() {
    let api = api("s").await;
    put(&api.acme, "hook", &starting(&json!({ "delivery_id": { "pointer": "/id" } }))).await;
    put(&api.acme, "other", &starting(&json!({ "delivery_id": { "pointer": "/id" } }))).await;
    let nobody = api.nobody();
    let long = format!("\"{}\"", "x".repeat(300));
    let ids = ["1", "9007199254740993", "9007199254740992", "\"a b\"", "\"a  b\"", "\"ä\"", &long, "\"\\u0000\""];
    let mut all = BTreeSet::new();
    for id in ids {
        let sent = github("s", "ignored", &format!("{{\"id\": {id}}}"));
        let run = accepted(&sent.to(&nobody, "acme.hook").await);
        assert_eq!(accepted(&sent.to(&nobody, "acme.hook").await), run, "{id}");
        all.insert(run);
        all.insert(accepted(&sent.to(&nobody, "acme.other").await));
    }
    assert_eq!(all.len(), 2 * ids.len(), "each id of each hook is one delivery");
    for body in ["{}", r#"{"id": ""}"#, r#"{"id": null}"#, r#"{"id": {}}"#] {
        let words = github("s", "d", body).to(&nobody, "acme.hook").await.message(422, "deedbox.hook_unmapped");
        assert!(words.starts_with("delivery_id: "), "{words}");
    }
}

/// What can be put right is not kept as an answer: the sender's next try counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_delivery_is_taken_once_the_hook_is_put_right() {
    let api = api("s").await;
    put(&api.acme, "hook", &starting(&json!({ "start": { "activity": "late", "input": { "pointer": "/data" } } })))
        .await;
    let nobody = api.nobody();
    let sent = github("s", "d-1", r#"{"datum": 1}"#);
    let words = sent.to(&nobody, "acme.hook").await.message(422, "deedbox.hook_unmapped");
    assert_eq!(words, "start.input: there is nothing at `/data`");
    put(&api.acme, "hook", &starting(&json!({ "start": { "activity": "late", "input": { "pointer": "/datum" } } })))
        .await;
    let words = sent.to(&nobody, "acme.hook").await.message(422, "deedbox.hook_unmapped");
    assert!(words.starts_with("start.activity: "), "{words}");
    put(&api.acme, "hook", &starting(&json!({ "start": { "activity": "noop", "input": { "pointer": "/datum" } } })))
        .await;
    let taken = sent.to(&nobody, "acme.hook").await;
    accepted(&taken);
    assert!(!is_replay(&taken));
    assert_eq!(runs(&api).await.len(), 1);
    let noted = deliveries(&api, "hook").await;
    assert_eq!((noted.len(), &noted[0]["outcome"], &noted[0]["tries"]), (1, &json!("accepted"), &json!(3)));
}

/// The limit is the sender's reason to come again, not the delivery's answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_met_a_limit_is_taken_when_there_is_room() {
    let mut settings = config();
    settings.signals.max_unread = 1;
    let api = Api::with(World::keyed().await, settings).await;
    prepare(&api, "s").await;
    put(&api.acme, "hook", &signalling(json!({ "run": { "pointer": "/run" }, "name": { "value": "go" } }))).await;
    let run = api.start("noop", json!(1)).await;
    let send =
        async |id: &str| github("s", id, &format!("{{\"run\": \"{run}\"}}")).to(&api.nobody(), "acme.hook").await;
    accepted(&send("1").await);
    send("2").await.refused(429, "rate_limited");
    api.world.database.execute("update signals set read = true").await;
    let taken = send("2").await;
    accepted(&taken);
    assert!(!is_replay(&taken));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_not_lost_while_the_database_is_away() {
    let stop = CancellationToken::new();
    let (origin, _away) = serve_alone(stop.clone()).await;
    let nobody = Client::new(&origin, None);
    github("s", "1", "{}").to(&nobody, "acme.hook").await.refused(503, "runner_unavailable");
    stop.cancel();
}
