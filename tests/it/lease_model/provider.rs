//! The outside world: requests on their way, and a provider that applies each arrival, or each key once.

use deedbox::effect::{Learned, Reading, Resend, learned};

use super::setup::Setup;

/// More than any search needs; a model that grows past it stops with a panic.
const MAX_SENDS: usize = 14;

/// What the provider answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// 200: applied.
    Done,
    /// 429: not applied.
    Busy,
    /// 500: applied or not.
    Broken,
}

impl Answer {
    pub fn learned(self) -> Learned {
        let status = match self {
            Self::Done => 200,
            Self::Busy => 429,
            Self::Broken => 500,
        };
        learned(status, &Reading::default())
    }
}

/// What the provider does with a request that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Applies,
    AppliesThenBreaks,
    Breaks,
    IsBusy,
}

pub const DOINGS: [Doing; 4] = [Doing::Applies, Doing::AppliesThenBreaks, Doing::Breaks, Doing::IsBusy];

/// Where a send's request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packet {
    /// Not written, lost, or answered and nobody listens.
    #[default]
    Nowhere,
    /// On its way, whether or not its sender still lives.
    Flying {
        key: u8,
    },
    Answered(Answer),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Provider {
    pub packets: [Packet; MAX_SENDS],
    /// How often the world was changed.
    pub applied: u8,
    /// One bit for each key that was applied, at a provider that takes keys.
    keys: u8,
}

impl Provider {
    /// Nothing that was sent can still change the world.
    pub fn is_quiet(&self) -> bool {
        !self.packets.iter().any(|packet| matches!(packet, Packet::Flying { .. }))
    }

    pub fn packet(&mut self, send: u8) -> &mut Packet {
        &mut self.packets[usize::from(send)]
    }

    pub fn arrive(&mut self, setup: &Setup, send: u8, doing: Doing) {
        let Packet::Flying { key } = *self.packet(send) else { return };
        let bit = if setup.resend == Resend::Keyed { 1 << key } else { 0 };
        let (applies, answer) = match doing {
            // A key that is known gets the stored answer, whatever else would have happened.
            _ if self.keys & bit != 0 => (false, Answer::Done),
            Doing::Applies => (true, Answer::Done),
            Doing::AppliesThenBreaks => (true, Answer::Broken),
            Doing::Breaks => (false, Answer::Broken),
            Doing::IsBusy => (false, Answer::Busy),
        };
        if applies {
            self.applied += 1;
            self.keys |= bit;
        }
        *self.packet(send) = Packet::Answered(answer);
    }
}
