//! The outside world of the model: requests on their way and a provider that applies each arrival, or each key once.

use deedbox::effect::{Learned, Reading, Resend, learned};

use super::ledger::{Fault, MAX_SENDS, Setup};

/// What the provider answers, once it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// 200: applied.
    Done,
    /// 402: final, and not applied.
    Declined,
    /// 429: not applied.
    Busy,
    /// 409 by the convention: another send of this key is being worked on.
    InUse,
    /// 500: applied or not.
    Broken,
}

impl Answer {
    pub fn learned(self) -> Learned {
        let (status, in_flight) = match self {
            Self::Done => (200, false),
            Self::Declined => (402, false),
            Self::Busy => (429, false),
            Self::InUse => (409, true),
            Self::Broken => (500, false),
        };
        learned(status, &Reading { in_flight, ..Reading::default() })
    }
}

/// How the provider's work on a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Applied,
    AppliedThenBroken,
    Broken,
    Busy,
    Declined,
}

pub const ENDS: [End; 5] = [End::Applied, End::AppliedThenBroken, End::Broken, End::Busy, End::Declined];

/// Where a send's request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packet {
    #[default]
    NotSent,
    Flying,
    /// The provider works on it.
    Arrived,
    Answered(Answer),
    Lost,
}

impl Packet {
    /// It may still be applied.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Flying | Self::Arrived)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Provider {
    pub packets: [Packet; MAX_SENDS],
    pub applied: u8,
    key: Option<u8>,
    stored: Option<Answer>,
}

impl Provider {
    /// Nothing that was sent can still change the world.
    pub fn is_quiet(&self) -> bool {
        !self.packets.iter().any(|packet| packet.is_alive())
    }

    /// The first byte of a send is written.
    pub fn write(&mut self, setup: &Setup, send: u8, key: u8) -> Result<(), Fault> {
        if setup.resend == Resend::Unsafe && setup.is_safe() && (self.applied > 0 || !self.is_quiet()) {
            return Err(Fault::UnsafeSend);
        }
        if self.key.is_some_and(|seen| seen != key) {
            return Err(Fault::TwoKeys);
        }
        self.key = Some(key);
        self.packets[usize::from(send)] = Packet::Flying;
        Ok(())
    }

    pub fn lose(&mut self, send: usize) {
        self.packets[send] = Packet::Lost;
    }

    pub fn arrive(&mut self, setup: &Setup, send: usize) {
        let in_use = setup.resend == Resend::Keyed && self.packets.contains(&Packet::Arrived);
        self.packets[send] = match self.stored {
            Some(answer) => Packet::Answered(answer),
            None if in_use => Packet::Answered(Answer::InUse),
            None => Packet::Arrived,
        };
    }

    pub fn end(&mut self, setup: &Setup, send: usize, end: End) -> Result<(), Fault> {
        let (applies, answer) = match end {
            End::Applied => (true, Answer::Done),
            End::AppliedThenBroken => (true, Answer::Broken),
            End::Broken => (false, Answer::Broken),
            End::Busy => (false, Answer::Busy),
            End::Declined => (false, Answer::Declined),
        };
        self.packets[send] = Packet::Answered(answer);
        self.applied += u8::from(applies);
        if setup.resend == Resend::Keyed && (applies || end == End::Declined) {
            self.stored = Some(if applies { Answer::Done } else { Answer::Declined });
        }
        if setup.is_safe() && self.applied > 1 { Err(Fault::AppliedTwice) } else { Ok(()) }
    }

    pub fn forgets(&self) -> bool {
        self.stored.is_some()
    }

    pub fn forget(&mut self) {
        self.stored = None;
    }
}
