//! An exhaustive check of lease, claim and settle: one run, one effect, two workers that crash or stall at any step, and
//! a provider that answers late or never. The statements are imitated, the decisions are the runtime's own. Every rule
//! that is taken out makes a promise break, and so does the one window that the contract leaves open.

mod attempt;
mod ledger;
mod promises;
mod provider;
mod setup;
mod world;

use deedbox::effect::{OnUnknown, Resend};
use stateright::{Checker, Expectation, Model};

use attempt::Deed;
use promises as promise;
use setup::{Rule, Setup};
use world::{Action, World};

use crate::harness::long;

const ASK: Setup = Setup {
    resend: Resend::Unsafe,
    on_unknown: OnUnknown::Ask,
    max_attempts: 2,
    calls: 1,
    window: false,
    releases: 1,
    give_backs: 1,
    without: None,
};
const KEYED: Setup = Setup { resend: Resend::Keyed, ..ASK };
const IDEMPOTENT: Setup = Setup { resend: Resend::Idempotent, ..ASK };
const AT_LEAST_ONCE: Setup = Setup { on_unknown: OnUnknown::AtLeastOnce, ..ASK };

/// Longer than the shortest way to any bug below.
const MAX_WAY: usize = 40;

/// F-B01, F-B18, R-L07. Nothing is sent in doubt: what is not known waits for an answer.
#[test]
fn a_keyless_effect_is_applied_once_at_most() {
    check_sizes(&ASK, &[]);
}

/// F-B01, F-B04, F-B19, R-L08. One key, whichever attempt sends it.
#[test]
fn a_keyed_effect_is_applied_once_whoever_sends_it() {
    check_sizes(&KEYED, &[]);
}

/// F-B18, R-L17. A retry loop in the body meets its own effect.
#[test]
fn a_guest_that_calls_again_in_the_same_attempt_breaks_no_promise() {
    for kind in [ASK, KEYED] {
        check(&Setup { calls: 2, give_backs: 0, ..kind }, &[], &[]);
    }
}

/// R-L17.
#[test]
fn an_idempotent_effect_is_never_released_after_it_was_applied() {
    check_sizes(&IDEMPOTENT, &[]);
}

/// R-L17. It may double, as was chosen; what is shown as doubled was, and what was applied is never called undone.
#[test]
fn an_at_least_once_effect_is_never_released_after_it_was_applied() {
    check_sizes(&AT_LEAST_ONCE, &[promise::DOUBLED]);
}

/// F-B18. The stated limit of the contract, and its size: with no key, a process must be stopped between its look at the
/// deadline and the write, past the lease's end. There is no other way to a double.
#[test]
fn the_only_double_needs_a_stop_between_the_check_and_the_write() {
    let open = Setup { window: true, give_backs: 0, ..ASK };
    check(&open, &[promise::APPLIED_ONCE, promise::NEVER_SLEPT], &[]);
    let way = shortest(&open, promise::APPLIED_ONCE).unwrap_or_else(|| panic!("no double through the window"));
    assert!(has_stop_before_write(&way), "{}", told(&way));
}

/// R-L08. What a key is good for.
#[test]
fn a_keyed_effect_is_applied_once_even_through_that_window() {
    check(&Setup { window: true, ..KEYED }, &[promise::NEVER_SLEPT], &[]);
}

/// R-E21, R-L07.
#[test]
fn the_model_finds_the_bug_when_the_fencing_check_is_taken_out() {
    for kind in [ASK, KEYED, IDEMPOTENT, AT_LEAST_ONCE] {
        assert_breaks(
            &kind,
            Rule::ClaimChecksTheLease,
            &[promise::STALE_CLAIMS_NOTHING, promise::ENDED_LEAVES_NO_CLAIM],
        );
        assert_breaks(&kind, Rule::FinishChecksTheLease, &[promise::STALE_CHANGES_NO_RUN, promise::NEWEST_ENDS]);
        assert_breaks(&kind, Rule::RenewChecksTheLease, &[promise::STALE_CHANGES_NO_RUN, promise::TRUST_IS_SHORT]);
        assert_breaks(&kind, Rule::SettleComparesTheHolder, &[promise::RELEASED_IS_UNDONE]);
    }
}

