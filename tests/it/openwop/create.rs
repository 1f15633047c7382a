//! Starting runs, looking at them and listing them.

use serde_json::{Value, json};

use super::{create, create_keyed, host, idle_with, run_path, schemas, settings, snapshot, until_status, whole_log};
use crate::api::client::Answer;

const KEY: &str = "openwop-create-0123456789";

#[tokio::test(flavor = "multi_thread")]
async fn a_start_answers_with_links_that_lead_to_the_run() {
    let api = host().await;
    let answer = api.acme.post("/runs", &json!({ "workflowId": "conformance-noop" })).await;
    let created = answer.expect(201);
    let id = schemas::created(&created);
    assert!(id.starts_with("acme/"), "{id}");
    assert_eq!(answer.header("location"), created["statusUrl"]);
    assert_eq!(schemas::snapshot(&api.acme.get(created["statusUrl"].as_str().unwrap()).await.expect(200))["runId"], id);
    let stream = api.acme.get(created["eventsUrl"].as_str().unwrap()).await;
    assert_eq!((stream.status, stream.header("content-type")), (200, "text/event-stream"));
    let ended = until_status(&api.acme, &id, "completed").await;
    assert_eq!((&ended["workflowId"], &ended["owner"]["tenant"]), (&json!("conformance-noop"), &json!("acme")));
    assert!(ended["startedAt"].as_str() <= ended["completedAt"].as_str(), "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fixtures_end_as_they_should() {
    let api = host().await;
    let failing = create(&api.acme, "conformance-failure", json!({})).await;
    let delayed = create(&api.acme, "conformance-delay", json!({ "delayMs": 300 })).await;
    let failed = until_status(&api.acme, &failing, "failed").await;
    let error = json!({ "code": "deedbox.conformance_failure", "message": "this workflow always fails" });
    assert_eq!(failed["error"], error);
    let log = whole_log(&api.acme, &failing).await;
    let told = json!({ "code": "deedbox.conformance_failure", "message": "the run failed" });
    assert_eq!(log.last().unwrap()["payload"], json!({ "error": told, "failedNodeId": "conformance-failure" }));
    let ended = until_status(&api.acme, &delayed, "completed").await;
    let at = |name: &str| chrono::DateTime::parse_from_rfc3339(ended[name].as_str().unwrap()).unwrap();
    assert!((at("completedAt") - at("startedAt")).num_milliseconds() >= 300, "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tags_and_metadata_come_back_as_they_were_said() {
    let api = host().await;
    let tags: Vec<String> = (0..12).map(|n| format!("tag {n}")).collect();
    let body = json!({ "workflowId": "conformance-noop", "tags": tags, "metadata": { "team": "red" }, "scopeId": "s" });
    let id = schemas::created(&api.acme.post("/runs", &body).await.expect(201));
    let run = snapshot(&api.acme, &id).await;
    assert_eq!((&run["tags"], &run["metadata"]), (&json!(tags), &json!({ "team": "red" })));
    // They are labels, so that native lists know them.
    let native = api.acme.get("/v1/runs?label=openwop.scope:s").await.expect(200);
    assert_eq!(native["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_started_is_refused_and_starts_nothing() {
    let api = idle_with(settings()).await;
    let noop = |more: Value| {
        let mut body = json!({ "workflowId": "conformance-noop" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let long = "x".repeat(300);
    let cases = [
        (json!({}), 400, "validation_error"),
        (json!({ "workflowId": 7 }), 400, "validation_error"),
        (json!({ "workflowId": "nobody-knows" }), 404, "not_found"),
        (json!({ "workflowId": "a b" }), 404, "not_found"),
        (noop(json!({ "inputs": [] })), 400, "validation_error"),
        (noop(json!({ "unknown": 1 })), 400, "validation_error"),
        (noop(json!({ "tags": [long] })), 400, "validation_error"),
        (noop(json!({ "tags": vec!["x"; 21] })), 400, "validation_error"),
        (noop(json!({ "metadata": { "n": 1 } })), 400, "validation_error"),
        (noop(json!({ "tenantId": "other" })), 403, "id_tenant_mismatch"),
        (noop(json!({ "mode": "eval", "evalSuiteRef": "s", "agentId": "a" })), 422, "capability_not_provided"),
        (noop(json!({ "callbackUrl": "https://example.com/" })), 400, "validation_error"),
        (noop(json!({ "residency": { "region": "eu" } })), 422, "capability_not_provided"),
        (noop(json!({ "configurable": { "version": 1 } })), 422, "capability_not_provided"),
    ];
    for (body, status, code) in cases {
        api.acme.post("/runs", &body).await.refused(status, code);
    }
    assert_eq!(api.acme.get("/runs").await.expect(200)["runs"], json!([]));
    schemas::created(&api.acme.post("/runs", &noop(json!({ "tenantId": "acme" }))).await.expect(201));
}

/// It is said before the body is understood, and never kept under a key.
#[tokio::test(flavor = "multi_thread")]
async fn no_token_can_force_another_engine_version() {
    let api = idle_with(settings()).await;
    for body in [json!({ "workflowId": "conformance-noop" }), json!(7)] {
        let request = api.acme.request(reqwest::Method::POST, "/runs").header("openwop-force-engine-version", "1");
        let refused = api.acme.send(request.header("idempotency-key", KEY).json(&body)).await;
        refused.refused(403, "force_engine_version_forbidden");
    }
    assert_eq!(api.acme.get("/runs").await.expect(200)["runs"], json!([]));
    schemas::created(&create_keyed(&api.acme, KEY, &json!({ "workflowId": "conformance-noop" })).await.expect(201));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_of_a_scope_lives_where_that_is_enforced() {
    let api = idle_with(settings()).await;
    let start = async |client: &crate::api::client::Client, workflow: &str, scope: &str, enforce: bool| -> Answer {
        let request = client.request(reqwest::Method::POST, "/runs");
        let request = if enforce { request.header("OpenWOP-Dedup", "enforce") } else { request };
        client.send(request.json(&json!({ "workflowId": workflow, "scopeId": scope }))).await
    };
    let id = schemas::created(&start(&api.acme, "conformance-noop", "order-42", true).await.expect(201));
    for workflow in ["conformance-noop", "conformance-delay"] {
        let taken = start(&api.acme, workflow, "order-42", true).await;
        let body = taken.refused(409, "run_already_active");
        assert_eq!(body["details"]["runId"], id);
        assert!(taken.header("retry-after").parse::<u32>().unwrap() > 0);
    }
    start(&api.acme, "conformance-noop", "order-43", true).await.expect(201);
    start(&api.acme, "conformance-noop", "order-42", false).await.expect(201);
    let other = api.tenant("other").await;
    deedbox::api::openwop::fixtures::install(api.world.node.registry(), api.world.node.store(), "other").await.unwrap();
    start(&other, "conformance-noop", "order-42", true).await.expect(201);
    api.acme.post(&format!("{}/cancel", run_path(&id)), &json!({})).await.expect(200);
    start(&api.acme, "conformance-delay", "order-42", true).await.expect(201);
    let request = api.acme.request(reqwest::Method::POST, "/runs").header("OpenWOP-Dedup", "perhaps");
    api.acme.send(request.json(&json!({ "workflowId": "conformance-noop" }))).await.refused(400, "validation_error");
}

/// Starts of one scope that meet, whatever their workflow.
#[tokio::test(flavor = "multi_thread")]
async fn of_starts_that_meet_in_a_scope_one_is_made() {
    let api = idle_with(settings()).await;
    let start = |n: usize| {
        let workflow = ["conformance-noop", "conformance-delay"][n % 2];
        let request = api.acme.request(reqwest::Method::POST, "/runs").header("OpenWOP-Dedup", "enforce");
        api.acme.send(request.json(&json!({ "workflowId": workflow, "scopeId": "crowd" })))
    };
    let answers = futures_util::future::join_all((0..10).map(start)).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 1, "{answers:?}");
    answers.iter().filter(|answer| answer.status != 201).for_each(|taken| {
        taken.refused(409, "run_already_active");
    });
}

/// A refusal that says when to come back is not kept with its key.
#[tokio::test(flavor = "multi_thread")]
async fn a_scope_that_was_taken_is_asked_for_again_under_the_same_key() {
    let api = idle_with(settings()).await;
    let start = |key: &str| {
        let request = api.acme.request(reqwest::Method::POST, "/runs").header("OpenWOP-Dedup", "enforce");
        request.header("idempotency-key", key).json(&json!({ "workflowId": "conformance-noop", "scopeId": "s" }))
    };
    let id = api.acme.send(start(KEY)).await.expect(201)["runId"].as_str().unwrap().to_owned();
    let other = "openwop-other-0123456789ab";
    let first = api.acme.send(start(other)).await;
    first.refused(409, "run_already_active");
    let again = api.acme.send(start(other)).await;
    assert_eq!((again.status, &again.text), (409, &first.text));
    assert!([first, again].iter().all(|answer| !answer.header("retry-after").is_empty()));
    api.acme.post(&format!("{}/cancel", run_path(&id)), &json!({})).await.expect(200);
    assert_ne!(api.acme.send(start(other)).await.expect(201)["runId"], json!(id));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_did_not_change_is_not_sent_again() {
    let api = idle_with(settings()).await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    let tag = api.acme.get(&run_path(&id)).await.header("etag").to_owned();
    let ask = || api.acme.request(reqwest::Method::GET, &run_path(&id)).header("if-none-match", &tag);
    assert_eq!(api.acme.send(ask()).await.status, 304);
    api.begin_working();
    until_status(&api.acme, &id, "completed").await;
    assert_eq!(api.acme.send(ask()).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_newest_first_and_page_by_page() {
    let api = idle_with(settings()).await;
    let mut ids = Vec::new();
    for n in 0..5 {
        let workflow = if n == 2 { "conformance-delay" } else { "conformance-noop" };
        ids.push(create(&api.acme, workflow, json!({})).await);
    }
    ids.reverse();
    let other = api.tenant("other").await;
    assert_eq!(other.get("/runs").await.expect(200), json!({ "runs": [] }));
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = schemas::list(&api.acme.get(&format!("/runs?limit=2{cursor}")).await.expect(200));
        seen.extend(page["runs"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap().to_owned()));
        let Some(next) = page["nextCursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, ids);
    let filtered = api.acme.get("/runs?workflowId=conformance-delay&status=whatever").await.expect(200);
    assert_eq!(filtered["runs"][0]["runId"], ids[2]);
    assert_eq!(filtered["runs"].as_array().unwrap().len(), 1, "a filter that is not offered is passed over");
    assert_eq!(api.acme.get("/runs?workflowId=a%20b").await.expect(200), json!({ "runs": [] }));
    for wrong in ["cursor=x", "cursor=", "limit=0", "limit=x"] {
        api.acme.get(&format!("/runs?{wrong}")).await.refused(400, "validation_error");
    }
}

/// R-K08: the operation of a key is the routed one, so that the native start is another.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_the_profile_is_not_the_native_ones() {
    let api = idle_with(settings()).await;
    let id =
        schemas::created(&create_keyed(&api.acme, KEY, &json!({ "workflowId": "conformance-noop" })).await.expect(201));
    let request = api.acme.request(reqwest::Method::POST, "/v1/activities/conformance-noop/runs");
    let native = api.acme.send(request.header("idempotency-key", KEY).json(&json!({}))).await.expect(201);
    assert_ne!(format!("acme/{}", native["run_id"].as_str().unwrap()), id);
}
