//! The samples whose worker is lost at each point of each effect. Afterwards the provider's books have each effect once, or the run
//! waits where nobody can know.

use deedbox::probe::Point;
use deedbox_books::Behaviour;
use serde_json::{Value, json};
use uuid::Uuid;

use super::cases::{begin, done, happened};
use super::samples::{SAMPLES, Sample};
use super::stage::{Samples, Stage, orders};
use super::told::SUMMARY;
use crate::harness::cell::{At, Kind, PATIENCE};
use crate::harness::freeze::Victim;
use crate::harness::{sdk_component, tell};

/// The points of one effect; the others are those of the whole attempt.
const OF_EFFECTS: [At; 6] =
    [At::BeforeClaim, At::AfterClaim, At::AfterSend, At::AfterApply, At::AfterResponse, At::AfterSettle];
const OF_ATTEMPTS: [At; 2] = [At::AfterReturn, At::BeforeFinish];

pub async fn keyed(samples: Samples) {
    let stage = samples.stage(Kind::Keyed).await;
    for (sample, at, nth) in cells() {
        let mark = stage.mark().await;
        let run = lose(&stage, sample, at, nth).await;
        done(&stage, sample, run, mark, Kind::Keyed).await;
        lost_once(&stage, run).await;
    }
}

pub async fn keyless(samples: Samples) {
    let stage = samples.stage(Kind::Keyless).await;
    for (sample, at, nth) in cells() {
        let mark = stage.mark().await;
        let run = lose(&stage, sample, at, nth).await;
        if !(At::AfterClaim..=At::AfterResponse).contains(&at) {
            done(&stage, sample, run, mark, Kind::Keyless).await;
            lost_once(&stage, run).await;
            continue;
        }
        // A provider whose client is gone before it began does not begin.
        let landed = usize::from(at >= At::AfterApply);
        happened(&stage, sample, run, mark, nth - 1 + landed).await;
        let effects = stage.effects(run).await;
        let states: Vec<&str> = effects.iter().map(|effect| effect.state.as_str()).collect();
        let mut expected = vec!["completed"; nth - 1];
        expected.push("escaped");
        assert_eq!(states, expected, "{} {at:?}", sample.activity);
        let run = stage.world.run(run).await;
        assert_eq!((run.state.as_str(), run.due_at), ("waiting", None), "{} {at:?}", sample.activity);
        assert_eq!(run.waiting_effect.as_ref(), effects.last().map(|effect| &effect.effect_id));
    }
}

/// Each sample with each point and the number of the effect.
fn cells() -> impl Iterator<Item = (&'static Sample, At, usize)> {
    SAMPLES.iter().flat_map(|sample| {
        let of_effects = (1..=sample.effects.len()).flat_map(|nth| OF_EFFECTS.map(move |at| (at, nth)));
        of_effects.chain(OF_ATTEMPTS.map(|at| (at, 1))).map(move |(at, nth)| (sample, at, nth))
    })
}

/// A run of the sample whose first worker is lost there, and which another takes as far as it comes.
async fn lose(stage: &Stage, sample: &Sample, at: At, nth: usize) -> Uuid {
    let mark = stage.mark().await;
    if let At::AfterSend | At::AfterApply = at {
        let hold = if at == At::AfterSend { Behaviour::HoldBeforeApply } else { Behaviour::HoldAfterApply };
        let before = vec![Behaviour::Normal; nth - 1];
        stage.world.script(&[before, vec![hold]].concat()).await;
    }
    let run = begin(stage, sample).await;
    let victim = Victim::start_nth(&stage.world, "lost", stage.config.clone(), at.point(), nth);
    let nth = nth as u64;
    match at {
        At::AfterSend => stage.world.books.wait_for_arrivals(stage.arrived(mark) + nth, PATIENCE).await.unwrap(),
        At::AfterApply => stage.world.books.wait_for_applied(stage.booked(mark) + nth, PATIENCE).await.unwrap(),
        _ => victim.held().await,
    }
    victim.kill().await;
    stage.world.expire_leases().await;
    stage.settle(run).await;
    run
}

