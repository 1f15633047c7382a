//! The same request several times at once, at one node and at two: one of them works, and the others are told what came
//! of it, or that it is not over yet.

use std::sync::Arc;
use std::time::{Duration, Instant};

use deedbox_books::Behaviour;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::*;

/// Shorter than the time of a statement that stands before the gate.
const LONG_MS: u64 = 12_000;
/// How long a busy machine may take beside the waiting.
const SLACK: Duration = Duration::from_secs(3);

/// Sends all of them in the same moment.
async fn together(asks: impl IntoIterator<Item = Ask>) -> Vec<Answer> {
    let asks: Vec<Ask> = asks.into_iter().collect();
    let line = Arc::new(Barrier::new(asks.len()));
    let mut sent = JoinSet::new();
    for ask in asks {
        let line = line.clone();
        sent.spawn(async move {
            line.wait().await;
            ask.send().await
        });
    }
    sent.join_all().await
}

/// Asserts that it was refused as one that is being worked on: with a time to come back, and no word of it in the body.
#[track_caller]
fn in_flight(answer: &Answer) {
    let body = answer.refused(409, "idempotency_in_flight");
    let after = answer.header("retry-after").parse::<u64>();
    assert!(after.is_ok_and(|seconds| (1..=60).contains(&seconds)), "{answer:?}");
    let names = |details: &Value| details.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let details = body.get("details").map(names).unwrap_or_default();
    assert!(details.iter().all(|name| !name.to_lowercase().contains("retry")), "{body}");
    assert!(!is_replay(answer), "{answer:?}");
}

/// Asserts that all answers are one run's: told once as done, else once more, or as not over yet. Gives the run.
#[track_caller]
fn one_run(answers: &[Answer]) -> String {
    let done: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 201 && !is_replay(answer)).collect();
    assert_eq!(done.len(), 1, "{answers:?}");
    for answer in answers.iter().filter(|answer| !std::ptr::eq(*answer, done[0])) {
        match answer.status {
            201 => replays(answer, done[0]),
            _ => in_flight(answer),
        }
    }
    run_of(done[0])
}

/// R-C05, R-K01, R-K20, R-K21, R-L18, F-A01: fifty at once, at two nodes, while the provider is slow.
#[tokio::test(flavor = "multi_thread")]
async fn of_fifty_starts_at_once_one_starts_and_its_effect_happens_once() {
    let patient = |config: &mut Config| {
        (config.gateway.default_send_ms, config.gateway.max_send_ms) = (60_000, 60_000);
    };
    let api = noops_with(patient).await;
    let other = another_node(&api, changed(patient)).await;
    api.deploy("send", api.policy("stripe")).await;
    api.begin_working();
    api.world.script(&[Behaviour::HoldBeforeApply]).await;
    let body = json!({ "input": { "calls": [api.charge("a")], "fail_on_error": true } });
    let ask = Ask::post(&api.acme, "/v1/activities/send/runs", &body).key(&fresh_key());
    let asks = (0..50).map(|n| if n % 2 == 0 { ask.clone() } else { ask.clone().by(&other) });
    let run = one_run(&together(asks).await);
    api.world.books.wait_for_arrivals(1, Duration::from_secs(20)).await.unwrap();
    // While it runs, and when it is over.
    let first = ask.send().await;
    assert_eq!((first.status, is_replay(&first), run_of(&first)), (201, true, run.clone()));
    api.world.books.release().await.unwrap();
    assert_eq!(api.ended(&run).await["state"], "completed");
    replays(&ask.clone().by(&other).send().await, &first);
    assert_eq!(runs(&api).await, [run]);
    let books = &api.world.books;
    assert_eq!((books.arrivals().await.unwrap().len(), books.applied().await.unwrap().len()), (1, 1));
}

