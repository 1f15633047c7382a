//! The samples where nothing goes wrong with the worker: requests, ledger, outputs, and rejections.

use deedbox_books::Behaviour;
use serde_json::{Value, json};
use uuid::Uuid;

use super::samples::{SAMPLES, Sample};
use super::stage::{Mark, Samples, Stage};
use crate::harness::cell::Kind;

pub async fn undisturbed(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    for sample in &SAMPLES {
        let mark = stage.mark().await;
        let run = begin(&stage, sample).await;
        stage.settle(run).await;
        done(&stage, sample, run, mark, Kind::Keyed).await;
        assert_eq!(stage.arrivals(mark).await.len(), sample.effects.len(), "{}", sample.activity);
        assert_eq!(stage.world.outcomes(run).await, ["completed"], "{}", sample.activity);
        assert_eq!(stage.world.run(run).await.attempts, 1);
    }
}

/// Starts a run of the sample, whose signal is there already.
pub async fn begin(stage: &Stage, sample: &Sample) -> Uuid {
    let run = Uuid::now_v7();
    stage.world.start_as(run, sample.activity, (sample.input)(&stage.world.origin(), run)).await;
    if let Some((name, payload)) = sample.signal {
        stage.signal(run, name, serde_json::from_str(payload).unwrap()).await;
    }
    run
}

/// Everything of the sample has happened, once, and is known.
pub async fn done(stage: &Stage, sample: &Sample, run: Uuid, mark: Mark, kind: Kind) {
    let ids = happened(stage, sample, run, mark, sample.effects.len()).await;
    let effects = stage.effects(run).await;
    assert_eq!(effects.len(), sample.effects.len(), "{effects:?}");
    for (entry, expected) in effects.iter().zip(sample.effects) {
        assert_eq!(
            (entry.identity.as_str(), entry.keying.as_str()),
            ((expected.identity)(run).as_str(), expected.keying)
        );
        assert_eq!((entry.state.as_str(), entry.status, entry.doubled), ("completed", Some(201), false), "{entry:?}");
        assert_eq!(entry.wire_key.is_some(), kind == Kind::Keyed, "{entry:?}");
    }
    assert_eq!(stage.world.output(run).await, (sample.output)(&ids), "{}", sample.activity);
}

/// The books have the first effects of the sample and nothing else, and each request for one of them was the same. Gives the ids of
/// what the provider made.
pub async fn happened(stage: &Stage, sample: &Sample, run: Uuid, mark: Mark, count: usize) -> Vec<String> {
    let applied = stage.applied(mark).await;
    assert_eq!(applied.len(), count, "{}: {applied:?}", sample.activity);
    let ids: Vec<String> = applied.iter().map(|entry| format!("ch_{}", entry.number)).collect();
    let effects = stage.effects(run).await;
    for arrival in stage.arrivals(mark).await {
        let at = sample.effects.iter().position(|effect| effect.path == arrival.path_and_query);
        let at = at.unwrap_or_else(|| panic!("{}: {arrival:?}", sample.activity));
        let body: Value = serde_json::from_str(&arrival.body).unwrap();
        assert_eq!((arrival.method.as_str(), &body), ("POST", &(sample.effects[at].body)(run, &ids)));
        assert_eq!(arrival.key, effects[at].wire_key, "{arrival:?}");
        let content_type = arrival.header("content-type").unwrap_or_default();
        assert!(content_type.starts_with("application/json"), "{arrival:?}");
    }
    let paths: Vec<&str> = applied.iter().map(|entry| entry.path.as_str()).collect();
    assert_eq!(paths, sample.effects[..count].iter().map(|effect| effect.path).collect::<Vec<_>>());
    ids
}

pub async fn rejected(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    let refuse =
        |status, body: &str| [Behaviour::StatusBeforeApply { status, retry_after: None, body: Some(body.to_owned()) }];
    let charge = json!({ "provider_url": stage.world.origin(), "order": "42", "amount_cents": 1, "customer": "c" });
    for (status, body, reason) in [
        (402, r#"{"code":"card_declined"}"#, json!({ "code": "card_declined" })),
        (404, "no such customer", json!("no such customer")),
    ] {
        stage.world.script(&refuse(status, body)).await;
        let run = stage.run("charge-once", charge.clone()).await;
        let expected = json!({ "outcome": "rejected", "status": status, "reason": reason });
        assert_eq!(stage.world.output(run).await, expected);
        assert_eq!(stage.effects(run).await[0].status, Some(status.into()));
    }

    // Another run for the same order is told the same, and asks nobody.
    stage.world.script(&refuse(422, r#"{"code":"sold_out"}"#)).await;
    let mark = stage.mark().await;
    for _ in 0..2 {
        let run = stage.run("reject-as-data", json!({ "provider_url": stage.world.origin(), "order": "43" })).await;
        let expected = json!({ "outcome": "rejected", "reason": { "code": "sold_out" } });
        assert_eq!(stage.world.output(run).await, expected);
    }
    assert_eq!((stage.arrivals(mark).await.len(), stage.applied(mark).await.len()), (1, 0));
}