async fn lost_once(stage: &Stage, run: Uuid) {
    let outcomes = stage.world.outcomes(run).await;
    assert_eq!((outcomes[0].as_str(), outcomes.last().unwrap().as_str()), ("worker-lost", "completed"));
}

/// Files and messages.
pub async fn told(samples: Samples) {
    let stage = samples.stage_with(Kind::Keyed, Some(orders().await), json!({})).await;
    let points = [
        Point::BeforeClaim,
        Point::AfterClaim,
        Point::BeforeRename,
        Point::AfterResponse,
        Point::AfterSettle,
        Point::BeforeFinish,
    ];
    for (at, point) in points.into_iter().enumerate() {
        let name = format!("{at}.csv");
        let input = json!({ "source_url": stage.source, "path": format!("exports/{name}") });
        let run = lose_at(&stage, "import-csv", input, point).await;
        assert_eq!(stage.world.output(run).await, json!({ "rows": 3, "total_cents": 1200 }));
        assert_eq!((stage.file(&name).as_str(), stage.files().len()), (SUMMARY, at + 1), "{point:?}");
    }
    for (at, point) in points.into_iter().filter(|point| *point != Point::BeforeRename).enumerate() {
        let run = lose_at(&stage, "publish", json!({ "subject": "orders.paid", "text": at.to_string() }), point).await;
        assert_eq!(stage.world.output(run).await, json!({ "stream": "ORDERS", "sequence": at + 1 }), "{point:?}");
        let kept = stage.nats().kept("ORDERS").await;
        assert_eq!((kept.len(), kept[at].payload.as_str()), (at + 1, at.to_string().as_str()), "{point:?}");
    }
}

async fn lose_at(stage: &Stage, activity: &str, input: Value, point: Point) -> Uuid {
    let run = stage.world.start(activity, input).await;
    let victim = Victim::start(&stage.world, "lost", stage.config.clone(), Some(point));
    victim.held().await;
    victim.kill().await;
    stage.world.expire_leases().await;
    stage.settle(run).await;
    lost_once(stage, run).await;
    run
}

/// A client that knows nothing of Deedbox.
pub async fn plain_http(samples: Samples) {
    let name = samples.language.name;
    let Some(kind) = samples.language.plain_http else {
        return tell(&format!("{name}: no HTTP client over wasi:http, as its README says"));
    };
    let component = sdk_component(kind, name).expect("it is built with the samples");
    let mut stage = samples.stage(Kind::Keyed).await;
    stage.deploy_plain_http(component).await;
    for point in [Point::BeforeClaim, Point::AfterClaim, Point::AfterResponse, Point::AfterSettle, Point::AfterReturn] {
        let mark = stage.mark().await;
        let input = json!({ "url": stage.world.charges(), "body": "{\"n\":1}" });
        let run = lose_at(&stage, "plain-http", input, point).await;
        let [applied] = <[_; 1]>::try_from(stage.applied(mark).await).unwrap();
        assert_eq!(
            (applied.method.as_str(), applied.path.as_str(), applied.body.as_str()),
            ("POST", "/v1/charges", "{\"n\":1}")
        );
        let [effect] = <[_; 1]>::try_from(stage.effects(run).await).unwrap();
        assert_eq!((effect.state.as_str(), effect.keying.as_str()), ("completed", "activity-recipe"));
        assert!(effect.wire_key.is_some());
        let arrivals = stage.arrivals(mark).await;
        assert!(arrivals.iter().all(|arrival| arrival.key == effect.wire_key), "{arrivals:?}");
        assert_eq!(arrivals.len(), if point == Point::AfterResponse { 2 } else { 1 }, "{point:?}: the rest replays");
        let output = stage.world.output(run).await;
        let body: Value = serde_json::from_str(output["body"].as_str().unwrap()).unwrap();
        assert_eq!(
            (&output["status"], &body["id"]),
            (&json!(201), &json!(format!("ch_{}", applied.number))),
            "{output}"
        );
    }
}
