//! The run's row and the effect's row in memory. Each function stands for one statement of the store, named in its
//! comment, and has that statement's conditions. Where the store asks the runtime's own functions, so does this.

use deedbox::effect::{Event, Resend, State, repeats, transition};

use super::setup::{LEASE_TICKS, Rule, Setup};

/// Grows with every lease of the run, and so names an attempt.
pub type Token = u8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RunState {
    #[default]
    Queued,
    Running,
    /// For a retry time that has come, or for an effect whose question is open.
    Waiting,
    Completed,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    pub state: RunState,
    pub token: Token,
    /// What is left of the lease, in ticks of the database's clock. None left: it is over.
    pub left: u8,
    pub spent: u8,
    /// May be leased, if it is queued or waits.
    pub due: bool,
    /// The lease under which it ended.
    pub ended_by: Option<Token>,
}

impl Default for Run {
    fn default() -> Self {
        Self { state: RunState::Queued, token: 0, left: 0, spent: 0, due: true, ended_by: None }
    }
}

impl Run {
    pub fn has_ended(&self) -> bool {
        matches!(self.state, RunState::Completed | RunState::Failed)
    }

    /// The condition of every fenced statement.
    pub fn is_held_by(&self, token: Token) -> bool {
        self.state == RunState::Running && self.token == token && self.left > 0
    }
}

/// Who holds the effect. There is one run, so that two of the three parts are enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Holder {
    pub token: Token,
    pub send: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    pub state: State,
    pub holder: Holder,
    /// The wire key that the first claim pinned.
    pub key: u8,
    pub doubled: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ledger {
    pub run: Run,
    pub effect: Option<Row>,
    /// One bit for each send whose own row says that it succeeded; nothing else of those rows is ever read.
    proved: u16,
}

/// How an attempt ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// With the effect's answer.
    Complete,
    /// With a retryable failure: another attempt, or the run fails.
    Failure,
    /// Suspended until the effect's question is settled.
    Wait,
    /// Drained, or its lease was over: back to the queue.
    GiveBack,
}

/// What came of a claim.
pub enum Claimed {
    Won { send: u8, key: u8 },
    Found(Row),
    LeaseOver,
}

impl Ledger {
    /// `store::lease::lease`: takes the run if it is due, or takes it over from a lease that is over.
    pub fn lease(&mut self, setup: &Setup) -> Option<Token> {
        let run = &mut self.run;
        let due = match run.state {
            RunState::Queued | RunState::Waiting => run.due,
            RunState::Running => {
                run.left == 0 && (run.spent < setup.max_attempts || !setup.keeps(Rule::LeaseChecksTheSpent))
            }
            RunState::Completed | RunState::Failed => false,
        };
        if !due {
            return None;
        }
        let (token, spent) = (run.token + 1, run.spent + 1);
        *run = Run { state: RunState::Running, token, left: LEASE_TICKS, spent, due: false, ended_by: None };
        Some(token)
    }

    /// `store::lease::renew`.
    pub fn renew(&mut self, setup: &Setup, token: Token) -> bool {
        let renewed = self.run.is_held_by(token) || !setup.keeps(Rule::RenewChecksTheLease);
        if renewed {
            self.run.left = LEASE_TICKS;
        }
        renewed
    }

    /// `store::effect::claim`: checks the lease, and inserts the row or takes it when it is released. `derived` is the
    /// wire key that this attempt's version of the host would use.
    pub fn claim(&mut self, setup: &Setup, token: Token, derived: u8) -> Claimed {
        if !self.run.is_held_by(token) && setup.keeps(Rule::ClaimChecksTheLease) {
            return Claimed::LeaseOver;
        }
        let (send, key, doubled) = match self.effect {
            Some(row) if row.state != State::Released => return Claimed::Found(row),
            Some(row) => (row.holder.send + 1, row.key, row.doubled),
            None => (0, derived, false),
        };
        self.effect = Some(Row { state: State::Claimed, holder: Holder { token, send }, key, doubled });
        Claimed::Won { send, key }
    }

