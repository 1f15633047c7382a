//! A model of attempts that make one effect, with crashes, stalls, takeovers, lost and late answers: every way through
//! it keeps the promises about sending once. Only the ledger's rows and the provider are imitated; all decisions are the
//! runtime's own. Each rule that is taken out makes a promise break, so the model can tell.

mod ledger;
mod provider;
mod search;
mod world;

use deedbox::effect::{OnUnknown, Resend, State};
use proptest::prelude::*;

use ledger::{Fault, Rule, Setup};
use search::{Explored, Found, explore, walk};
use world::World;

use crate::harness::long;

/// More than any search below needs that is to see everything.
const ALL: usize = 500_000;

const KEYLESS: [(Resend, OnUnknown); 2] = [(Resend::Unsafe, OnUnknown::Ask), (Resend::Unsafe, OnUnknown::AtMostOnce)];
const KEYED: [(Resend, OnUnknown); 2] = [(Resend::Keyed, OnUnknown::Ask), (Resend::Keyed, OnUnknown::AtMostOnce)];
const AT_LEAST_ONCE: (Resend, OnUnknown) = (Resend::Unsafe, OnUnknown::AtLeastOnce);
const IDEMPOTENT: (Resend, OnUnknown) = (Resend::Idempotent, OnUnknown::Ask);

/// F-B01, F-B18. Sent again only when the send before surely was not applied; applied once at most.
#[test]
fn a_keyless_effect_of_one_run_is_never_sent_twice_in_doubt() {
    for kind in KEYLESS {
        let seen = everything(setup(kind, 1, 3));
        assert_reached(&seen, "escaped, and completed by a later attempt", |w| {
            state(w) == Some(State::Completed) && w.ledger.runs[0].token == 3
        });
        assert!(seen.worlds.iter().all(|world| world.provider.applied <= 1));
    }
}

#[test]
fn a_keyless_effect_that_two_runs_share_is_never_sent_twice_in_doubt() {
    for kind in KEYLESS {
        let seen = everything(setup(kind, 2, 1));
        assert_reached(&seen, "taken by the second run", |w| w.ledger.row.is_some_and(|row| row.holder.send > 0));
        assert!(seen.worlds.iter().all(|world| world.provider.applied <= 1));
    }
}

/// F-B01, F-B04, F-B09. One key whoever sends, and nothing is sent on the strength of a key that may be forgotten.
#[test]
fn a_keyed_effect_is_applied_once_under_one_key() {
    for kind in KEYED {
        let seen = everything(setup(kind, 1, 2));
        assert_reached(&seen, "three sends", |w| w.ledger.row.is_some_and(|row| row.holder.send == 2));
        assert_reached(&seen, "an open question after the window", |w| {
            w.window_over && state(w) == Some(State::Escaped)
        });
        assert!(seen.worlds.iter().all(|world| world.provider.applied <= 1));
    }
}

#[test]
fn a_keyed_effect_that_two_runs_share_is_applied_once_under_one_key() {
    let shared = setup(KEYED[0], 2, 1);
    let seen = if long() { everything(shared) } else { explore(&shared, 120_000).unwrap() };
    assert_reached(&seen, "taken by the second run", |w| w.ledger.row.is_some_and(|row| row.holder.lease.run == 1));
    assert_reached(&seen, "completed", |w| state(w) == Some(State::Completed));
}

/// What was chosen is kept: it may be applied twice, and when two sends prove it, it is shown.
#[test]
fn an_at_least_once_effect_that_was_doubled_is_flagged() {
    for (runs, attempts) in [(1, 2), (2, 1)] {
        let seen = everything(setup(AT_LEAST_ONCE, runs, attempts));
        assert_reached(&seen, "doubled and flagged", |w| {
            w.provider.applied == 2 && w.ledger.row.is_some_and(|row| row.doubled)
        });
    }
}

#[test]
fn an_idempotent_effect_is_never_released_after_it_was_applied() {
    for (runs, attempts) in [(1, 2), (2, 1)] {
        let seen = everything(setup(IDEMPOTENT, runs, attempts));
        assert_reached(&seen, "sent again", |w| w.ledger.row.is_some_and(|row| row.holder.send == 2));
        assert_reached(&seen, "released", |w| state(w) == Some(State::Released));
    }
}

