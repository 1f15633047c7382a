//! For what a key counts: one tenant, one operation with the parameters of its path. Nothing that the host makes lives
//! beside it.

use super::super::GUESTS;
use super::*;
use crate::harness::component;

/// R-K08, R-K10, R-Z06, F-A08.
#[tokio::test(flavor = "multi_thread")]
async fn one_key_on_two_operations_is_two_records() {
    let api = noops().await;
    api.deploy("print", json!({})).await;
    let (key, body) = (fresh_key(), json!({ "input": { "lines": 1, "bytes": 1 } }));
    let noop = twice(&Ask::start(&api.acme, &body).key(&key), 201).await;
    let print = twice(&Ask::post(&api.acme, "/v1/activities/print/runs", &body).key(&key), 201).await;
    assert_eq!((&noop.json()["activity"], &print.json()["activity"]), (&json!("noop"), &json!("print")));
    let (noop, print) = (run_of(&noop), run_of(&print));
    let signalling = Ask::post(&api.acme, &format!("/v1/runs/{noop}/signals/go"), &body).key(&key);
    assert_eq!(done(&signalling.send().await, 202), json!({ "signal_delivered": true }));
    for what in ["pause", "resume", "cancel"] {
        let path = format!("/v1/runs/{noop}/{what}");
        assert_eq!(twice(&Ask::new(&api.acme, Method::POST, &path).key(&key), 200).await.json()["run_id"], json!(noop));
    }
    // The host profile's start is an operation of its own.
    let hosted = Ask::post(&api.acme, "/runs", &json!({ "workflowId": "noop" })).key(&key);
    let hosted = twice(&hosted, 201).await.json()["runId"].as_str().unwrap().to_owned();
    assert!(hosted.starts_with("acme/") && !hosted.ends_with(&noop) && !hosted.ends_with(&print));
    assert_eq!(runs(&api).await.len(), 3);
    assert_eq!(api.run(&print).await["state"], "queued", "only the other one was cancelled");
}

/// R-K29: the same operation on another run is another request, not a repeat and not a mismatch.
#[tokio::test(flavor = "multi_thread")]
async fn one_key_on_two_runs_is_two_records() {
    let api = noops().await;
    let key = fresh_key();
    let all = [api.start("noop", json!(1)).await, api.start("noop", json!(2)).await];
    for run in &all {
        let cancelling = Ask::new(&api.acme, Method::POST, &format!("/v1/runs/{run}/cancel")).key(&key);
        assert_eq!(twice(&cancelling, 200).await.json()["run_id"], json!(run));
        assert_eq!(api.run(run).await["state"], "cancelled");
    }
    let names = ["a", "b"].map(|name| format!("/v1/secrets/{name}"));
    for name in &names {
        twice(&Ask::put(&api.acme, name, &json!({ "value": name })).key(&key), 204).await;
    }
    assert_eq!(whole_list(&api.acme.get("/v1/secrets").await).len(), 2);
}

/// R-K29: a path can be spelled in many ways.
#[tokio::test(flavor = "multi_thread")]
async fn another_spelling_of_the_path_is_the_same_operation() {
    let api = noops().await;
    let (key, body) = (fresh_key(), json!({ "input": 1 }));
    let first = twice(&Ask::start(&api.acme, &body).key(&key), 201).await;
    for path in ["/v1/activities/no%6Fp/runs", "/v1/activities/%6e%6F%6f%70/runs", "/v1/activities/noop/runs?"] {
        replays(&Ask::post(&api.acme, path, &body).key(&key).send().await, &first);
    }
    let run = run_of(&first);
    let cancelled = twice(&Ask::new(&api.acme, Method::POST, &format!("/v1/runs/{run}/cancel")).key(&key), 200).await;
    let spelled = format!("/v1/runs/{}/cancel", run.replace('-', "%2D"));
    replays(&Ask::new(&api.acme, Method::POST, &spelled).key(&key).send().await, &cancelled);
    assert_eq!(runs(&api).await, [run]);
}

/// A second tenant with an activity `noop` of its own.
async fn neighbour(api: &Api) -> Client {
    let other = api.tenant("other").await;
    let module = other.upload(component(GUESTS)).await.json()["digest"].clone();
    other.put("/v1/activities/noop", &json!({ "module": module })).await.expect(201);
    other
}

