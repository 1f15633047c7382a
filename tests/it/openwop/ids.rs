//! Ids are bound to their tenant: however they are spelled, another tenant's lead nowhere and tell nothing.

use proptest::prelude::*;
use reqwest::Method;
use serde_json::{Value, json};

use super::{create, idle_with, run_path, segment, settings};
use crate::api::client::{Answer, Client};
use crate::api::no_run;

/// Every route that takes an id, with its method; `RUN` stands for the id's segment.
const ROUTES: [(&str, &str); 7] = [
    ("GET", "/runs/RUN"),
    ("GET", "/runs/RUN/events"),
    ("GET", "/runs/RUN/events/poll?timeout=1"),
    ("GET", "/runs/RUN/effects"),
    ("POST", "/runs/RUN/cancel"),
    ("POST", "/runs/RUN:pause"),
    ("POST", "/runs/RUN:resume"),
];

async fn ask(client: &Client, (method, path): (&str, &str), segment: &str) -> Answer {
    let path = path.replace("RUN", segment);
    match method {
        "GET" => client.get(&path).await,
        _ => client.raw(Method::POST, &path, None, Vec::new()).await,
    }
}

/// Scenario 6. R-K09: whether or not there is such a run, the answer is the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_id_of_another_tenant_is_refused_in_the_same_words_whether_or_not_it_exists() {
    let api = idle_with(settings()).await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    let other = api.tenant("other").await;
    let unknown = format!("acme/{}", no_run());
    for route in ROUTES {
        let mut bodies = Vec::new();
        for foreign in [segment(&id), id.replace('/', "%2F"), segment(&unknown), "nobody~2Fx".into(), "acme~2F".into()]
        {
            bodies.push(ask(&other, route, &foreign).await.refused(403, "id_tenant_mismatch"));
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]), "{route:?}: {bodies:?}");
        ask(&other, route, &segment(&format!("other/{}", no_run()))).await.refused(404, "not_found");
        ask(&api.nobody(), route, &segment(&id)).await.refused(401, "unauthenticated");
    }
    let body = json!({ "runIds": [id, unknown] });
    let results = other.post("/runs:bulk-cancel", &body).await.expect(200)["results"].clone();
    let errors: Vec<&Value> = results.as_array().unwrap().iter().map(|entry| &entry["error"]).collect();
    assert!(errors[0] == errors[1] && errors[0]["error"] == "id_tenant_mismatch", "{results}");
    assert_eq!(api.acme.get(&run_path(&id)).await.expect(200)["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_id_of_this_host_is_told_so() {
    let api = idle_with(settings()).await;
    let id = create(&api.acme, "conformance-noop", json!({})).await;
    let run = id.strip_prefix("acme/").unwrap();
    let malformed = [format!("acme~2f{run}"), format!("acme~G0{run}"), format!("acme~2F{run}~"), "~FF".to_owned()];
    for route in ROUTES {
        for wrong in malformed.iter().chain([&run.to_owned(), &"x".to_owned()]) {
            ask(&api.acme, route, wrong).await.refused(400, "validation_error");
        }
        for unknown in [format!("acme~2F{}", no_run()), format!("acme~2F{}", run.to_uppercase()), "acme~2Fx".into()] {
            ask(&api.acme, route, &unknown).await.refused(404, "not_found");
        }
    }
    for spelled in [segment(&id), format!("acme%2F{run}"), format!("%61cme~2F{run}"), format!("~61cme%2f{run}")] {
        assert_eq!(api.acme.get(&format!("/runs/{spelled}")).await.expect(200)["runId"], id, "{spelled}");
    }
}

proptest! {
    /// What the client makes of an id is one segment that a router takes for one.
    #[test]
    fn a_projected_id_is_one_plain_segment(id in "[a-z0-9][a-z0-9-]{0,62}/[0-9a-f-]{36}") {
        let one = segment(&id);
        prop_assert!(!one.contains(['/', '%', '?', '#', ':', ' ']));
        prop_assert_eq!(one.replace("~2F", "/"), id);
    }
}
