//! Ordinals for effects that are told apart by their place: method, origin and path, counted within one attempt.
//!
//! The count moves on only when it is certain that the next call is another effect, so that a retry loop in the body, or
//! in a client library, sends the same effect again instead of making a new one.

use std::collections::HashMap;

use crate::key::EffectId;

/// The place that a call without a name is counted at.
pub fn place(method: &str, url_without_query: &str) -> String {
    format!("{method} {url_without_query}")
}

/// Why a call at a slot cannot be told from the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ambiguous {
    /// A call at this slot is still under way.
    Overlapping,
    /// The last call's outcome is open, and this one is different.
    Different,
}

/// How a call at a slot ended, for the ordinal of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The final answer was handed whole to the guest.
    Handed,
    /// The final answer is there, and the guest may never look at it.
    Answered,
    /// Surely nothing was applied.
    Released,
    /// Anything else.
    Open,
}

#[derive(Debug)]
struct Slot {
    ordinal: u32,
    digest: [u8; 32],
    effect: Option<EffectId>,
    /// None while a call is under way.
    end: Option<End>,
}

/// The slots of one attempt.
#[derive(Debug, Default)]
pub struct Slots(HashMap<String, Slot>);

impl Slots {
    /// Begins a call and gives its ordinal. `streamed`: the digest does not cover the body, so that two of them never surely
    /// are the same call.
    pub fn begin(&mut self, slot: &str, digest: [u8; 32], streamed: bool) -> Result<u32, Ambiguous> {
        let ordinal = match self.0.get(slot) {
            None => 0,
            Some(last) => {
                let same = last.digest == digest;
                match last.end {
                    None => return Err(Ambiguous::Overlapping),
                    Some(End::Open | End::Answered) if !same || streamed => return Err(Ambiguous::Different),
                    Some(End::Handed) => last.ordinal + 1,
                    Some(End::Released) if !same => last.ordinal + 1,
                    Some(End::Released | End::Open | End::Answered) => last.ordinal,
                }
            }
        };
        self.0.insert(slot.to_owned(), Slot { ordinal, digest, effect: None, end: None });
        Ok(ordinal)
    }

    pub fn end(&mut self, slot: &str, end: End, effect: Option<EffectId>) {
        if let Some(slot) = self.0.get_mut(slot) {
            (slot.end, slot.effect) = (Some(end), effect);
        }
    }

    /// The guest has the answer of this effect in its hands now.
    pub fn hand(&mut self, effect: EffectId) {
        for slot in self.0.values_mut() {
            if slot.effect == Some(effect) && slot.end == Some(End::Answered) {
                slot.end = Some(End::Handed);
            }
        }
    }
}