/// R-K08, R-K10, F-A10.
#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_use_one_key_without_meeting() {
    let api = noops().await;
    let other = neighbour(&api).await;
    let asks = [Ask::start(&api.acme, &json!({ "input": "x" })).key(&fresh_key())];
    // The shortest key of all is the likeliest to be two callers' at once.
    let asks = asks.into_iter().chain([Ask::start(&api.acme, &json!({ "input": "x" })).key("1").lenient()]);
    for ask in asks {
        let mine = ask.send().await;
        done(&mine, 201);
        let theirs = ask.clone().by(&other).send().await;
        done(&theirs, 201);
        let (my_run, their_run) = (run_of(&mine), run_of(&theirs));
        assert_ne!(my_run, their_run);
        assert!(!theirs.text.contains(&my_run) && !theirs.header("location").contains(&my_run));
        api.acme.get(&format!("/v1/runs/{their_run}")).await.refused(404, "not_found");
        other.get(&format!("/v1/runs/{my_run}")).await.refused(404, "not_found");
    }
    // What the one has asked before does not make the other's request another.
    let key = fresh_key();
    twice(&Ask::start(&api.acme, &json!({ "input": "mine" })).key(&key), 201).await;
    twice(&Ask::start(&other, &json!({ "input": "theirs" })).key(&key), 201).await;
    assert_eq!((runs(&api).await.len(), whole_list(&other.get("/v1/runs").await).len()), (3, 3));
}

/// R-K09: the credential says whose record it is, and no word of the body.
#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_named_in_the_body_opens_no_record() {
    let api = noops().await;
    let other = neighbour(&api).await;
    let key = fresh_key();
    let theirs = json!({ "workflowId": "noop", "tenantId": "other" });
    let plain = json!({ "workflowId": "noop" });
    let run = twice(&Ask::post(&other, "/runs", &plain).key(&key), 201).await.json()["runId"].clone();
    let run = run.as_str().unwrap().trim_start_matches("other/").to_owned();
    for (path, body) in [
        ("/runs", theirs),
        ("/runs", plain),
        (NOOP, json!({ "tenant": "other" })),
        ("/v1/activities/noop/runs?tenant=other", json!({})),
    ] {
        let answer = Ask::post(&api.acme, path, &body).key(&key).send().await;
        assert!(answer.status < 500 && !is_replay(&answer) && !answer.text.contains(&run), "{answer:?}");
        assert_ne!(answer.json()["error"], "idempotency_key_mismatch", "{answer:?}");
    }
    assert_eq!(whole_list(&other.get("/v1/runs").await).len(), 1);
}

/// R-K12: a caller who knows all that the host has made finds none of it under his key, and changes none of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_looks_like_one_of_the_hosts_own_is_only_a_key() {
    let api = noops().await;
    api.deploy("send", api.policy("stripe")).await;
    let run = api.start("send", json!({ "calls": [api.charge("a")] })).await;
    api.work().await;
    let before = api.effects_of(&run).await.remove(0);
    let text = |name: &str| before[name].as_str().unwrap().to_owned();
    let uuid = Uuid::parse_str(&run).unwrap();
    let run_key = deedbox::key::run_key("acme", uuid).text();
    let first = run_of(&twice(&Ask::start(&api.acme, &json!({})).key(&fresh_key()), 201).await);
    let kept: String = sqlx::query_scalar("select encode(record, 'hex') from request_keys")
        .fetch_one(&mut api.world.database.connect().await)
        .await
        .unwrap();
    let mut keys = vec![run.clone(), text("effect_id"), text("wire_key"), run_key, first, kept];
    keys.push(uuid.simple().to_string());
    for key in &keys {
        let input = json!({ "calls": [api.charge("a")] });
        let sending = Ask::post(&api.acme, "/v1/activities/send/runs", &json!({ "input": input })).key(key);
        let own = run_of(&twice(&sending, 201).await);
        assert!(own != run, "{key}");
    }
    for key in
        ["conn:1", "schedule-fire:noop:1", "deedbox room acme/", "deedbox queue acme"].map(|key| key.replace(' ', "_"))
    {
        done(&Ask::start(&api.acme, &json!({})).lenient().key(&key).send().await, 201);
    }
    api.work().await;
    let applied = api.world.books.applied().await.unwrap();
    let mut wire_keys: Vec<_> = applied.iter().filter_map(|entry| entry.key.clone()).collect();
    wire_keys.sort();
    wire_keys.dedup();
    assert_eq!((applied.len(), wire_keys.len()), (1 + keys.len(), 1 + keys.len()));
    assert_eq!(api.effects_of(&run).await[0], before);
}
