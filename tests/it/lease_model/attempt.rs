//! A worker's attempt, step by step: each step is one statement or one thing that is done to the network. What follows
//! from what is decided by the runtime's pure functions alone.

use deedbox::effect::{After, Found, Holder as Seen, Learned, Rules, State, Step, meet, settle, verdict};

use super::ledger::{Claimed, End, Holder, Row, Token};
use super::provider::{Answer, Packet};
use super::setup::{LEASE_TICKS, Rule, Setup};
use super::world::World;

/// An attempt in a process that lives: it runs, or it is stopped and does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    pub token: Token,
    /// What is left of the lease by the local clock, which counts the time that the process is stopped.
    pub left: u8,
    pub next: Deed,
    /// Calls that the guest may still make, this one included.
    pub calls: u8,
}

/// What an attempt does next: one statement, or one thing that it does to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Deed {
    /// `store::effect::claim`; then what `effect::meet` says.
    Claim,
    /// `store::effect::resend`, from the holder that the claim has read.
    TakeOver(Holder),
    /// `gateway::settle::escape`, of the holder that the claim has read.
    Escape(Holder),
    /// The gate of `gateway::transport`: looks at the deadline and writes the first byte at once. With the window open it
    /// only looks.
    CheckAndWrite(Held),
    /// Writes the first byte some time after the look.
    Write(Held),
    /// Reads the answer.
    Hear(Held),
    /// `store::effect::settle`, by what `effect::settle` says.
    Settle(Held, Lesson),
    /// `store::late::prove`: settling came too late, and the success is still to be told.
    Prove(u8),
    /// `store::lease::finish`.
    Finish(End),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    pub send: u8,
    key: u8,
    earlier_unknown: bool,
}

/// What a send taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lesson {
    NothingWritten,
    Silence,
    Heard(Answer),
}

impl Lesson {
    fn learned(self) -> Learned {
        match self {
            Self::NothingWritten => Learned::NotApplied,
            Self::Silence => Learned::Unknown,
            Self::Heard(answer) => answer.learned(),
        }
    }
}

impl Attempt {
    pub fn new(setup: &Setup, token: Token) -> Self {
        Self { token, left: LEASE_TICKS, next: Deed::Claim, calls: setup.calls }
    }

    /// The guest has seen a failure, and may end with it instead of calling again.
    pub fn may_fail(&self, setup: &Setup) -> bool {
        self.next == Deed::Claim && self.calls < setup.calls
    }

    /// The deadline is still to be looked at.
    pub fn heeds_its_lease(&self) -> bool {
        !matches!(self.next, Deed::Prove(_) | Deed::Finish(_))
    }
}

/// Does what an attempt does next, and gives what follows. None: the attempt is over.
pub fn step(world: &mut World, setup: &Setup, attempt: Attempt) -> Option<Deed> {
    let token = attempt.token;
    match attempt.next {
        Deed::Claim => Some(claim(world, setup, token)),
        Deed::TakeOver(from) => Some(match world.ledger.resend(setup, token, from) {
            Some(send) => Deed::CheckAndWrite(Held { send, key: pinned_key(world), earlier_unknown: true }),
            None => Deed::Claim,
        }),
        Deed::Escape(from) => {
            world.ledger.settle(setup, from, State::Escaped, false);
            Some(Deed::Claim)
        }
        Deed::CheckAndWrite(held) if attempt.left == 0 && setup.keeps(Rule::FirstByteDeadline) => {
            Some(Deed::Settle(held, Lesson::NothingWritten))
        }
        Deed::CheckAndWrite(held) if setup.window => Some(Deed::Write(held)),
        Deed::CheckAndWrite(held) | Deed::Write(held) => {
            world.slept_in_window |= attempt.left == 0 && setup.window;
            *world.provider.packet(held.send) = Packet::Flying { key: held.key };
            Some(Deed::Hear(held))
        }
        Deed::Hear(held) => Some(match *world.provider.packet(held.send) {
            Packet::Answered(answer) => Deed::Settle(held, Lesson::Heard(answer)),
            Packet::Nowhere | Packet::Flying { .. } => attempt.next,
        }),
        Deed::Settle(held, lesson) => Some(settled(world, setup, attempt, held, lesson)),
        Deed::Prove(send) => {
            world.ledger.prove(setup, send);
            Some(Deed::Finish(End::GiveBack))
        }
        Deed::Finish(end) => {
            world.finish(setup, token, end);
            None
        }
    }
}

fn claim(world: &mut World, setup: &Setup, token: Token) -> Deed {
    // Each attempt may run on another version of the host, which would derive another key.
    let row = match world.ledger.claim(setup, token, token) {
        Claimed::Won { send, key } => return Deed::CheckAndWrite(Held { send, key, earlier_unknown: false }),
        Claimed::LeaseOver => return Deed::Finish(End::GiveBack),
        Claimed::Found(row) => row,
    };
    match meet(&found(setup, token, &row)) {
        Step::Replay => Deed::Finish(End::Complete),
        Step::Claim | Step::InFlight => Deed::Claim,
        Step::Resend => Deed::TakeOver(row.holder),
        Step::EscapeAndWait | Step::EscapeAndTell => Deed::Escape(row.holder),
        Step::Wait => Deed::Finish(End::Wait),
        Step::Tell | Step::Mismatch => Deed::Finish(End::Failure),
    }
}

/// A later lease of the same run means that the earlier one is over, so that nobody else can be alive.
fn found(setup: &Setup, token: Token, row: &Row) -> Found {
    let holder = if row.holder.token == token { Seen::Own } else { Seen::Gone };
    Found { state: row.state, same_request: true, holder, rules: rules(setup) }
}

fn rules(setup: &Setup) -> Rules {
    let Setup { resend, on_unknown, .. } = *setup;
    Rules { resend, key_remembered: true, lookup: false, on_unknown, send_again: false }
}

fn pinned_key(world: &World) -> u8 {
    world.ledger.effect.map_or(0, |row| row.key)
}

/// Settles by what the send learned, and goes on as a guest would: it ends with the answer, or calls again where it sees
/// a failure.
fn settled(world: &mut World, setup: &Setup, attempt: Attempt, held: Held, lesson: Lesson) -> Deed {
    let (state, after) = settle(lesson.learned(), held.earlier_unknown, verdict(&rules(setup)));
    let success = lesson == Lesson::Heard(Answer::Done);
    let holder = Holder { token: attempt.token, send: held.send };
    if !world.ledger.settle(setup, holder, state, success) {
        return if success { Deed::Prove(held.send) } else { Deed::Finish(End::GiveBack) };
    }
    match after {
        After::Wait => Deed::Finish(End::Wait),
        After::Show if state == State::Completed => Deed::Finish(End::Complete),
        After::Show if attempt.calls > 1 => Deed::Claim,
        After::Show | After::Tell => Deed::Finish(End::Failure),
    }
}
