//! Every shipped profile against its provider, through every way in which a send can go: the provider's books, the states in
//! the ledger, the number of sends, and the key on the wire byte for byte. R-A11, R-D05, R-D06, R-L08, F-B01, F-B04, F-B07,
//! F-B08, F-B09, F-B19.

mod cases;
mod stage;

use deedbox_books::{Behaviour, CountedFrom, InFlight, OnMismatch, Stores};

use cases::Case;
use stage::{Seen, Stage};

use crate::harness::long;

/// In one run of the suite this many providers are worked through side by side.
const LANES: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_profile_is_in_the_table() {
    let all = deedbox::gateway::provider::Profiles::load(None).unwrap();
    let mut shipped: Vec<_> = all.all().map(|profile| profile.name.to_string()).filter(|n| n != "unlisted").collect();
    let mut table: Vec<_> = cases::all().iter().map(|case| case.profile.to_owned()).collect();
    shipped.sort();
    table.sort();
    assert_eq!(table, shipped);
}

macro_rules! lanes {
    ($($name:ident $lane:literal),*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            for case in cases::all().into_iter().skip($lane).step_by(LANES) {
                every_way(&case).await;
            }
        })*
    };
}

lanes!(every_way_of_the_first_lane 0, every_way_of_the_second_lane 1, every_way_of_the_third_lane 2, every_way_of_the_fourth_lane 3);

async fn every_way(case: &Case) {
    let stage = Stage::set(case).await;
    clean(&stage).await;
    cut(&stage, "cut-before", Behaviour::CutBeforeApply, 0).await;
    cut(&stage, "cut-after", Behaviour::CutAfterApply, 1).await;
    slow(&stage).await;
    refused_for_now(&stage).await;
    stored_500(&stage).await;
    if case.relies_on_key {
        in_flight_twice(&stage).await;
        retention_passed(&stage).await;
    }
    if case.relies_on_key && case.provider.object_path.is_none() {
        used_elsewhere(&stage).await;
    }
    if long() {
        clean(&stage).await;
    }
}

async fn clean(stage: &Stage<'_>) {
    let seen = stage.call_thrice("clean", &[]).await;
    seen.is("completed", 1, 1);
    assert!(seen.statuses[0].is_some_and(|status| status < 300), "{seen:?}");
    assert_eq!(seen.sources[1..], ["replayed", "replayed"], "{seen:?}");
}

/// The connection breaks: a provider that knows the key is sent it again, another is asked, or else a person is.
async fn cut(stage: &Stage<'_>, name: &str, behaviour: Behaviour, applied: usize) {
    let seen = stage.call_thrice(name, &[behaviour]).await;
    match stage.after_a_cut(applied) {
        Ends::SentAgain => seen.is("completed", 2, 1),
        Ends::Found => seen.is("completed", stage.sends_until_asked(), 1),
        Ends::Open => seen.is("escaped", 1, applied),
    }
}

/// F-B19: the provider's slow success comes after the time-out.
async fn slow(stage: &Stage<'_>) {
    let seen = stage.call_thrice("slow", &[Behaviour::SlowAfterApply { ms: 60_000 }]).await;
    assert_eq!(seen.applied, 1, "{seen:?}");
    match stage.after_a_cut(1) {
        Ends::SentAgain | Ends::Found => assert_eq!(seen.state, "completed", "{seen:?}"),
        Ends::Open => seen.is("escaped", 1, 1),
    }
}

/// How an effect ends whose first send was cut.
enum Ends {
    SentAgain,
    Found,
    Open,
}

impl Stage<'_> {
    fn after_a_cut(&self, applied: usize) -> Ends {
        let case = self.case;
        match (case.relies_on_key, case.asks, applied) {
            // A precondition that fails proves nothing by itself: the object may be anybody's.
            (true, true, 1) if case.profile == "s3" => Ends::Found,
            (true, ..) => Ends::SentAgain,
            (false, true, 1) => Ends::Found,
            _ => Ends::Open,
        }
    }

    fn in_flight_status(&self) -> Option<u16> {
        match &self.case.provider.in_flight {
            InFlight::Answer(template) => Some(template.status),
            InFlight::Wait { then, .. } => Some(then.status),
        }
    }

    fn sends_until_asked(&self) -> usize {
        if self.case.relies_on_key { 2 } else { 1 }
    }
}

