//! `deedbox up --openwop-fixtures`: a machine of one's own that conformance suites can be pointed at.

use serde_json::json;

use super::{create, until_status};
use crate::api::client::Client;
use crate::cli::program::{Running, deedbox, place};

async fn up(data: &std::path::Path, more: &[&str]) -> (Running, String, String) {
    let mut arguments = vec!["--json", "up", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()];
    arguments.extend(more);
    let mut running = Running::start(deedbox(&arguments), data.with_extension("log"));
    let said: serde_json::Value = serde_json::from_str(&running.line().await).unwrap();
    let text = |name: &str| said[name].as_str().unwrap().to_owned();
    (running, text("address"), text("token"))
}

#[tokio::test(flavor = "multi_thread")]
async fn up_deploys_the_fixtures_where_it_is_asked_to_and_does_it_once() {
    let place = place();
    let data = place.path().join("d");
    for start in 1..=2 {
        let (running, address, token) = up(&data, &["--openwop-fixtures"]).await;
        let client = Client::new(&address, Some(token));
        let document = client.get("/.well-known/openwop").await.expect(200);
        assert_eq!(document["fixtures"].as_array().unwrap().len(), 3);
        let ends =
            [("conformance-noop", "completed"), ("conformance-delay", "completed"), ("conformance-failure", "failed")];
        for (workflow, status) in ends {
            let id = create(&client, workflow, json!({ "delayMs": 10 })).await;
            assert!(id.starts_with("default/"), "{id}");
            until_status(&client, &id, status).await;
            let versions = client.get(&format!("/v1/activities/{workflow}")).await.expect(200)["versions"].clone();
            assert_eq!(versions.as_array().unwrap().len(), 1, "start {start}");
        }
        running.signal("TERM").await;
        assert_eq!(running.end().await.code, Some(0));
    }
    let (running, address, token) = up(&place.path().join("e"), &[]).await;
    let client = Client::new(&address, Some(token));
    assert!(client.get("/.well-known/openwop").await.expect(200).get("fixtures").is_none());
    client.post("/runs", &json!({ "workflowId": "conformance-noop" })).await.refused(404, "not_found");
    running.signal("TERM").await;
    running.end().await;
}
