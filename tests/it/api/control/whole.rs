//! Holding back all runs of an activity or of a tenant, and the limits of a tenant. What is held back is kept, and
//! others go on.

use serde_json::{Value, json};

use super::super::client::Client;
use super::{Answer, Api, order};

async fn tell(client: &Client, path: &str) -> Answer {
    client.post(path, &json!({})).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runs_of_a_paused_activity_stay_queued() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    api.deploy("print", json!({})).await;
    let before = api.start("noop", json!(1)).await;
    for _ in 0..2 {
        assert_eq!(tell(&api.acme, "/v1/activities/noop/pause").await.expect(204), Value::Null);
    }
    let after = api.start("noop", json!(2)).await;
    let free = api.start("print", json!({ "lines": 1, "bytes": 1 })).await;
    api.world.work().await;
    for run in [&before, &after] {
        let shown = api.run(run).await;
        assert_eq!(
            (&shown["state"], &shown["paused"], &shown["attempts"]),
            (&json!("queued"), &json!(false), &json!(0))
        );
    }
    assert_eq!(api.run(&free).await["state"], "completed", "other activities go on");
    // A new version does not let it go on.
    api.deploy("noop", json!({})).await;
    api.world.work().await;
    assert_eq!(api.run(&before).await["state"], "queued");
    for _ in 0..2 {
        tell(&api.acme, "/v1/activities/noop/resume").await.expect(204);
    }
    api.work().await;
    for run in [&before, &after] {
        assert_eq!(api.ended(run).await["state"], "completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_pauses_an_activity() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let (other, admin) = (api.tenant("other").await, api.admin().await);
    let run = api.start("noop", json!(1)).await;
    for what in ["pause", "resume"] {
        let path = |name: &str| format!("/v1/activities/{name}/{what}");
        let (foreign, unknown) = (tell(&other, &path("noop")).await, tell(&other, &path("none")).await);
        assert_eq!(foreign.refused(404, "not_found"), unknown.refused(404, "not_found"));
        for name in ["none", "a%20b", "%00"] {
            tell(&api.acme, &path(name)).await.refused(404, "not_found");
        }
        tell(&admin, &path("noop")).await.refused(403, "forbidden");
        tell(&api.nobody(), &path("noop")).await.refused(401, "unauthenticated");
    }
    api.work().await;
    assert_eq!(api.ended(&run).await["state"], "completed", "nobody has paused it");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_runs_of_a_paused_tenant_stay_queued_and_only_an_administrator_pauses_it() {
    let api = Api::idle().await;
    let version = api.deploy("noop", json!({})).await;
    let (other, admin) = (api.tenant("other").await, api.admin().await);
    other.upload(crate::harness::component(super::super::GUESTS)).await.expect(201);
    other.put("/v1/activities/noop", &json!({ "module": version["module"] })).await.expect(201);
    for what in ["pause", "resume"] {
        tell(&api.acme, &format!("/v1/tenants/acme/{what}")).await.refused(403, "forbidden");
        tell(&api.nobody(), &format!("/v1/tenants/acme/{what}")).await.refused(401, "unauthenticated");
        for tenant in ["none", "_admin", "A", "%00"] {
            tell(&admin, &format!("/v1/tenants/{tenant}/{what}")).await.refused(404, "not_found");
        }
    }
    assert_eq!(tell(&admin, "/v1/tenants/acme/pause").await.expect(204), Value::Null);
    assert_eq!(admin.get("/v1/tenants/acme/limits").await.expect(200), bounds(Value::Null, true));
    let run = api.start("noop", json!(1)).await;
    let started = other.post("/v1/activities/noop/runs", &json!({})).await.expect(201);
    api.world.work().await;
    assert_eq!(api.run(&run).await["state"], "queued");
    let path = format!("/v1/runs/{}", started["run_id"].as_str().unwrap());
    assert_eq!(other.get(&path).await.expect(200)["state"], "completed", "other tenants go on");
    // What waits can still be cancelled.
    let second = api.start("noop", json!(2)).await;
    order(&api.acme, &second, "cancel").await.expect(200);
    tell(&admin, "/v1/tenants/acme/resume").await.expect(204);
    assert_eq!(admin.get("/v1/tenants/acme/limits").await.expect(200)["paused"], false);
    api.work().await;
    assert_eq!(api.ended(&run).await["state"], "completed");
}

/// The limits of a tenant that has at most one.
fn bounds(max_running: Value, paused: bool) -> Value {
    let mut limits = crate::api::tenant_limits::none();
    limits["max_running"] = max_running;
    limits["paused"] = json!(paused);
    limits
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenants_limits_are_set_whole_shown_and_kept_to() {
    let api = Api::idle().await;
    api.deploy("noop", json!({})).await;
    let admin = api.admin().await;
    let path = "/v1/tenants/acme/limits";
    let limits = |most: Value| bounds(most, false);
    assert_eq!(admin.get(path).await.expect(200), limits(Value::Null));
    for most in [json!(2_147_483_647), json!(1), json!(0)] {
        assert_eq!(admin.put(path, &json!({ "max_running": most })).await.expect(200), limits(most.clone()));
        assert_eq!(admin.get(path).await.expect(200), limits(most));
    }
    let run = api.start("noop", json!(1)).await;
    api.world.work().await;
    assert_eq!(api.run(&run).await["state"], "queued", "none may run");
    for wrong in [json!(-1), json!(1.5), json!("1"), json!(2_147_483_648_u64), json!([])] {
        admin.put(path, &json!({ "max_running": wrong })).await.refused(400, "validation_error");
    }
    admin.put(path, &json!({ "colour": 1 })).await.refused(400, "validation_error");
    assert_eq!(admin.get(path).await.expect(200), limits(json!(0)));
    // What is left out is no limit.
    assert_eq!(admin.put(path, &json!({})).await.expect(200), limits(Value::Null));
    api.work().await;
    assert_eq!(api.ended(&run).await["state"], "completed");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_an_administrator_sees_and_sets_limits_and_only_of_tenants() {
    let api = Api::idle().await;
    let admin = api.admin().await;
    let body = json!({ "max_running": 1 });
    for (client, status, code) in [(&api.acme, 403, "forbidden"), (&api.nobody(), 401, "unauthenticated")] {
        client.get("/v1/tenants/acme/limits").await.refused(status, code);
        client.put("/v1/tenants/acme/limits", &body).await.refused(status, code);
    }
    for tenant in ["none", "_admin", "A", "%00"] {
        let path = format!("/v1/tenants/{tenant}/limits");
        admin.get(&path).await.refused(404, "not_found");
        admin.put(&path, &body).await.refused(404, "not_found");
    }
    assert_eq!(admin.get("/v1/tenants/acme/limits").await.expect(200)["max_running"], Value::Null);
}
