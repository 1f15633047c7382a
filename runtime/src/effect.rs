//! The states of an effect, and every decision about sending it: one transition function and one function for each
//! question, used alike in normal running and in recovery.
//!
//! Pure: no I/O, no clock. What the ledger says and what time it is come in as arguments.

use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A word that names no value of the type it was read as.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a known word here")]
pub struct UnknownWord(String);

/// The one spelling of an enum's values, in the database, in JSON and in messages.
macro_rules! words {
    ($name:ident { $($variant:ident => $text:literal),* $(,)? }) => {
        impl $name {
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }

        impl FromStr for $name {
            type Err = UnknownWord;

            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                match text { $($text => Ok(Self::$variant),)* _ => Err(UnknownWord(text.to_owned())) }
            }
        }
    };
}

/// Where an effect stands. An effect that is absent from the ledger has no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A send may be under way, or its outcome is unknown.
    Claimed,
    /// A final answer is recorded.
    Completed,
    /// It is certain that nothing was applied.
    Released,
    /// The outcome is unknown and sending again is not safe: an open question.
    Escaped,
}

words!(State { Claimed => "claimed", Completed => "completed", Released => "released", Escaped => "escaped" });

/// What can happen to an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// An attempt claims it, to send it for the first time or after a release.
    Claim,
    /// The send that holds it got a final answer.
    Answer,
    /// The send that holds it surely applied nothing.
    NotApplied,
    /// The outcome is unknown and sending again is safe: another send takes it.
    Resend,
    /// The outcome is unknown and sending again is not safe, or the run ended with it open.
    Escape,
    /// A send that no longer holds it learned that it succeeded. `repeated`: another send succeeded too, and the provider
    /// did not take both for the same one.
    LateProof { repeated: bool },
    /// A look-up, a signal or a person says that it happened.
    Happened,
    /// A look-up, a signal or a person says that it did not.
    DidNotHappen,
    /// A person says to send it again all the same.
    SendAgain,
}

/// The state after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    pub state: State,
    /// The world changed twice: an incident to show.
    pub doubled: bool,
}

/// An event that the state does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{event:?} is not allowed for an effect that is {from:?}")]
pub struct Refused {
    pub from: Option<State>,
    pub event: Event,
}

/// The table of states. Decisions below go through it; the ledger's statements are held to it by tests.
pub fn transition(from: Option<State>, event: Event) -> Result<Next, Refused> {
    use State::{Claimed, Completed, Escaped, Released};
    let to = |state| Ok(Next { state, doubled: false });
    match (from, event) {
        (None | Some(Released), Event::Claim) => to(Claimed),
        (Some(Claimed), Event::Answer) => to(Completed),
        (Some(Claimed), Event::NotApplied) => to(Released),
        (Some(Claimed), Event::Resend) => to(Claimed),
        (Some(Claimed), Event::Escape) => to(Escaped),
        (Some(_), Event::LateProof { repeated }) => Ok(Next { state: Completed, doubled: repeated }),
        (Some(Escaped), Event::Happened) => to(Completed),
        (Some(Escaped), Event::DidNotHappen) => to(Released),
        (Some(Escaped), Event::SendAgain) => to(Claimed),
        _ => Err(Refused { from, event }),
    }
}

/// Why another send of the same effect would be safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Resend {
    /// The method is idempotent by itself: PUT, DELETE.
    Idempotent,
    /// The provider takes our key for the same effect, for as long as it remembers keys.
    Keyed,
    /// It is not.
    Unsafe,
}

words!(Resend { Idempotent => "idempotent", Keyed => "keyed", Unsafe => "unsafe" });

/// What was chosen for an unknown outcome that nothing else settles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OnUnknown {
    /// A person or a system is asked; the run waits.
    #[default]
    Ask,
    /// Never sent again; the guest is told.
    AtMostOnce,
    /// Sent again, at the risk of a double.
    AtLeastOnce,
}

words!(OnUnknown { Ask => "ask", AtMostOnce => "at-most-once", AtLeastOnce => "at-least-once" });

/// What is done about a send whose outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    SendAgain,
    /// The guest gets `outcome-unknown`.
    AtMostOnce,
    /// The question stays open and the run waits: for a look-up, or for a person.
    Ask,
}

/// All that an unknown outcome is answered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    pub resend: Resend,
    /// The provider still knows the key, with a margin of the longest send.
    pub key_remembered: bool,
    /// The provider can be asked whether it happened.
    pub lookup: bool,
    pub on_unknown: OnUnknown,
    /// A person said to send it once more.
    pub send_again: bool,
}

/// Answers an unknown outcome by the first rule that fits.
pub fn verdict(rules: &Rules) -> Verdict {
    match (rules.resend, rules.on_unknown) {
        _ if rules.send_again => Verdict::SendAgain,
        (Resend::Idempotent, _) => Verdict::SendAgain,
        (Resend::Keyed, _) if rules.key_remembered => Verdict::SendAgain,
        _ if rules.lookup => Verdict::Ask,
        (_, OnUnknown::AtLeastOnce) => Verdict::SendAgain,
        (_, OnUnknown::AtMostOnce) => Verdict::AtMostOnce,
        (_, OnUnknown::Ask) => Verdict::Ask,
    }
}

