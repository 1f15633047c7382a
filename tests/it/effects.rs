//! One effect, from the guest to the provider's books.

use serde_json::json;

use crate::harness::World;

#[tokio::test(flavor = "multi_thread")]
async fn a_charge_is_made_once_and_recorded() {
    let world = World::keyed().await;
    world.deploy_from("charge_once.wasm", "charge-once", "stripe", json!({})).await;
    let input = json!({ "order": "1042", "amount_cents": 4200, "customer": "cus_7", "provider_url": world.origin() });
    let run = world.start("charge-once", input).await;
    world.work().await;
    assert_eq!(world.output(run).await, json!({ "outcome": "charged", "charge_id": "ch_1" }));
    let applied = world.books.applied().await.unwrap();
    assert_eq!(applied.len(), 1);
    let sends = world.sends(run).await;
    assert_eq!(sends.len(), 1);
    assert_eq!(sends[0].state, "completed");
    assert_eq!(sends[0].wire_key, applied[0].key);
    assert_eq!(world.outcomes(run).await, ["completed"]);
}
