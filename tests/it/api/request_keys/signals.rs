//! Signals have a record of their own, for the life of their run: a second one under a key is told that it adds
//! nothing, with the marker of all repeats.

use tokio::task::JoinSet;

use super::super::no_run;
use super::*;

fn signal(client: &Client, run: &str, name: &str, payload: &Value) -> Ask {
    Ask::post(client, &format!("/v1/runs/{run}/signals/{name}"), payload)
}

/// Asserts that it was the first under its key.
#[track_caller]
fn delivered(answer: &Answer) {
    assert_eq!(done(answer, 202), json!({ "signal_delivered": true }));
}

/// Asserts that it was there already.
#[track_caller]
fn repeated(answer: &Answer) {
    assert_eq!(answer.expect(202), json!({ "signal_delivered": false }));
    assert_eq!(answer.header(REPLAYED), "true", "{answer:?}");
}

async fn received(api: &Api, run: &str) -> Vec<Value> {
    let list = whole_list(&api.acme.get(&format!("/v1/runs/{run}/signals")).await);
    list.iter().map(|signal| signal["payload"].clone()).collect()
}

/// R-Z10, R-K18: whatever it says and whatever it is called, and after the end of the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_under_a_key_is_marked_as_a_repeat() {
    let api = noops().await;
    let run = api.start("noop", json!(1)).await;
    let key = fresh_key();
    delivered(&signal(&api.acme, &run, "go", &json!({ "n": 1 })).key(&key).send().await);
    for (name, payload) in [("go", json!({ "n": 1 })), ("go", json!({ "n": 2 })), ("stop", json!(null))] {
        repeated(&signal(&api.acme, &run, name, &payload).key(&key).send().await);
    }
    let plain = signal(&api.acme, &run, "go", &json!("plain"));
    for _ in 0..2 {
        delivered(&plain.send().await);
    }
    api.work().await;
    repeated(&signal(&api.acme, &run, "go", &json!({ "n": 1 })).key(&key).send().await);
    for ask in [plain.clone(), plain.key(&fresh_key())] {
        let late = ask.send().await;
        late.refused(409, "run_terminal");
        assert!(!is_replay(&late), "{late:?}");
    }
    assert_eq!(received(&api, &run).await, [json!({ "n": 1 }), json!("plain"), json!("plain")]);
    assert_eq!(records(&api).await, 0, "signals have a record of their own");
}

/// R-Z10: a year later as well: the record lives as long as the run.
#[tokio::test(flavor = "multi_thread")]
async fn a_signals_key_does_not_expire_while_its_run_lives() {
    let api = noops().await;
    let run = api.start("noop", json!(1)).await;
    let signalling = signal(&api.acme, &run, "go", &json!(1)).key(&fresh_key());
    delivered(&signalling.send().await);
    api.world.database.advance_seconds(365 * 86_400).await;
    api.world.node.worker().sweep().await.unwrap();
    repeated(&signalling.send().await);
    assert_eq!(received(&api, &run).await.len(), 1);
}

/// R-C12, R-C14, R-C25: webhooks have keys of their own making and bodies that nobody promised.
#[tokio::test(flavor = "multi_thread")]
async fn a_lenient_signal_may_have_any_visible_key_and_any_body() {
    let api = noops().await;
    let run = api.start("noop", json!(1)).await;
    let go = signal(&api.acme, &run, "go", &json!(1)).lenient();
    for key in ["1", "evt:1/2", &"k".repeat(255)] {
        delivered(&go.clone().key(key).send().await);
        for body in ["1", "2", "{", "\u{1}", &"[".repeat(1_000)] {
            let again = go.clone().key(key).raw(JSON, body).send().await;
            assert!(matches!(again.status, 200 | 202), "{again:?}");
            assert_eq!(again.json()["signal_delivered"], false, "{again:?}");
            assert_eq!(again.header("preference-applied"), "handling=lenient");
        }
    }
    for wrong in ["", "a b", &"k".repeat(256)] {
        go.clone().key(wrong).send().await.refused(400, "idempotency_key_invalid");
    }
    go.clone().key("new").raw(JSON, "{").send().await.refused(400, "validation_error");
    delivered(&go.clone().key("new").send().await);
    signal(&api.acme, &run, "go", &json!(1)).key("1").send().await.refused(400, "idempotency_key_invalid");
    signal(&api.acme, &no_run(), "go", &json!(1)).key("1").lenient().send().await.refused(404, "not_found");
    assert_eq!(received(&api, &run).await.len(), 4);
    api.work().await;
    let late = go.key("1").send().await;
    assert_eq!(late.json()["signal_delivered"], false, "{late:?}");
}

/// R-K20: at two nodes.
#[tokio::test(flavor = "multi_thread")]
async fn of_signals_of_one_key_at_once_at_two_nodes_one_is_delivered() {
    let api = noops().await;
    let other = another_node(&api, config()).await;
    let run = api.start("noop", json!(1)).await;
    let key = fresh_key();
    let mut sent = JoinSet::new();
    for n in 0..30 {
        let client = if n % 2 == 0 { &api.acme } else { &other };
        let ask = signal(client, &run, "go", &json!(n)).key(&key);
        sent.spawn(async move { ask.send().await });
    }
    let answers = sent.join_all().await;
    let (first, again): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| !is_replay(answer));
    assert_eq!(first.len(), 1, "{answers:?}");
    delivered(first[0]);
    again.into_iter().for_each(repeated);
    assert_eq!(received(&api, &run).await.len(), 1);
}

/// R-K10, F-A08: for a signal a key counts in its run, whatever else it was used for.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_a_start_is_free_for_its_runs_signals() {
    let api = noops().await;
    let key = fresh_key();
    let body = json!({ "input": 1, "signal": { "name": "go", "idempotency_key": key } });
    let starting = Ask::start(&api.acme, &body).key(&key);
    let first = twice(&starting, 201).await;
    let run = run_of(&first);
    // It came with the start.
    repeated(&signal(&api.acme, &run, "go", &json!(1)).key(&key).send().await);
    let other = run_of(&twice(&Ask::start(&api.acme, &json!({ "input": 2 })).key(&fresh_key()), 201).await);
    delivered(&signal(&api.acme, &other, "go", &json!(1)).key(&key).send().await);
    replays(&starting.send().await, &first);
    assert_eq!((received(&api, &run).await.len(), received(&api, &other).await.len()), (1, 1));
}