/// Whether another send, after one that may have been applied, is taken by the provider for the same effect.
pub fn repeats(resend: Resend, key_remembered: bool) -> bool {
    !matches!((resend, key_remembered), (Resend::Idempotent, _) | (Resend::Keyed, true))
}

/// Who holds a claimed effect, seen by the attempt that meets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This attempt itself; its send is over.
    Own,
    /// Another attempt or run whose lease is alive, or a send of this attempt that is still under way.
    Alive,
    /// An attempt whose lease is over.
    Gone,
}

/// What the ledger knows of an effect that an attempt wants to make.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub state: State,
    /// The stored request digest equals that of the call.
    pub same_request: bool,
    pub holder: Holder,
    pub rules: Rules,
}

/// What a call does about an effect that the ledger already knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Claim it (again) and send.
    Claim,
    /// Take it over and send it once more, under the pinned wire key.
    Resend,
    /// Hand out the recorded answer; send nothing.
    Replay,
    /// Refuse: another request was claimed under this identity.
    Mismatch,
    /// Another holds it right now.
    InFlight,
    /// Mark it escaped, then suspend the run.
    EscapeAndWait,
    /// Mark it escaped, then tell the guest `outcome-unknown`.
    EscapeAndTell,
    /// It is escaped already: suspend the run.
    Wait,
    /// It is escaped already: tell the guest `outcome-unknown`.
    Tell,
}

/// Decides what a call does about an effect that the ledger already knows.
pub fn meet(found: &Found) -> Step {
    if !found.same_request {
        return Step::Mismatch;
    }
    match (found.state, found.holder) {
        (State::Completed, _) => Step::Replay,
        (State::Released, _) => Step::Claim,
        (State::Escaped, _) if found.rules.on_unknown == OnUnknown::AtMostOnce && !found.rules.lookup => Step::Tell,
        (State::Escaped, _) => Step::Wait,
        (State::Claimed, Holder::Alive) => Step::InFlight,
        (State::Claimed, Holder::Own | Holder::Gone) => match verdict(&found.rules) {
            Verdict::SendAgain => Step::Resend,
            Verdict::AtMostOnce => Step::EscapeAndTell,
            Verdict::Ask => Step::EscapeAndWait,
        },
    }
}

/// What one send learned about the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// A final answer.
    Answer,
    /// Nothing was applied.
    NotApplied,
    /// The provider says that another send of this key is still being worked on.
    InFlight,
    /// Nobody knows.
    Unknown,
}

words!(Learned { Answer => "answered", NotApplied => "not-applied", InFlight => "in-flight", Unknown => "unknown" });

/// How a provider's answer is to be read, beyond what holds for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading<'a> {
    /// Statuses that mean "surely not processed", besides 401, 407, 425 and 429.
    pub not_processed: &'a [u16],
    /// The answer is the provider's "this key is in use right now".
    pub in_flight: bool,
    /// The answer is the provider's "this key was used for another request".
    pub mismatch: bool,
    /// The answer says that an earlier send of this effect was applied.
    pub already_done: bool,
    /// The outcome of an earlier send is unknown still.
    pub earlier_unknown: bool,
}

/// Reads an answer. To a second send, a mismatch tells only that the first one arrived; and a refusal because the thing is
/// there already tells that the first one was applied. To a first send both are final.
pub fn learned(status: u16, reading: &Reading<'_>) -> Learned {
    match status {
        _ if reading.in_flight => Learned::InFlight,
        _ if reading.earlier_unknown && reading.already_done => Learned::Answer,
        _ if reading.earlier_unknown && reading.mismatch => Learned::Unknown,
        401 | 407 | 425 | 429 => Learned::NotApplied,
        _ if reading.not_processed.contains(&status) => Learned::NotApplied,
        408 => Learned::Unknown,
        200..=499 => Learned::Answer,
        _ => Learned::Unknown,
    }
}

/// What the call that made a send does once the send is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// The guest sees what came of the send as it was.
    Show,
    /// The run is suspended until the question is resolved.
    Wait,
    /// The guest gets `outcome-unknown`.
    Tell,
}

/// Settles a held effect by what its send learned. `earlier_unknown`: the outcome of an earlier send is unknown still, so
/// that a send which surely applied nothing proves nothing about the effect.
pub fn settle(learned: Learned, earlier_unknown: bool, verdict: Verdict) -> (State, After) {
    let (event, after) = match learned {
        Learned::Answer => (Some(Event::Answer), After::Show),
        Learned::NotApplied if !earlier_unknown => (Some(Event::NotApplied), After::Show),
        Learned::NotApplied | Learned::InFlight | Learned::Unknown => match verdict {
            Verdict::SendAgain => (None, After::Show),
            Verdict::AtMostOnce => (Some(Event::Escape), After::Tell),
            Verdict::Ask => (Some(Event::Escape), After::Wait),
        },
    };
    let next = event.map(|event| transition(Some(State::Claimed), event));
    // Each of these events is allowed for a claimed effect, as the test of the whole table shows.
    (next.and_then(Result::ok).map_or(State::Claimed, |next| next.state), after)
}
