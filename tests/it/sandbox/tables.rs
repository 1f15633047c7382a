//! Tables: their elements have one room in all, and their number is bounded.

use serde_json::{Value, json};

use super::once;
use crate::harness::{TENANT, World};
use crate::wat_component::WatComponent;

const TABLE: &str = "(table $t 1 funcref)";
const TWO: &str = "(table $t 1 funcref) (table $u 1 funcref)";

/// Grows by steps up to where it is refused, and gives up there.
const BY_STEPS: &str = "(loop $on (br_if $on (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1))))
                        unreachable";

/// Gives up when it is refused, and never ends when it is not.
const AT_ONCE: &str = "(if (i32.ne (table.grow $t (ref.null func) (i32.const 100000000)) (i32.const -1))
                         (then (loop $on (br $on)))) unreachable";

/// Each of the two would fit alone. Never ends when the first is refused, or the second is not.
const TOGETHER: &str = "(if (i32.eq (table.grow $t (ref.null func) (i32.const 15000)) (i32.const -1))
                          (then (loop $on (br $on))))
                        (if (i32.ne (table.grow $u (ref.null func) (i32.const 15000)) (i32.const -1))
                          (then (loop $on (br $on)))) unreachable";

/// Goes on when it is refused.
const CALM: &str = "(drop (table.grow $t (ref.null func) (i32.const 100000000)))";

/// F-F08.
#[tokio::test(flavor = "multi_thread")]
async fn a_table_bomb_is_refused_and_ends_with_a_code_of_its_own() {
    let world = World::keyed().await;
    for (name, core, run) in [("by-steps", TABLE, BY_STEPS), ("at-once", TABLE, AT_ONCE), ("together", TWO, TOGETHER)] {
        let component = WatComponent { names: vec![name], core, run, ..WatComponent::default() };
        world.deploy_bytes(name, component.bytes(), once("10s")).await;
        let run = world.start(name, json!({})).await;
        world.work().await;
        assert_eq!(world.outcomes(run).await, ["out-of-tables"], "{name}");
        assert_eq!(world.failure(run).await["code"], "out-of-tables", "{name}");
    }
    let calm = WatComponent { names: vec!["calm"], core: TABLE, run: CALM, ..WatComponent::default() };
    world.deploy_bytes("calm", calm.bytes(), once("10s")).await;
    let run = world.start("calm", Value::Null).await;
    world.work().await;
    assert_eq!(world.output(run).await, json!("ran"), "a guest may do without");
}

/// F-F08.
#[tokio::test(flavor = "multi_thread")]
async fn a_component_with_too_many_tables_is_refused_at_upload() {
    let world = World::keyed().await;
    let upload = async |tables: &'static str| {
        let component = WatComponent { core: tables, ..WatComponent::default() };
        world.node.registry().upload(TENANT, component.bytes().into()).await
    };
    const EIGHT: &str = "(table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref)
                         (table 1 funcref) (table 1 funcref) (table 1 funcref)";
    const NINE: &str = "(table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref)
                        (table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref)";
    assert!(upload(EIGHT).await.unwrap().fresh);
    let refused = upload(NINE).await.unwrap_err().to_string();
    assert!(refused.contains("table") && refused.contains('9') && refused.contains('8'), "{refused}");
}
