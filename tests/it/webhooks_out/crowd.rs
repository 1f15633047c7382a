//! Many messages, several nodes, several tenants.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use deedbox::probe;
use serde_json::json;

use super::{KEY, Stage, secret};
use crate::api::GUESTS;
use crate::api::client::{Client, whole_list};
use crate::harness::component;
use crate::worker::until;

const RUNS: usize = 12;

/// A tenant with runs that tell a receiver of their ends. The runs wait for a worker.
async fn neighbour(stage: &Stage, name: &str, origin: &str, runs: usize) -> Client {
    let client = stage.api.tenant(name).await;
    let module = client.upload(component(GUESTS)).await.json()["digest"].clone();
    let policy = json!({ "egress": { "allow": [origin] } });
    client.put("/v1/activities/noop", &json!({ "module": module, "policy": policy })).await.expect(201);
    client.put("/v1/secrets/webhook", &json!({ "value": secret(KEY) })).await.expect(204);
    for _ in 0..runs {
        let body = json!({ "callback": { "url": format!("{origin}/hooks?of=acme") } });
        client.post("/v1/activities/noop/runs", &body).await.expect(201);
    }
    client
}

/// Takes connections and says nothing, as long as it lives; with its origin.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    (listener, origin)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_at_once_deliver_each_message_once() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    for n in 0..RUNS {
        stage.start("noop", json!(n)).await;
    }
    stage.api.acme.post("/v1/runs/cancel", &json!({ "activity": "noop" })).await.expect(200);
    let other = stage.api.world.second("two", probe::none()).await;
    let all = async || whole_list(&stage.api.acme.get("/v1/callbacks?state=delivered").await).len() == RUNS;
    until("all are delivered", async || {
        let (one, two) = tokio::join!(stage.api.world.node.worker().run_once(), other.worker().run_once());
        one.and(two).unwrap();
        all().await
    })
    .await;
    let told = stage.told().await;
    let ids: BTreeSet<_> = told.iter().map(|told| &told.id).collect();
    assert_eq!((told.len(), ids.len()), (RUNS, RUNS));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_holds_up_only_its_own_tenant() {
    let stage = Stage::with(|settings| {
        settings.webhooks.send_ms = 120_000;
        settings.webhooks.max_sends = 5;
        settings.webhooks.max_tenant_sends = 4;
    })
    .await;
    let (silent, hanging) = silent();
    stage.api.deploy("noop", json!({ "egress": { "allow": [hanging] } })).await;
    for n in 0..RUNS {
        stage.asked("noop", &json!({ "input": n, "callback": { "url": hanging } })).await.expect(201);
    }
    stage.api.acme.post("/v1/runs/cancel", &json!({ "activity": "noop" })).await.expect(200);
    stage.api.begin_working();
    let sql = "select count(*) from callbacks where tenant = 'acme' and tries > 0";
    let tried = async || {
        let mut connection = stage.api.world.database.connect().await;
        sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut connection).await.unwrap()
    };
    until("the places of the tenant are taken", async || tried().await == 4).await;

    let beta = neighbour(&stage, "beta", &stage.api.world.origin(), RUNS).await;
    let delivered = async || whole_list(&beta.get("/v1/callbacks?state=delivered").await).len();
    until("the other tenant's messages are delivered", async || delivered().await == RUNS).await;
    assert_eq!((tried().await, stage.told().await.len()), (4, RUNS));
    drop(silent);
}

/// Five places, one for each tenant. The sixth that hangs is found out after two rounds of tries; from then on one place is
/// never theirs. In turn with six that hang, ten messages would take twelve rounds, and six at the very least.
#[tokio::test(flavor = "multi_thread")]
async fn more_receivers_that_hang_than_there_are_places_leave_one_to_the_others() {
    const ROUND: Duration = Duration::from_secs(3);
    const MESSAGES: usize = 10;
    let stage = Stage::with(|settings| {
        settings.webhooks.send_ms = 3_000;
        settings.webhooks.max_sends = 5;
        settings.webhooks.max_tenant_sends = 1;
    })
    .await;
    let (silent, hanging) = silent();
    let mut tenants = Vec::new();
    for n in 0..6 {
        // Two messages: one is due whenever a try of the other has ended.
        tenants.push(neighbour(&stage, &format!("hanging-{n}"), &hanging, 2).await);
    }
    let healthy = neighbour(&stage, "healthy", &stage.api.world.origin(), MESSAGES).await;
    for tenant in tenants.iter().chain([&healthy]) {
        tenant.post("/v1/runs/cancel", &json!({ "activity": "noop" })).await.expect(200);
    }
    let begun = Instant::now();
    stage.api.begin_working();
    let delivered = async || whole_list(&healthy.get("/v1/callbacks?state=delivered").await).len();
    until("the healthy tenant's messages are delivered", async || delivered().await == MESSAGES).await;
    assert!(begun.elapsed() < 5 * ROUND, "{:?}", begun.elapsed());
    assert_eq!(stage.told().await.len(), MESSAGES);
    let sql = "select count(distinct tenant) from callbacks where tenant like 'hanging-%' and tries > 0";
    let mut connection = stage.api.world.database.connect().await;
    assert_eq!(sqlx::query_scalar::<_, i64>(sql).fetch_one(&mut connection).await.unwrap(), 6);
    drop(silent);
}

#[tokio::test(flavor = "multi_thread")]
async fn callbacks_are_listed_by_state_and_page_and_are_nobody_elses() {
    let stage = Stage::new().await;
    stage.deploy("noop").await;
    let (first, second) = (stage.start("noop", json!(1)).await, stage.start("noop", json!(2)).await);
    let plain = stage.api.start("noop", json!(3)).await;
    stage.api.acme.post(&format!("/v1/runs/{first}/cancel"), &json!({})).await.expect(200);
    let of = |list: &serde_json::Value| list["items"][0]["run_id"].as_str().unwrap_or_default().to_owned();
    let page = stage.api.acme.get("/v1/callbacks?limit=1").await.expect(200);
    assert_eq!(of(&page), second, "the newest run comes first");
    let next = format!("/v1/callbacks?limit=1&after={}", page["after"].as_str().unwrap());
    let last = stage.api.acme.get(&next).await.expect(200);
    assert_eq!((of(&last), last["after"].is_null()), (first.clone(), true));
    assert_eq!(of(&stage.api.acme.get("/v1/callbacks?state=pending").await.expect(200)), second);
    assert_eq!(of(&stage.api.acme.get("/v1/callbacks?state=due").await.expect(200)), first);
    stage.api.acme.get("/v1/callbacks?state=done").await.refused(400, "validation_error");

    let told = stage.redeliver(&second).await.refused(409, "run_state_conflict");
    assert_eq!(told["details"]["runStatus"], "queued");
    assert!(told["message"].as_str().unwrap().contains("nothing to tell"), "{told}");
    stage.redeliver(&plain).await.refused(404, "not_found");
    let without = stage.api.acme.get(&format!("/v1/runs/{plain}/callback")).await;
    assert!(without.message(404, "not_found").contains("callback"));
    let other = stage.api.tenant("beta").await;
    assert!(whole_list(&other.get("/v1/callbacks").await).is_empty());
    let path = format!("/v1/runs/{first}/callback");
    let foreign = other.get(&path).await.message(404, "not_found");
    let unknown = other.get(&format!("/v1/runs/{}/callback", crate::api::no_run())).await.message(404, "not_found");
    assert_eq!(foreign, unknown);
    other.post(&format!("{path}/redeliver"), &json!({})).await.refused(404, "not_found");
}
