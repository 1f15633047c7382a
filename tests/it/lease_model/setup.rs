//! What a search of the model is told: how the effect is to be treated, and which of the rules is taken out.

use deedbox::effect::{OnUnknown, Resend};

/// The length of a lease. Two, so that a renewal whose answer is lost leaves the process with less than the database has.
pub const LEASE_TICKS: u8 = 2;

/// A rule that a test may take out, to see that its lack is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A claim and a re-send check token and lease.
    ClaimChecksTheLease,
    /// A finish checks token and lease.
    FinishChecksTheLease,
    /// A renewal checks token and lease.
    RenewChecksTheLease,
    /// Settling compares the holder.
    SettleComparesTheHolder,
    /// Settling changes only what is claimed.
    SettleChecksTheState,
    /// A run whose attempts are spent is not taken over.
    LeaseChecksTheSpent,
    /// Settling a question wakes the run that waits for it.
    ResolvingWakes,
    /// No first byte after the lease's deadline by the local clock.
    FirstByteDeadline,
}

#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub resend: Resend,
    pub on_unknown: OnUnknown,
    pub max_attempts: u8,
    /// How often the guest calls within one attempt, if it sees failures.
    pub calls: u8,
    /// A process may be stopped between its last look at the deadline and the write of the first byte.
    pub window: bool,
    /// How often somebody answers an open question with "it did not happen". Such an answer spends no attempt, so that
    /// without a bound there would be no end.
    pub releases: u8,
    /// How often an attempt is given back to the queue, which spends none either.
    pub give_backs: u8,
    pub without: Option<Rule>,
}

impl Setup {
    pub fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// A second application would be a double, and nobody accepted that risk.
    pub fn must_not_double(&self) -> bool {
        self.resend != Resend::Idempotent && self.on_unknown != OnUnknown::AtLeastOnce
    }
}
