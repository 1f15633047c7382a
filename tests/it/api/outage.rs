//! A database that is not there: the API says so, says nothing else, and goes on when it is back.

use std::time::Duration;

use deedbox::token;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio_util::sync::CancellationToken;

use super::client::{Answer, Client};
use super::{Api, no_hash, no_run, serve_alone};
use crate::harness::{Database, component};

/// The code, a time to come back, and no word of what is behind the API.
#[track_caller]
fn assert_unavailable(answer: &Answer) {
    let body = answer.refused(503, "runner_unavailable");
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(body["details"]["correlationId"], answer.header("x-request-id"));
    let text = body["message"].as_str().unwrap().to_lowercase();
    assert_eq!(body["details"].as_object().unwrap().len(), 1, "{body}");
    for word in
        ["sql", "postgres", "select", "socket", "os error", "connection", "pool", "relation", "127.0.0.1", "test_"]
    {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_says_that_the_database_is_away_and_nothing_of_it() {
    let stop = CancellationToken::new();
    let (origin, _away) = serve_alone(stop.clone()).await;
    let tenant = Client::new(&origin, Some(token::mint("acme").1));
    let admin = tenant.with_token(&token::mint("_admin").1);
    let (run, hash) = (no_run(), no_hash());
    let get = [
        "/v1/modules".to_owned(),
        format!("/v1/modules/{hash}"),
        "/v1/activities".to_owned(),
        "/v1/activities/a".to_owned(),
        "/v1/runs".to_owned(),
        format!("/v1/runs/{run}?wait=5"),
        format!("/v1/runs/{run}/attempts"),
        format!("/v1/runs/{run}/effects"),
        format!("/v1/runs/{run}/log"),
        "/v1/effects".to_owned(),
        format!("/v1/effects/{hash}"),
        "/v1/secrets".to_owned(),
        "/v1/providers".to_owned(),
        format!("/runs/acme~2F{run}/effects"),
        "/readyz".to_owned(),
    ];
    for path in get {
        assert_unavailable(&tenant.get(&path).await);
    }
    assert_unavailable(&tenant.upload(component("charge_once.wasm")).await);
    assert_unavailable(&tenant.post("/v1/activities/a/runs", &json!({})).await);
    assert_unavailable(&tenant.put("/v1/activities/a", &json!({ "module": hash })).await);
    assert_unavailable(&tenant.put("/v1/secrets/a", &json!({ "value": "x" })).await);
    assert_unavailable(&tenant.delete("/v1/secrets/a").await);
    assert_unavailable(&admin.get("/v1/tenants").await);
    assert_unavailable(&admin.post("/v1/tenants", &json!({ "tenant": "a" })).await);
    assert_unavailable(&admin.post("/v1/tenants/a/tokens", &json!({})).await);
    tenant.get("/healthz").await.expect(200);
    tenant.with_token("nonsense").get("/v1/runs").await.refused(401, "unauthenticated");
    stop.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_goes_on_when_its_database_is_back() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let run = api.start("noop", json!(1)).await;
    let waiting = tokio::spawn({
        let (acme, path) = (api.acme.clone(), format!("/v1/runs/{run}?wait=20"));
        async move { acme.get(&path).await }
    });
    let (mut server, name) = server_of(&api.world.database).await;
    let say = |sql: String| sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
    say(format!("alter database {name} with allow_connections false")).execute(&mut server).await.unwrap();
    let end = format!("select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'");
    say(end).execute(&mut server).await.unwrap();
    assert_unavailable(&waiting.await.unwrap());
    for path in ["/v1/runs", "/v1/effects", "/readyz"] {
        assert_unavailable(&api.acme.get(path).await);
    }
    api.acme.get("/healthz").await.expect(200);
    say(format!("alter database {name} with allow_connections true")).execute(&mut server).await.unwrap();
    let back = async {
        loop {
            let answer = api.acme.get("/readyz").await;
            if answer.status == 200 {
                break;
            }
            assert_unavailable(&answer);
        }
    };
    tokio::time::timeout(Duration::from_secs(10), back).await.unwrap();
    // The worker's own connections are gone as well: each says so once.
    while api.world.node.store().ping().await.is_err() {}
    api.work().await;
    assert_eq!(api.ended(&run).await["state"], "completed");
}

/// A session with the server's own database, and the name of the test's.
async fn server_of(database: &Database) -> (PgConnection, String) {
    let (path, query) = database.url.split_once('?').unwrap();
    let (server, name) = path.rsplit_once('/').unwrap();
    (PgConnection::connect(&format!("{server}/postgres?{query}")).await.unwrap(), name.to_owned())
}
