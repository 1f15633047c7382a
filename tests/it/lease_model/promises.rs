//! What is promised, as properties for the checker: most of each world, some of each step. The checker finds the
//! shortest way to a world that breaks one.

use deedbox::effect::{Event, State, transition};
use stateright::{Model, Property};

use super::attempt::Deed;
use super::ledger::{End, Ledger, Run, RunState, Token};
use super::provider::{Doing, Packet};
use super::setup::Setup;
use super::world::{Action, World};

pub const APPLIED_ONCE: &str = "an effect is applied once at most";
pub const DOUBLE_NEEDS_SLEEP: &str = "a double needs a process that slept between the check and the write";
pub const NEVER_SLEPT: &str = "no first byte is written after the lease's deadline";
pub const RELEASED_IS_UNDONE: &str = "what is released was not applied, or is shown as doubled";
pub const COMPLETED_IS_DONE: &str = "what is completed has happened";
pub const FLAG_IS_TRUE: &str = "what is shown as doubled was applied twice";
pub const OUTPUT_IS_RECORDED: &str = "a completed run has a completed effect";
pub const ENDED_LEAVES_NO_CLAIM: &str = "an ended run has no claimed effect";
pub const NEWEST_ENDS: &str = "a run ends under its newest lease";
pub const STALE_CHANGES_NO_RUN: &str = "a lease that is over never changes the run";
pub const STALE_CLAIMS_NOTHING: &str = "a lease that is over never claims";
pub const TABLE_IS_KEPT: &str = "an effect goes only from state to state as the table says";
pub const COMPLETED_STAYS: &str = "a completed effect stays completed";
pub const SPENT_IS_BOUNDED: &str = "no more attempts are spent than allowed";
pub const TRUST_IS_SHORT: &str = "a process trusts its lease no longer than the database does";
pub const NOTHING_IS_STUCK: &str = "if nothing more goes wrong, the run ends or waits for an open question";

pub const OVERLAP: &str = "two attempts go on at once";
pub const COMPLETED_BY_A_LATER_LEASE: &str = "the run is completed under a later lease";
pub const RELEASED: &str = "the effect is released";
pub const ESCAPED: &str = "the effect is escaped";
pub const DOUBLED: &str = "the effect is shown as doubled";

/// What every search must come by.
pub const SEEN_BY_ALL: [&str; 4] = [OVERLAP, COMPLETED_BY_A_LATER_LEASE, RELEASED, ESCAPED];

/// More steps than the rest of any run takes in which nothing goes wrong.
const CALM_STEPS: usize = 60;

/// A statement changed what it must not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breach {
    StaleRun,
    StaleClaim,
    Undone,
    OffTheTable,
}

pub fn all() -> Vec<Property<Setup>> {
    [always(), seen()].concat()
}

