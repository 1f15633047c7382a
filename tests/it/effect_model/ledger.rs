//! One effect's row, its sends and two runs' leases in memory: each function stands for one statement of the store and
//! has its conditions. The states come from the runtime's own transition function, and a condition that lets through
//! what that refuses is a fault.

use deedbox::effect::{Event, Learned, OnUnknown, Refused, Resend, State, repeats, transition};

pub const MAX_SENDS: usize = 3;

/// A rule that a test may take out, to see that its lack is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// Claims and re-sends hold only under a lease that is alive.
    Lease,
    /// Settling compares the holder.
    HolderWhenSettling,
    /// A re-send compares the holder that was read.
    HolderWhenResending,
    /// What the first claim pinned is what is sent.
    PinnedKey,
    /// A send that applied nothing frees the effect only when no earlier one is unknown.
    EarlierUnknown,
    /// No first byte after the lease's deadline.
    FirstByteDeadline,
    /// No first byte of a second send once the provider may have forgotten the key.
    KeyWindow,
    /// Nobody resolves before the holder's deadline and the longest send have passed.
    ResolverWaits,
}

/// How the effect is to be treated.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub resend: Resend,
    pub on_unknown: OnUnknown,
    /// Runs that share the effect: one or two.
    pub runs: u8,
    /// Attempts that each run may have.
    pub attempts: u8,
    pub without: Option<Rule>,
}

impl Setup {
    pub fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    /// A second application would be a double, and nobody accepted that risk.
    pub fn is_safe(&self) -> bool {
        self.resend != Resend::Idempotent && self.on_unknown != OnUnknown::AtLeastOnce
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Run {
    pub token: u8,
    /// Running, and the lease is not over by the database's clock.
    pub leased: bool,
    pub ended: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    pub run: u8,
    pub token: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    pub lease: Lease,
    pub send: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    pub state: State,
    pub holder: Holder,
    pub key: u8,
    pub doubled: bool,
    /// The recorded answer: whether it is a success.
    pub success: Option<bool>,
}

/// What a send's own row says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SendRow {
    pub learned: Option<&'static str>,
    pub success: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    pub runs: [Run; 2],
    pub row: Option<Row>,
    pub sends: [SendRow; MAX_SENDS],
}

/// The conditions of a statement let through what must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A transition that the table refuses.
    Transition,
    /// An attempt whose lease is over claimed or took over.
    StaleClaim,
    /// An effect was taken from a holder that is alive.
    TakenFromTheLiving,
    /// A second send while the first may have been applied.
    UnsafeSend,
    /// The provider applied the effect twice.
    AppliedTwice,
    /// The provider saw two keys for the effect.
    TwoKeys,
    /// A released effect was applied.
    ReleasedButApplied,
    /// A completed effect's record is not what happened.
    FalseRecord,
    /// Flagged as doubled without having been, or not flagged though two sends proved it.
    FalseFlag,
}

impl From<Refused> for Fault {
    fn from(_: Refused) -> Self {
        Self::Transition
    }
}

/// What came of a claim.
pub enum Claimed {
    Won(u8),
    Found(Row),
    LeaseOver,
    /// The model's bound on sends is reached.
    Full,
}

impl Ledger {
    pub fn holds(&self, lease: Lease) -> bool {
        let run = self.runs[usize::from(lease.run)];
        run.leased && run.token == lease.token
    }

    /// Inserts the row, or takes it when it is released. `key` is the one that this host version derives.
    pub fn claim(&mut self, setup: &Setup, lease: Lease, key: u8) -> Result<Claimed, Fault> {
        if !self.holds(lease) && setup.keeps(Rule::Lease) {
            return Ok(Claimed::LeaseOver);
        }
        let (send, pinned) = match self.row {
            Some(row) if row.state != State::Released => return Ok(Claimed::Found(row)),
            Some(row) => (row.holder.send + 1, row.key),
            None => (0, key),
        };
        if usize::from(send) >= MAX_SENDS {
            return Ok(Claimed::Full);
        }
        self.check_lease(lease)?;
        let key = if setup.keeps(Rule::PinnedKey) { pinned } else { key };
        let next = transition(self.row.map(|row| row.state), Event::Claim)?;
        let doubled = self.row.is_some_and(|row| row.doubled);
        let holder = Holder { lease, send };
        self.row = Some(Row { state: next.state, holder, key, doubled, success: None });
        Ok(Claimed::Won(send))
    }

