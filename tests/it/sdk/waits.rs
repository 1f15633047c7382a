//! The samples whose run goes on in a later attempt: after a signal, and from a checkpoint.

use deedbox::probe::Point;
use serde_json::json;

use super::stage::Samples;
use crate::harness::cell::Kind;
use crate::harness::freeze::Victim;

pub async fn signal(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let mark = stage.mark().await;
    let input = json!({ "provider_url": stage.world.origin(), "order": "42", "wait_ms": null });
    let run = stage.run("wait-for-webhook", input).await;
    let waiting = stage.world.run(run).await;
    assert_eq!((waiting.state.as_str(), waiting.waiting_signal.as_deref()), ("waiting", Some("paid")), "{waiting:?}");
    stage.signal(run, "paid", json!({ "by": "bank" })).await;
    stage.settle(run).await;
    let id = format!("ch_{}", stage.applied(mark).await[0].number);
    assert_eq!(stage.world.output(run).await, json!({ "outcome": "paid", "payment_id": id, "by": "bank" }));
    assert_eq!(stage.world.outcomes(run).await, ["suspended", "completed"]);
    assert_eq!(stage.arrivals(mark).await.len(), 1, "the second attempt replays");

    let input = json!({ "provider_url": stage.world.origin(), "order": "43", "wait_ms": 50 });
    let run = stage.run("wait-for-webhook", input).await;
    assert_eq!(stage.world.output(run).await, json!({ "outcome": "expired" }));
}

/// The worker is lost between the second step and the note of it.
pub async fn checkpoint(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let mark = stage.mark().await;
    let input = json!({ "steps": 3, "provider_url": stage.world.origin() });
    let run = stage.world.start("checkpointed", input).await;
    let first = Victim::start_nth(&stage.world, "lost", stage.config.clone(), Some(Point::AfterSettle), 2);
    first.held().await;
    first.kill().await;
    stage.world.expire_leases().await;
    stage.settle(run).await;
    assert_eq!(stage.world.output(run).await, json!({ "done": 3, "began_at": 1 }));
    let bodies: Vec<String> = stage.arrivals(mark).await.into_iter().map(|arrival| arrival.body).collect();
    let bodies: Vec<serde_json::Value> = bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    assert_eq!(bodies, [json!({ "step": 1 }), json!({ "step": 2 }), json!({ "step": 3 })]);
    let names: Vec<String> = stage.effects(run).await.into_iter().map(|effect| effect.identity).collect();
    assert_eq!(names, ["step-1", "step-2", "step-3"]);
}