/// Tells the compiler what the conditions below are.
type Make = fn(&'static str, fn(&Setup, &World) -> bool) -> Property<Setup>;

fn always() -> Vec<Property<Setup>> {
    let always = Property::always as Make;
    vec![
        always(APPLIED_ONCE, |setup, w| !doubles(setup, w)),
        always(DOUBLE_NEEDS_SLEEP, |setup, w| !doubles(setup, w) || w.slept_in_window),
        always(NEVER_SLEPT, |_, w| !w.slept_in_window),
        always(RELEASED_IS_UNDONE, |_, w| {
            let hidden = w.ledger.effect.is_some_and(|row| row.state == State::Released && !row.doubled);
            !hidden || w.provider.applied == 0 || w.slept_in_window
        }),
        always(COMPLETED_IS_DONE, |_, w| !is(w, State::Completed) || w.provider.applied > 0),
        always(FLAG_IS_TRUE, |_, w| w.ledger.effect.is_none_or(|row| !row.doubled) || w.provider.applied > 1),
        always(OUTPUT_IS_RECORDED, |_, w| w.ledger.run.state != RunState::Completed || is(w, State::Completed)),
        always(ENDED_LEAVES_NO_CLAIM, |_, w| !w.ledger.run.has_ended() || !is(w, State::Claimed)),
        always(NEWEST_ENDS, |_, w| w.ledger.run.ended_by.is_none_or(|token| token == w.ledger.run.token)),
        always(STALE_CHANGES_NO_RUN, |_, w| w.breach != Some(Breach::StaleRun)),
        always(STALE_CLAIMS_NOTHING, |_, w| w.breach != Some(Breach::StaleClaim)),
        always(TABLE_IS_KEPT, |_, w| w.breach != Some(Breach::OffTheTable)),
        always(COMPLETED_STAYS, |_, w| w.breach != Some(Breach::Undone)),
        always(SPENT_IS_BOUNDED, |setup, w| w.ledger.run.spent <= setup.max_attempts),
        always(TRUST_IS_SHORT, |_, w| {
            let run = &w.ledger.run;
            let current = |token| run.state == RunState::Running && run.token == token;
            let mut trusting = w.attempts.iter().flatten().filter(|attempt| attempt.heeds_its_lease());
            trusting.all(|a| a.left == 0 || (current(a.token) && a.left <= run.left))
        }),
        always(NOTHING_IS_STUCK, |setup, w| ends_in_calm(setup, *w)),
    ]
}

/// What a search comes by, or its silence means nothing.
fn seen() -> Vec<Property<Setup>> {
    let sometimes = Property::sometimes as Make;
    vec![
        sometimes(OVERLAP, |_, w| !w.attempts.contains(&None)),
        sometimes(COMPLETED_BY_A_LATER_LEASE, |_, w| {
            w.ledger.run.state == RunState::Completed && w.ledger.run.token > 1
        }),
        sometimes(RELEASED, |_, w| is(w, State::Released)),
        sometimes(ESCAPED, |_, w| is(w, State::Escaped)),
        sometimes(DOUBLED, |_, w| w.ledger.effect.is_some_and(|row| row.doubled)),
    ]
}

fn doubles(setup: &Setup, world: &World) -> bool {
    setup.must_not_double() && world.provider.applied > 1
}

fn is(world: &World, state: State) -> bool {
    world.ledger.effect.is_some_and(|row| row.state == state)
}

/// What no statement may do, seen from before and after it.
pub fn judge(before: &Ledger, after: &Ledger, action: Action) -> Option<Breach> {
    let state = |ledger: &Ledger| ledger.effect.map(|row| row.state);
    let holder = |ledger: &Ledger| ledger.effect.map(|row| row.holder);
    let author = author(action);
    let stale = author.is_some_and(|(token, gives_back)| {
        let own = before.run.state == RunState::Running && before.run.token == token;
        !(before.run.is_held_by(token) || (gives_back && own))
    });
    // To wake a waiting run is to say that it may be looked at, not to change it.
    let run_changed = Run { due: false, ..before.run } != Run { due: false, ..after.run };
    match () {
        () if stale && run_changed => Some(Breach::StaleRun),
        () if stale && holder(before) != holder(after) => Some(Breach::StaleClaim),
        () if state(before) == Some(State::Completed) && state(after) != Some(State::Completed) => Some(Breach::Undone),
        () if state(before) != state(after) && !is_in_table(state(before), state(after)) => Some(Breach::OffTheTable),
        () => None,
    }
}

/// Whether the runtime's table has an event that leads there.
fn is_in_table(from: Option<State>, to: Option<State>) -> bool {
    let events = [
        Event::Claim,
        Event::Answer,
        Event::NotApplied,
        Event::Resend,
        Event::Escape,
        Event::LateProof { repeated: false },
        Event::Happened,
        Event::DidNotHappen,
        Event::SendAgain,
    ];
    events.iter().any(|event| transition(from, *event).is_ok_and(|next| Some(next.state) == to))
}

/// The attempt whose statement it is, and whether it gives the run back.
fn author(action: Action) -> Option<(Token, bool)> {
    match action {
        Action::Does(token, deed) => Some((token, deed == Deed::Finish(End::GiveBack))),
        Action::Renew(token, _) => Some((token, false)),
        _ => None,
    }
}

/// Whether the run ends, or waits for an open question, when from here on no process dies or stalls, nothing is lost,
/// and the provider applies what it gets.
fn ends_in_calm(setup: &Setup, mut world: World) -> bool {
    for _ in 0..CALM_STEPS {
        let run = &world.ledger.run;
        if run.has_ended() || (run.state == RunState::Waiting && !run.due && is(&world, State::Escaped)) {
            return true;
        }
        let mut actions = Vec::new();
        setup.actions(&world, &mut actions);
        let calm = actions.into_iter().filter(|action| is_calm(&world, *action));
        let Some(next) = calm.filter_map(|action| setup.next_state(&world, action)).next() else { return false };
        world = next;
    }
    false
}

fn is_calm(world: &World, action: Action) -> bool {
    match action {
        Action::Does(..) | Action::Lease | Action::FailLost | Action::Arrive(_, Doing::Applies) => true,
        // A process that lives renews its lease.
        Action::Tick => !world.attempts.iter().flatten().any(|attempt| world.ledger.run.is_held_by(attempt.token)),
        // What is lost already is not waited for without end.
        Action::GiveUp(token) => world.attempts.iter().flatten().any(|attempt| match attempt.next {
            Deed::Hear(held) => {
                attempt.token == token && world.provider.packets[usize::from(held.send)] == Packet::Nowhere
            }
            _ => false,
        }),
        _ => false,
    }
}