    /// Takes over from `from`, as the caller read it.
    pub fn resend(&mut self, setup: &Setup, lease: Lease, from: Holder, key: u8) -> Result<Option<u8>, Fault> {
        if !self.holds(lease) && setup.keeps(Rule::Lease) {
            return Ok(None);
        }
        let Some(row) = &mut self.row else { return Ok(None) };
        let same_holder = row.holder == from || !setup.keeps(Rule::HolderWhenResending);
        let send = row.holder.send + 1;
        if row.state != State::Claimed || !same_holder || usize::from(send) >= MAX_SENDS {
            return Ok(None);
        }
        let before = row.holder;
        row.state = transition(Some(row.state), Event::Resend)?.state;
        row.holder = Holder { lease, send };
        if !setup.keeps(Rule::PinnedKey) {
            row.key = key;
        }
        let closed = &mut self.sends[usize::from(before.send)];
        closed.learned = closed.learned.or(Some(Learned::Unknown.as_str()));
        self.check_lease(lease)?;
        if before.lease != lease && self.holds(before.lease) {
            return Err(Fault::TakenFromTheLiving);
        }
        Ok(Some(send))
    }

    /// Settles for `holder`; false when it holds the effect no longer.
    pub fn settle(
        &mut self,
        setup: &Setup,
        holder: Holder,
        learned: Learned,
        state: State,
        success: bool,
    ) -> Result<bool, Fault> {
        let own = &mut self.sends[usize::from(holder.send)];
        let open = [None, Some(Learned::Unknown.as_str())].contains(&own.learned);
        if open {
            *own = SendRow { learned: Some(learned.as_str()), success };
        }
        let Some(row) = &mut self.row else { return Ok(false) };
        let same_holder = row.holder == holder || !setup.keeps(Rule::HolderWhenSettling);
        if row.state != State::Claimed || !same_holder {
            return Ok(false);
        }
        let event = match state {
            State::Claimed => return Ok(true),
            State::Completed => Event::Answer,
            State::Released => Event::NotApplied,
            State::Escaped => Event::Escape,
        };
        row.state = transition(Some(row.state), event)?.state;
        row.success = (state == State::Completed).then_some(success);
        Ok(true)
    }

    /// Completes the effect with the success of a send that holds it no longer.
    pub fn prove(&mut self, setup: &Setup, send: u8) -> Result<(), Fault> {
        let others = self.sends.iter().enumerate().filter(|(i, _)| *i != usize::from(send));
        let applied_twice = others.filter(|(_, row)| row.success).count() > 0;
        let Some(row) = &mut self.row else { return Ok(()) };
        let repeated = applied_twice && repeats(setup.resend, true);
        let next = transition(Some(row.state), Event::LateProof { repeated })?;
        row.state = next.state;
        row.doubled |= next.doubled;
        row.success = row.success.or(Some(true));
        Ok(())
    }

    /// Records what a look-up or a person found out, if the question is still open.
    pub fn resolve(&mut self, happened: bool) -> Result<(), Fault> {
        if let Some(row) = self.row.as_mut().filter(|row| row.state == State::Escaped) {
            let event = if happened { Event::Happened } else { Event::DidNotHappen };
            row.state = transition(Some(row.state), event)?.state;
            row.success = happened.then_some(true);
        }
        Ok(())
    }

    /// Ends an attempt under its lease. A run that ends leaves its unsettled effect escaped.
    pub fn finish(&mut self, lease: Lease, ended: bool) -> Result<(), Fault> {
        if !self.holds(lease) {
            return Ok(());
        }
        let run = &mut self.runs[usize::from(lease.run)];
        (run.leased, run.ended) = (false, ended);
        let open = self.row.as_mut().filter(|row| row.state == State::Claimed && row.holder.lease.run == lease.run);
        if let Some(row) = open.filter(|_| ended) {
            row.state = transition(Some(row.state), Event::Escape)?.state;
        }
        Ok(())
    }

    fn check_lease(&self, lease: Lease) -> Result<(), Fault> {
        if self.holds(lease) { Ok(()) } else { Err(Fault::StaleClaim) }
    }
}
