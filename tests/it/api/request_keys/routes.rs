//! Every route that changes something honours a key, and none that only looks does. The routes are those that the
//! server describes, so that a new one cannot forget.

use super::super::described::Operation;
use super::*;

/// A provider's delivery brings a key of the provider's own making.
const DELIVERIES: &str = "POST /v1/hooks/";

/// Routes that must be among them.
const CHANGES: [&str; 35] = [
    "POST /v1/modules",
    "DELETE /v1/modules/{}",
    "PUT /v1/modules/{}/signature",
    "PUT /v1/activities/{}",
    "DELETE /v1/activities/{}",
    "POST /v1/activities/{}/pause",
    "POST /v1/activities/{}/resume",
    "POST /v1/activities/{}/runs",
    "POST /v1/runs/cancel",
    "POST /v1/runs/{}/cancel",
    "POST /v1/runs/{}/pause",
    "POST /v1/runs/{}/resume",
    "POST /v1/runs/{}/retry",
    "POST /v1/runs/{}/signals/{}",
    "POST /v1/runs/{}/callback/redeliver",
    "POST /v1/effects/{}/resolve",
    "PUT /v1/secrets/{}",
    "DELETE /v1/secrets/{}",
    "PUT /v1/providers/{}",
    "DELETE /v1/providers/{}",
    "PUT /v1/hooks/{}",
    "DELETE /v1/hooks/{}",
    "POST /v1/tenants",
    "PUT /v1/tenants/{}/limits",
    "PUT /v1/tenants/{}/signers/{}",
    "DELETE /v1/tenants/{}/signers/{}",
    "POST /v1/tenants/{}/pause",
    "POST /v1/tenants/{}/resume",
    "POST /v1/tenants/{}/tokens",
    "DELETE /v1/tenants/{}/tokens/{}",
    "POST /runs",
    "POST /runs:bulk-cancel",
    "POST /runs/{}/cancel",
    "POST /runs/{}:pause",
    "POST /runs/{}:resume",
];

/// R-K03, R-K07: a route that does not know what a key is would not see that this is none.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_that_changes_something_looks_at_the_key() {
    let api = noops().await;
    let admin = api.admin().await;
    let changes: Vec<Operation> = Operation::all(&api)
        .await
        .into_iter()
        .filter(|one| one.method != Method::GET && !one.name().starts_with(DELIVERIES))
        .collect();
    let names: Vec<String> = changes.iter().map(Operation::name).collect();
    let missing: Vec<_> = CHANGES.iter().filter(|known| !names.iter().any(|name| name == *known)).collect();
    assert!(missing.is_empty(), "not described: {missing:?}; there are {names:?}");
    for change in changes {
        for wrong in ["short", ""] {
            let request = change.request(change.caller(&api.acme, &admin), &change.path());
            let answer = api.acme.send(request.header("idempotency-key", wrong)).await;
            assert_eq!(answer.status, 400, "{}: {answer:?}", change.name());
            answer.refused(400, "idempotency_key_invalid");
        }
    }
    assert_eq!(records(&api).await, 0);
}

/// R-K03: of each of these routes an answer of before is given once more, if it is one that is kept.
#[tokio::test(flavor = "multi_thread")]
async fn every_route_that_changes_something_keeps_its_final_answers() {
    let api = noops().await;
    let admin = api.admin().await;
    let mut kept = 0;
    for change in Operation::all(&api).await {
        // A signal's key is a part of the signal, and an unknown run has none.
        let own_record = change.template.contains("/signals/") || change.name().starts_with(DELIVERIES);
        if change.method == Method::GET || own_record {
            continue;
        }
        // The ids in a path are new ones each time.
        let (key, path, caller) = (fresh_key(), change.path(), change.caller(&api.acme, &admin));
        let ask = async || caller.send(change.request(caller, &path).header("idempotency-key", &key)).await;
        let answers = [ask().await, ask().await];
        let final_one = matches!(answers[0].status, 200..=299 | 404 | 409 | 422);
        assert!(answers[0].status < 500, "{}: {:?}", change.name(), answers[0]);
        assert!(!is_replay(&answers[0]));
        if final_one {
            replays(&answers[1], &answers[0]);
            kept += 1;
        } else {
            assert!(!is_replay(&answers[1]), "{}: {:?}", change.name(), answers[1]);
        }
    }
    assert!(kept >= 15, "hardly any route came to a final answer: {kept}");
}

/// R-K04.
#[tokio::test(flavor = "multi_thread")]
async fn a_route_that_only_looks_never_looks_at_the_key() {
    let api = noops().await;
    let admin = api.admin().await;
    let key = fresh_key();
    for look in Operation::all(&api).await.into_iter().filter(|one| one.method == Method::GET && !one.streams) {
        let (caller, path) = (look.caller(&api.acme, &admin), look.path());
        let plain = caller.send(look.request(caller, &path)).await;
        for value in [key.as_str(), key.as_str(), "short", ""] {
            let answer = caller.send(look.request(caller, &path).header("idempotency-key", value)).await;
            assert_eq!(answer.status, plain.status, "{}: {answer:?}", look.name());
            assert!(!is_replay(&answer), "{}: {answer:?}", look.name());
        }
    }
    assert_eq!(records(&api).await, 0, "a look was kept");
    // What has changed is seen, whatever was answered to the same key before.
    let look = |path: &str| Ask::new(&api.acme, Method::GET, path).key(&key);
    assert!(whole_list(&look("/v1/runs").send().await).is_empty());
    let run = api.start("noop", json!(1)).await;
    assert_eq!(whole_list(&look("/v1/runs").send().await).len(), 1);
    assert_eq!(look(&format!("/v1/runs/{run}")).send().await.expect(200)["state"], "queued");
    api.work().await;
    assert_eq!(look(&format!("/v1/runs/{run}")).send().await.expect(200)["state"], "completed");
    // The key is as free as before.
    done(&Ask::start(&api.acme, &json!({})).key(&key).send().await, 201);
}