/// A stalled process that wakes up between its lease's end and its first byte would double a keyless effect.
#[test]
fn without_the_first_byte_deadline_a_stall_doubles() {
    for kind in KEYLESS {
        assert_eq!(fault_without(Rule::FirstByteDeadline, kind, 1), Fault::UnsafeSend);
    }
    assert_eq!(fault_without(Rule::FirstByteDeadline, KEYED[0], 1), Fault::ReleasedButApplied);
}

#[test]
fn without_fencing_a_stale_attempt_changes_the_ledger() {
    for kind in [KEYLESS[0], KEYED[0], IDEMPOTENT] {
        assert_eq!(fault_without(Rule::Lease, kind, 1), Fault::StaleClaim);
        assert_eq!(fault_without(Rule::HolderWhenSettling, kind, 1), Fault::ReleasedButApplied);
    }
    assert_eq!(fault_without(Rule::HolderWhenResending, KEYED[0], 2), Fault::TakenFromTheLiving);
}

#[test]
fn a_later_send_that_applied_nothing_must_not_release_what_an_earlier_may_have_applied() {
    for kind in [KEYED[0], AT_LEAST_ONCE, IDEMPOTENT] {
        assert_eq!(fault_without(Rule::EarlierUnknown, kind, 1), Fault::ReleasedButApplied);
    }
}

#[test]
fn without_the_pinned_key_a_provider_sees_two() {
    for kind in [KEYLESS[0], KEYED[0]] {
        assert_eq!(fault_without(Rule::PinnedKey, kind, 1), Fault::TwoKeys);
    }
}

#[test]
fn without_the_window_s_check_before_the_first_byte_a_forgotten_key_doubles() {
    for kind in KEYED {
        assert_eq!(fault_without(Rule::KeyWindow, kind, 1), Fault::AppliedTwice);
    }
}

#[test]
fn whoever_resolves_too_early_releases_what_is_applied_later() {
    for kind in [KEYLESS[0], KEYED[0], IDEMPOTENT] {
        assert_eq!(fault_without(Rule::ResolverWaits, kind, 1), Fault::ReleasedButApplied);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if long() { 30_000 } else { 3_000 }, ..ProptestConfig::default() })]

    /// Farther than the searches go: three attempts of each of two runs.
    #[test]
    fn no_drawn_way_breaks_a_promise(
        kind in prop::sample::select([&KEYLESS[..], &KEYED[..], &[AT_LEAST_ONCE, IDEMPOTENT]].concat()),
        runs in 1..=2u8,
        choices in prop::collection::vec(any::<u16>(), 20..120),
    ) {
        let end = walk(&setup(kind, runs, 3), &choices);
        prop_assert!(end.is_ok(), "{:#?}", end);
    }
}

fn setup((resend, on_unknown): (Resend, OnUnknown), runs: u8, attempts: u8) -> Setup {
    Setup { resend, on_unknown, runs, attempts, without: None }
}

/// Every world there is, none of them faulty, and each state of an effect among them.
fn everything(setup: Setup) -> Explored {
    let seen = explore(&setup, ALL).unwrap_or_else(|found| panic!("{setup:?}: {found:#?}"));
    assert!(seen.complete, "{setup:?}: the search was cut short at {} worlds", seen.worlds.len());
    for expected in [State::Claimed, State::Completed, State::Released, State::Escaped] {
        assert_reached(&seen, expected.as_str(), |w| state(w) == Some(expected));
    }
    seen
}

fn fault_without(rule: Rule, kind: (Resend, OnUnknown), runs: u8) -> Fault {
    let mutant = Setup { without: Some(rule), ..setup(kind, runs, 2) };
    match explore(&mutant, ALL) {
        Err(Found { fault, .. }) => fault,
        Ok(_) => panic!("{mutant:?}: nothing broke"),
    }
}

fn state(world: &World) -> Option<State> {
    world.ledger.row.map(|row| row.state)
}

fn assert_reached(seen: &Explored, what: &str, is_it: impl Fn(&World) -> bool) {
    assert!(seen.worlds.iter().any(is_it), "the model never gets to: {what}");
}