    /// `store::effect::resend`: takes the effect over from the holder that was read, for another send.
    pub fn resend(&mut self, setup: &Setup, token: Token, from: Holder) -> Option<u8> {
        let fenced = self.run.is_held_by(token) || !setup.keeps(Rule::ClaimChecksTheLease);
        let row = self.effect.as_mut()?;
        if !fenced || row.state != State::Claimed || row.holder != from {
            return None;
        }
        row.holder = Holder { token, send: from.send + 1 };
        Some(row.holder.send)
    }

    /// `store::effect::settle`: by whoever holds the effect, also after the lease is over; what the send learned is kept
    /// on its own row in any case. False when another send has the effect, or it is claimed no longer.
    pub fn settle(&mut self, setup: &Setup, holder: Holder, state: State, success: bool) -> bool {
        let others = self.proved & !(1 << holder.send);
        self.proved |= u16::from(success) << holder.send;
        let Some(row) = &mut self.effect else { return false };
        let same = row.holder == holder || !setup.keeps(Rule::SettleComparesTheHolder);
        let claimed = row.state == State::Claimed || !setup.keeps(Rule::SettleChecksTheState);
        if !claimed || !same {
            return false;
        }
        row.state = state;
        row.doubled |= setup.resend == Resend::Unsafe && success && others != 0;
        true
    }

    /// `store::late::prove`: completes the effect with the success of a send that holds it no longer.
    pub fn prove(&mut self, setup: &Setup, send: u8) {
        let twice = self.proved & !(1 << send) != 0;
        let Some(row) = &mut self.effect else { return };
        let repeated = twice && repeats(setup.resend, true);
        let Ok(next) = transition(Some(row.state), Event::LateProof { repeated }) else { return };
        row.state = next.state;
        row.doubled |= next.doubled;
        self.wake(setup);
    }

    /// `store::resolution::resolve`: a look-up or a person answers an open question.
    pub fn resolve(&mut self, setup: &Setup, happened: bool) {
        let Some(row) = &mut self.effect else { return };
        let event = if happened { Event::Happened } else { Event::DidNotHappen };
        let Ok(next) = transition(Some(row.state), event) else { return };
        row.state = next.state;
        self.wake(setup);
    }

    /// `store::lease::finish`: ends an attempt under its lease. Giving back also counts after the lease's end, while
    /// nobody else has the run.
    pub fn finish(&mut self, setup: &Setup, token: Token, end: End) {
        let run = &mut self.run;
        let own = run.state == RunState::Running && run.token == token && (run.left > 0 || end == End::GiveBack);
        if !own && setup.keeps(Rule::FinishChecksTheLease) {
            return;
        }
        let open = self.effect.is_some_and(|row| row.state == State::Escaped);
        let (state, due, spent_back) = match end {
            End::Complete => (RunState::Completed, false, 0),
            End::Failure if run.spent >= setup.max_attempts => (RunState::Failed, false, 0),
            End::Failure => (RunState::Waiting, true, 0),
            End::Wait => (RunState::Waiting, !open, 1),
            End::GiveBack => (RunState::Queued, true, 1),
        };
        let spent = run.spent.saturating_sub(spent_back);
        *run = Run { state, due, spent, left: 0, ended_by: None, ..*run };
        if run.has_ended() {
            run.ended_by = Some(token);
            self.escape_claimed();
        }
    }

    /// `store::lease::fail_lost`: ends a run whose worker was lost in its last allowed attempt.
    pub fn fail_lost(&mut self, setup: &Setup) {
        let run = &mut self.run;
        if run.state == RunState::Running && run.left == 0 && run.spent >= setup.max_attempts {
            (run.state, run.ended_by) = (RunState::Failed, Some(run.token));
            self.escape_claimed();
        }
    }

    fn escape_claimed(&mut self) {
        if let Some(row) = self.effect.as_mut().filter(|row| row.state == State::Claimed) {
            row.state = State::Escaped;
        }
    }

    fn wake(&mut self, setup: &Setup) {
        self.run.due |= self.run.state == RunState::Waiting && setup.keeps(Rule::ResolvingWakes);
    }
}