/// R-C05, R-K20: twenty keys at once at two nodes, five times each.
#[tokio::test(flavor = "multi_thread")]
async fn starts_of_many_keys_at_once_are_one_run_for_each_key() {
    let api = noops().await;
    let other = another_node(&api, config()).await;
    let keys: Vec<String> = (0..20).map(|_| fresh_key()).collect();
    let ask = |key: &String, n: u32| {
        let ask = Ask::start(&api.acme, &json!({ "input": key })).key(key);
        if n.is_multiple_of(2) { ask } else { ask.by(&other) }
    };
    let asks: Vec<Ask> =
        (0..5).flat_map(|n| keys.iter().map(move |key| (key, n))).map(|(key, n)| ask(key, n)).collect();
    let answers = together(asks).await;
    assert!(answers.iter().all(|answer| matches!(answer.status, 201 | 409)), "{answers:?}");
    let mut started: Vec<String> = answers.iter().filter(|answer| answer.status == 201).map(run_of).collect();
    started.sort();
    started.dedup();
    let mut listed = runs(&api).await;
    listed.sort();
    assert_eq!((started.len(), &started), (keys.len(), &listed));
}

/// R-K22, R-K23, R-K28, F-A03: at the same node and at the other.
#[tokio::test(flavor = "multi_thread")]
async fn while_a_request_is_worked_on_its_repeat_is_told_so_and_another_is_told_that() {
    let short = |config: &mut Config| config.api.in_flight_wait_ms = 200;
    let api = noops_with(short).await;
    let other = another_node(&api, changed(short)).await;
    let key = fresh_key();
    let ask = Ask::start(&api.acme, &json!({ "input": { "n": 1, "m": 2 } })).key(&key);
    let gate = Gate::close(&api).await;
    let first = begin(&ask);
    until_held(&api, 1).await;
    for client in [&api.acme, &other] {
        let asked = Instant::now();
        in_flight(&ask.clone().by(client).send().await);
        in_flight(&ask.clone().by(client).raw(JSON, r#"{ "input": { "m": 2, "n": 1 } }"#).send().await);
        assert!(asked.elapsed() < 2 * (Duration::from_millis(200) + SLACK));
        let mismatch = ask.clone().by(client).raw(JSON, r#"{"input":{"n":2}}"#).send().await;
        mismatch.refused(409, "idempotency_key_mismatch");
        assert!(mismatch.header("retry-after").is_empty() && !is_replay(&mismatch), "{mismatch:?}");
        // Under the same key, another operation has nothing to wait for.
        let cancelling = Ask::post(client, "/v1/runs/cancel", &json!({ "activity": "noop" })).key(&key).send().await;
        cancelling.expect(200);
    }
    assert!(!first.is_finished());
    gate.open().await;
    let first = first.await.unwrap();
    done(&first, 201);
    replays(&ask.send().await, &first);
    ask.raw(JSON, r#"{"input":1}"#).send().await.refused(409, "idempotency_key_mismatch");
    assert_eq!(runs(&api).await, [run_of(&first)]);
}

/// R-K21: who waits is told what came of it, as soon as it is over.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_request_is_told_what_came_of_it() {
    let long = |config: &mut Config| config.api.in_flight_wait_ms = LONG_MS;
    let api = noops_with(long).await;
    let other = another_node(&api, changed(long)).await;
    let key = fresh_key();
    let ask = Ask::start(&api.acme, &json!({ "input": 1 })).key(&key);
    let gate = Gate::close(&api).await;
    let first = begin(&ask);
    until_held(&api, 1).await;
    let waiting: Vec<_> =
        (0..8).map(|n| begin(&if n % 2 == 0 { ask.clone() } else { ask.clone().by(&other) })).collect();
    // Whoever asks for something else need not wait.
    let mismatch = Ask::start(&api.acme, &json!({ "input": 2 })).key(&key).send().await;
    mismatch.refused(409, "idempotency_key_mismatch");
    assert!(waiting.iter().all(|waiting| !waiting.is_finished()), "somebody was answered before it was over");
    gate.open().await;
    let opened = Instant::now();
    let first = first.await.unwrap();
    done(&first, 201);
    for waiting in waiting {
        replays(&waiting.await.unwrap(), &first);
    }
    assert!(opened.elapsed() < Duration::from_millis(LONG_MS / 2), "they waited for their whole time");
    assert_eq!(runs(&api).await, [run_of(&first)]);
}

/// R-K24: what the first may ask again for, the second does not hear: he does it himself.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_a_request_that_fails_does_it_himself() {
    let api = noops_with(|config| config.api.in_flight_wait_ms = LONG_MS).await;
    let ask = Ask::start(&api.acme, &json!({ "input": 1 })).key(&fresh_key());
    let gate = Gate::close(&api).await;
    let first = begin(&ask);
    until_held(&api, 1).await;
    let second = begin(&ask);
    let end = "select count(pg_terminate_backend(pid)) from pg_stat_activity
               where datname = current_database() and wait_event_type = 'Lock'
                 and wait_event in ('transactionid', 'tuple')";
    assert_eq!(count(&api.world.database, end).await, 1);
    let first = first.await.unwrap();
    assert!(first.status >= 500 && !is_replay(&first), "{first:?}");
    until_held(&api, 1).await;
    gate.open().await;
    let second = second.await.unwrap();
    done(&second, 201);
    replays(&ask.send().await, &second);
    assert_eq!(runs(&api).await, [run_of(&second)]);
}

/// R-K24: of starts that come at a limit all at once, none is told of another's refusal as if it were for good.
#[tokio::test(flavor = "multi_thread")]
async fn starts_at_a_limit_all_at_once_are_each_refused_for_themselves() {
    let api = noops_with(|config| config.signals.max_unread = 1).await;
    let body = json!({ "run_name": "order-1", "reuse": "attach", "signal": { "name": "go" } });
    Ask::start(&api.acme, &body).send().await.expect(201);
    let ask = Ask::start(&api.acme, &body).key(&fresh_key());
    for answer in together((0..10).map(|_| ask.clone())).await {
        assert!(!is_replay(&answer), "{answer:?}");
        match answer.status {
            429 => drop(answer.refused(429, "rate_limited")),
            _ => in_flight(&answer),
        }
    }
    assert_eq!(records(&api).await, 0);
    api.work().await;
    twice(&ask, 201).await;
}

/// F-A17, R-K01: nobody works, and the caller asks again and again.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_asked_for_ten_times_is_queued_once() {
    let api = noops().await;
    let ask = Ask::start(&api.acme, &json!({ "input": 1 })).key(&fresh_key());
    let first = twice(&ask, 201).await;
    for _ in 0..8 {
        replays(&ask.send().await, &first);
    }
    api.work().await;
    replays(&ask.send().await, &first);
    let run = run_of(&first);
    assert_eq!((runs(&api).await, api.outcomes(&run).await), (vec![run], vec!["completed".to_owned()]));
}

/// R-C05: the same at once by callers who ask for lenient handling.
#[tokio::test(flavor = "multi_thread")]
async fn of_lenient_starts_at_once_one_starts_and_the_others_are_told_of_it() {
    let api = noops().await;
    let other = another_node(&api, config()).await;
    let asks = (0..20_u32).map(|n| {
        let ask = Ask::start(&api.acme, &json!({ "input": n })).key("delivery-7").lenient();
        if n.is_multiple_of(2) { ask } else { ask.by(&other) }
    });
    let answers = together(asks).await;
    let fresh: Vec<String> = answers.iter().filter(|answer| answer.status == 201).map(run_of).collect();
    assert_eq!(fresh.len(), 1, "{answers:?}");
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        match answer.status {
            200 => assert_eq!((run_of(answer), &answer.json()["deduplicated"]), (fresh[0].clone(), &json!(true))),
            _ => in_flight(answer),
        }
    }
    assert_eq!(runs(&api).await, fresh);
}
