//! Business ids of runs: what a start does when there is a run of its name. Two starts never both take one for
//! themselves.

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::client::whole_list;
use super::{Answer, Api, order, run_of, start};
use crate::harness::{World, config};

const KEY: &str = "0123456789abcdefABCD._~-";

async fn noops() -> Api {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    api
}

fn named(name: &str, reuse: Option<&str>) -> Value {
    let mut body = json!({ "input": 1, "run_name": name });
    if let Some(reuse) = reuse {
        body["reuse"] = json!(reuse);
    }
    body
}

/// A start of `order-1`.
async fn first(api: &Api, reuse: Option<&str>) -> Answer {
    start(&api.acme, "noop", &named("order-1", reuse)).await
}

/// Asserts that a start made a new run; gives its id.
#[track_caller]
fn fresh(answer: &Answer) -> String {
    assert_eq!(answer.expect(201)["started_fresh"], true);
    run_of(answer)
}

#[track_caller]
fn taken_by(answer: &Answer, code: &str, run: &str) {
    assert_eq!(answer.refused(409, code)["details"], json!({ "runId": run }));
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_run_of_the_name_is_alive_the_policy_decides() {
    let api = noops().await;
    let alive = fresh(&first(&api, None).await);
    assert_eq!(api.run(&alive).await["run_name"], "order-1");
    for reuse in [None, Some("reject"), Some("reject_alive")] {
        taken_by(&first(&api, reuse).await, "run_already_active", &alive);
    }
    let attached = first(&api, Some("attach")).await;
    let shown = attached.expect(200);
    assert_eq!((&shown["run_id"], &shown["started_fresh"]), (&json!(alive), &json!(false)));
    assert_eq!((&shown["state"], shown.get("signal_delivered")), (&json!("queued"), None));
    assert_eq!(attached.header("location"), format!("/v1/runs/{alive}"));
    assert_eq!(whole_list(&api.acme.get("/v1/runs").await).len(), 1, "nothing else was started");

    let another = fresh(&first(&api, Some("allow")).await);
    assert_ne!(another, alive);
    assert_eq!(first(&api, Some("attach")).await.expect(200)["run_id"], json!(another), "the name is the newest's");
    taken_by(&first(&api, Some("reject")).await, "run_already_active", &another);
    let listed = whole_list(&api.acme.get("/v1/runs?run_name=order-1").await);
    let ids: Vec<_> = listed.iter().map(|run| run["run_id"].clone()).collect();
    assert_eq!(ids, [json!(another), json!(alive)]);
    assert!(whole_list(&api.acme.get("/v1/runs?run_name=order").await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_end_of_the_run_of_the_name_the_policy_decides() {
    for end in ["completed", "cancelled"] {
        let api = noops().await;
        let mut last = fresh(&first(&api, Some("reject")).await);
        for (reuse, starts) in [
            (None, false),
            (Some("reject"), false),
            (Some("reject_alive"), true),
            (Some("attach"), true),
            (Some("allow"), true),
        ] {
            match end {
                "cancelled" => drop(order(&api.acme, &last, "cancel").await.expect(200)),
                _ => api.work().await,
            }
            assert_eq!(api.run(&last).await["state"], end);
            let answer = first(&api, reuse).await;
            if starts {
                let next = fresh(&answer);
                assert_ne!(next, last);
                last = next;
            } else {
                taken_by(&answer, "deedbox.run_name_taken", &last);
            }
        }
    }
}

/// A run that waits or is paused is alive.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_waits_or_is_paused_keeps_its_name() {
    let api = Api::idle().await;
    api.deploy("listen", json!({})).await;
    let mut body = named("order-1", Some("reject_alive"));
    body["input"] = json!({ "asks": [{ "wait": { "name": "go" } }] });
    let run = fresh(&start(&api.acme, "listen", &body).await);
    api.work().await;
    assert_eq!(api.run(&run).await["state"], "waiting");
    taken_by(&start(&api.acme, "listen", &body).await, "run_already_active", &run);
    order(&api.acme, &run, "pause").await.expect(200);
    taken_by(&start(&api.acme, "listen", &body).await, "run_already_active", &run);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_one_activitys_and_one_tenants() {
    let api = noops().await;
    let version = api.deploy("print", json!({})).await;
    let mine = fresh(&first(&api, None).await);
    let another = fresh(&start(&api.acme, "print", &named("order-1", None)).await);
    let other = api.tenant("other").await;
    other.upload(crate::harness::component(super::super::GUESTS)).await.expect(201);
    other.put("/v1/activities/noop", &json!({ "module": version["module"] })).await.expect(201);
    let theirs = fresh(&start(&other, "noop", &named("order-1", Some("attach"))).await);
    assert!(mine != another && mine != theirs);
    assert_eq!(whole_list(&other.get("/v1/runs?run_name=order-1").await).len(), 1);
    taken_by(&start(&other, "noop", &named("order-1", None)).await, "run_already_active", &theirs);
}

/// R-B06, R-E23: with the signal's own key, whoever asks twice is heard once.
#[tokio::test(flavor = "multi_thread")]
async fn attaching_delivers_the_signal_to_the_run_that_is_there() {
    let api = Api::idle().await;
    api.deploy("listen", json!({})).await;
    let body = |n: u32, key: &str| {
        let mut body = named("order-1", Some("attach"));
        body["input"] = json!({ "asks": [{ "wait": { "name": "go" } }, { "wait": { "name": "go" } }] });
        body["signal"] = json!({ "name": "go", "payload": n, "idempotency_key": key });
        body
    };
    let run = fresh(&start(&api.acme, "listen", &body(1, KEY)).await);
    let second = "another-key-0123456789-abc";
    for (n, key, delivered) in [(2, KEY, false), (2, second, true), (3, second, false)] {
        let shown = start(&api.acme, "listen", &body(n, key)).await.expect(200);
        let told = (&shown["run_id"], &shown["started_fresh"], &shown["signal_delivered"]);
        assert_eq!(told, (&json!(run), &json!(false), &json!(delivered)));
    }
    api.work().await;
    assert_eq!(api.ended(&run).await["output"], json!([1, 2]));
    // A signal that the ended run knows comes a second time, and so does its start.
    let late = start(&api.acme, "listen", &body(4, KEY)).await.expect(200);
    assert_eq!((&late["run_id"], &late["signal_delivered"]), (&json!(run), &json!(false)));
    // To an ended run nobody attaches: the next start is another run, which gets the signal.
    let next = fresh(&start(&api.acme, "listen", &body(4, "a-third-key-0123456789-abc")).await);
    let signals = whole_list(&api.acme.get(&format!("/v1/runs/{next}/signals")).await);
    assert_eq!((signals.len(), &signals[0]["payload"]), (1, &json!(4)));
}

/// A run of the name that is alive counts, also when a newer one of it has ended; and a failed one cannot come back beside it.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_held_by_whichever_of_its_runs_is_alive() {
    let api = Api::idle().await;
    api.deploy("fail", json!({})).await;
    api.deploy("noop", json!({})).await;
    let alive = fresh(&start(&api.acme, "noop", &named("order-1", Some("allow"))).await);
    let newer = fresh(&start(&api.acme, "noop", &named("order-1", Some("allow"))).await);
    order(&api.acme, &newer, "cancel").await.expect(200);
    start(&api.acme, "noop", &named("order-1", Some("reject_alive"))).await.refused(409, "run_already_active");
    let attached = start(&api.acme, "noop", &named("order-1", Some("attach"))).await.expect(200);
    assert_eq!(attached["run_id"], json!(alive));
    let mut failing = named("order-2", Some("reject_alive"));
    failing["input"] = json!({ "code": "no", "message": "m", "kind": "permanent" });
    let failed = fresh(&start(&api.acme, "fail", &failing).await);
    api.work().await;
    assert_eq!(api.run(&failed).await["state"], "failed");
    failing["delay"] = json!("1h");
    fresh(&start(&api.acme, "fail", &failing).await);
    order(&api.acme, &failed, "retry").await.refused(409, "run_state_conflict");
}

#[tokio::test(flavor = "multi_thread")]
async fn attaching_to_a_run_that_takes_no_more_signals_is_refused() {
    let mut settings = config();
    settings.signals.max_unread = 1;
    let api = Api::with(World::keyed().await, settings).await;
    api.deploy("noop", json!({})).await;
    let mut body = named("order-1", Some("attach"));
    body["signal"] = json!({ "name": "go" });
    let run = fresh(&start(&api.acme, "noop", &body).await);
    let refused = start(&api.acme, "noop", &body).await;
    refused.refused(429, "rate_limited");
    assert!(!refused.header("retry-after").is_empty(), "{refused:?}");
    assert_eq!(
        first(&api, Some("attach")).await.expect(200)["run_id"],
        json!(run),
        "without a signal it is attached to"
    );
}

/// F-I01.
#[tokio::test(flavor = "multi_thread")]
async fn of_starts_of_one_name_at_once_one_starts() {
    let api = noops().await;
    for round in 0..10 {
        let name = format!("order-{round}");
        let mut starts = JoinSet::new();
        for reuse in ["reject", "reject", "reject_alive", "attach"] {
            let (acme, body) = (api.acme.clone(), named(&name, Some(reuse)));
            starts.spawn(async move { (reuse, start(&acme, "noop", &body).await) });
        }
        let answers = starts.join_all().await;
        let started: Vec<String> =
            answers.iter().filter(|(_, answer)| answer.status == 201).map(|(_, answer)| fresh(answer)).collect();
        assert_eq!(started.len(), 1, "{answers:?}");
        for (reuse, answer) in answers.iter().filter(|(_, answer)| answer.status != 201) {
            match *reuse {
                "attach" => assert_eq!(answer.expect(200)["run_id"], json!(started[0])),
                _ => taken_by(answer, "run_already_active", &started[0]),
            }
        }
        assert_eq!(whole_list(&api.acme.get(&format!("/v1/runs?run_name={name}")).await).len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_and_its_policy_have_a_grammar() {
    let api = noops().await;
    let wrong = [
        named("", None),
        named(&"x".repeat(257), None),
        named("a\nb", None),
        named("a\0b", None),
        named("a", Some("never")),
        json!({ "run_name": 1 }),
        json!({ "reuse": "allow" }),
        json!({ "reuse": "attach", "run_name": null }),
    ];
    for body in wrong {
        start(&api.acme, "noop", &body).await.refused(400, "validation_error");
    }
    assert!(whole_list(&api.acme.get("/v1/runs").await).is_empty());
    for name in ["x".repeat(256), "Order №7 / a b".to_owned()] {
        let run = fresh(&start(&api.acme, "noop", &named(&name, None)).await);
        assert_eq!(api.run(&run).await["run_name"], json!(name));
    }
    let plain = start(&api.acme, "noop", &json!({ "input": 1 })).await.expect(201);
    assert_eq!(plain.get("started_fresh"), None, "a run without a name is always new");
}