async fn refused_for_now(stage: &Stage<'_>) {
    let refusal = Behaviour::StatusBeforeApply { status: 429, retry_after: Some(1), body: None };
    let seen = stage.call_thrice("refused", &[refusal]).await;
    seen.is("completed", 2, 1);
    assert_eq!(seen.statuses[0], Some(429), "{seen:?}");
    assert_eq!(seen.retry_after.as_deref(), Some("1"), "{seen:?}");
}

/// F-B07: a provider that keeps its failure gives it for ever, and no new key is ever made for it.
async fn stored_500(stage: &Stage<'_>) {
    let seen = stage.call_thrice("stored-500", &[Behaviour::StoredFailure { status: 500 }]).await;
    let case = stage.case;
    if !case.relies_on_key {
        return seen.is("escaped", 1, 0);
    }
    if case.provider.object_path.is_some() || case.provider.stores != Stores::All {
        return seen.is("completed", 2, 1);
    }
    seen.is("escaped", 3, 0);
    assert_eq!(seen.statuses[0], Some(500), "the first is shown as it was: {seen:?}");
    let told = seen.errors.iter().flatten().any(|error| error.contains("stored under this key"));
    assert_eq!(told, case.knows_stored_5xx, "{seen:?}");
}

/// F-B08.
async fn in_flight_twice(stage: &Stage<'_>) {
    if stage.case.knows_in_flight {
        let seen = stage.call_thrice("in-flight", &[Behaviour::InFlight, Behaviour::InFlight]).await;
        return seen.is("completed", 3, 1);
    }
    // Nobody has said what it means. To a first send, which nothing of ours can be in the way of, it is a refusal like any
    // other; to a second one it must not be the end.
    let seen = stage.call_thrice("in-flight", &[Behaviour::CutAfterApply, Behaviour::InFlight]).await;
    if stage.in_flight_status() == Some(409) {
        assert_eq!((seen.state.as_str(), seen.applied), ("completed", 1), "{seen:?}");
        assert!(seen.statuses.last().unwrap().is_some_and(|status| status < 300), "{seen:?}");
    } else {
        assert_eq!(seen.applied, 1, "{seen:?}");
    }
}

/// F-B09: a key that the provider may have forgotten is not relied on.
async fn retention_passed(stage: &Stage<'_>) {
    let seen = stage.call_again_after_60_days("retention").await;
    let forgets = seen.window_ms.is_some() && stage.case.method != "PUT";
    match (forgets, stage.case.asks) {
        (false, _) => assert_eq!((seen.state.as_str(), seen.applied), ("completed", 1), "{seen:?}"),
        (true, true) => seen.is("completed", 1, 1),
        (true, false) => seen.is("escaped", 1, 1),
    }
    if stage.case.provider.retention_ms.is_some() && stage.case.provider.counted_from == CountedFrom::First {
        assert!(seen.window_ms <= stage.case.provider.retention_ms, "never longer than the provider: {seen:?}");
    }
}

/// The provider has seen the key with another request. Where it looks, it refuses, and the refusal is final.
async fn used_elsewhere(stage: &Stage<'_>) {
    let seen = stage.call_thrice("mismatch", &[Behaviour::KeyUsedElsewhere]).await;
    seen.is("completed", 1, 0);
    let refused = match &stage.case.provider.on_mismatch {
        OnMismatch::Ignore => return,
        OnMismatch::Conflict => 409,
        OnMismatch::Answer(template) => template.status,
    };
    assert_eq!(seen.statuses[0], Some(u64::from(refused)), "{seen:?}");
}

impl Seen {
    /// The end of it, in the ledger and in the books; and one key on the wire, the ledger's.
    fn is(&self, state: &str, sends: usize, applied: usize) {
        assert_eq!((self.state.as_str(), self.sends, self.applied), (state, sends, applied), "{self:?}");
    }
}