/// F-B18.
#[test]
fn without_the_first_byte_deadline_a_stall_doubles() {
    assert_breaks(&ASK, Rule::FirstByteDeadline, &[promise::APPLIED_ONCE, promise::RELEASED_IS_UNDONE]);
    assert_breaks(&KEYED, Rule::FirstByteDeadline, &[promise::RELEASED_IS_UNDONE]);
}

/// R-E21.
#[test]
fn without_the_state_s_check_a_late_settlement_overwrites_what_was_resolved() {
    assert_breaks(&ASK, Rule::SettleChecksTheState, &[promise::COMPLETED_STAYS, promise::OUTPUT_IS_RECORDED]);
}

/// F-B17.
#[test]
fn a_run_that_is_taken_over_without_a_look_at_its_attempts_spends_too_many() {
    assert_breaks(&ASK, Rule::LeaseChecksTheSpent, &[promise::SPENT_IS_BOUNDED]);
}

/// R-L28.
#[test]
fn a_run_that_nobody_wakes_is_stuck() {
    assert_breaks(&ASK, Rule::ResolvingWakes, &[promise::NOTHING_IS_STUCK]);
}

/// The smallest search that shows all there is to see; when there is time, one with more attempts and one with more calls.
fn check_sizes(kind: &Setup, seen: &[&str]) {
    check(kind, &[], seen);
    if long() {
        check(&Setup { max_attempts: 3, ..*kind }, &[], seen);
        check(&Setup { calls: 2, ..*kind }, &[], seen);
    }
}

/// Visits every world. The promises in `broken` break and no others; the worlds in `seen` are come by, and those that
/// every search must come by.
fn check(setup: &Setup, broken: &[&str], seen: &[&str]) {
    let checker = setup.checker().spawn_bfs().join();
    for property in setup.properties() {
        let found = checker.discovery(property.name).is_some();
        match property.expectation {
            Expectation::Sometimes => {
                let expected = promise::SEEN_BY_ALL.contains(&property.name) || seen.contains(&property.name);
                assert!(found || !expected, "{setup:?}: never seen: {}", property.name);
            }
            _ if found && !broken.contains(&property.name) => {
                let way = shortest(setup, property.name).unwrap_or_default();
                panic!("{setup:?}: broken: {}\n{}", property.name, told(&way));
            }
            _ => assert!(found || !broken.contains(&property.name), "{setup:?}: not broken: {}", property.name),
        }
    }
}

fn assert_breaks(setup: &Setup, rule: Rule, promises: &[&'static str]) {
    let mutant = Setup { without: Some(rule), ..*setup };
    for promise in promises {
        assert!(shortest(&mutant, promise).is_some(), "{mutant:?}: not broken: {promise}");
    }
}

/// A step, and the world before it.
type Way = Vec<(World, Action)>;

/// The shortest way to a world that breaks the promise.
fn shortest(setup: &Setup, promise: &'static str) -> Option<Way> {
    (2..MAX_WAY).find_map(|depth| {
        let path = setup.checker().target_max_depth(depth).spawn_bfs().join().discovery(promise)?;
        Some(path.into_vec().into_iter().filter_map(|(world, action)| Some((world, action?))).collect())
    })
}

/// Time passed while an attempt had looked at its deadline and not yet written.
fn has_stop_before_write(way: &Way) -> bool {
    way.iter().any(|(world, action)| {
        let about_to_write = |attempt: &attempt::Attempt| matches!(attempt.next, Deed::Write(_));
        *action == Action::Tick && world.attempts.iter().flatten().any(about_to_write)
    })
}

fn told(way: &Way) -> String {
    way.iter().map(|(_, action)| format!("  {action:?}\n")).collect()
}
