//! Another tenant of a world, with deployments and runs of its own.

use deedbox::policy::Policy;
use deedbox::store::start::NewRun;
use deedbox::store::{self, run};
use serde_json::Value;
use uuid::Uuid;

use super::world::Run;
use super::{World, committed, component, deploy_version};

pub const NEIGHBOUR: &str = "beta";

/// Deploys one of the test guests' activities; the tenant is made if need be.
pub async fn deploy(world: &World, activity: &str, policy: Value) {
    store::tenant::create(world.node.store(), NEIGHBOUR).await.unwrap();
    let bytes = component("deedbox_test_guests.wasm");
    let uploaded = world.node.registry().upload(NEIGHBOUR, bytes.into()).await.unwrap();
    let policy = serde_json::to_string(&Policy::parse(&policy.to_string()).unwrap()).unwrap();
    deploy_version(world.node.store(), NEIGHBOUR, activity, &uploaded.digest, activity, &policy).await.unwrap();
}

/// Starts a run of the newest version.
pub async fn start(world: &World, activity: &str, input: Value) -> Run {
    let version = store::activity::find_latest(world.node.store(), NEIGHBOUR, activity).await.unwrap().unwrap();
    let run = NewRun::plain(Uuid::now_v7(), activity, version.version, &input.to_string());
    committed(world.node.store(), async |tx| store::start::start(tx, NEIGHBOUR, &run, 100).await).await;
    run.run_id
}

pub async fn find(world: &World, run: Run) -> run::Run {
    store::run::find(world.node.store(), NEIGHBOUR, run).await.unwrap().unwrap()
}

/// What a run came to that has completed.
pub async fn output(world: &World, run: Run) -> Value {
    let run = find(world, run).await;
    assert_eq!(run.state, "completed", "{run:?}");
    serde_json::from_str(&run.output.unwrap()).unwrap()
}
