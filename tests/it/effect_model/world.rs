//! Two workers, their runs, the ledger and the provider, and every step that any of them can take next. What a worker
//! does follows from the runtime's pure functions alone.

use deedbox::effect::{
    After, Found, Holder as Seen, Learned, OnUnknown, Resend, Rules, State, Step, meet, settle as settled, verdict,
};

use super::ledger::{Claimed, Fault, Holder, Lease, Ledger, Row, Rule, Setup};
use super::provider::{Answer, ENDS, End, Packet, Provider};

/// Calls in one attempt.
const MAX_CALLS: u8 = 2;

/// Where a worker is between two of its statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    #[default]
    Idle,
    /// About to claim.
    Calling,
    /// Has read the row, and is about to take it over or to leave it escaped.
    Met(Holder, Intent),
    /// Holds the effect; no byte is written.
    Holding(Held),
    /// The first byte is written.
    Sending(Held),
    /// The send is over, not settled.
    Knowing(Held, Lesson),
    /// Settling came too late; the success is still to be told.
    Late(u8),
    /// The call is over.
    Returning,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Intent {
    Resend,
    Escape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Held {
    pub send: u8,
    pub earlier_unknown: bool,
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Worker {
    pub stage: Stage,
    pub lease: Lease,
    pub calls: u8,
}

/// One step of anybody.
#[derive(Clone, Copy, Debug)]
pub enum Move {
    /// A worker leases a run.
    Start(usize, u8),
    /// The next statement or action of a worker.
    Next(usize),
    /// A worker's connection is never made.
    NoConnection(usize),
    /// A worker stops waiting for an answer.
    GiveUp(usize),
    /// An attempt ends, and with it the run or not.
    Finish(usize, bool),
    Crash(usize),
    /// A lease is over.
    Expire(u8),
    Lose(usize),
    Arrive(usize),
    End(usize, End),
    /// The time for which the provider surely remembers the key is over, but for the margin.
    WindowEnds,
    /// The provider forgets the key.
    Forget,
    /// A look-up or a person tells what is true.
    Resolve,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct World {
    pub ledger: Ledger,
    pub provider: Provider,
    pub workers: [Worker; 2],
    pub window_over: bool,
    /// A process died between learning of a success and telling of it.
    pub proof_lost: bool,
}

impl World {
    /// Every step that can be taken now.
    pub fn moves(&self, setup: &Setup) -> Vec<Move> {
        let mut moves = Vec::new();
        for (i, worker) in self.workers.iter().enumerate() {
            moves.extend(self.moves_of_worker(setup, i, worker));
        }
        for run in 0..setup.runs {
            if self.ledger.runs[usize::from(run)].leased {
                moves.push(Move::Expire(run));
            }
        }
        for (i, packet) in self.provider.packets.iter().enumerate() {
            match packet {
                Packet::Flying => moves.extend([Move::Lose(i), Move::Arrive(i)]),
                Packet::Arrived => moves.extend(ENDS.map(|end| Move::End(i, end))),
                _ => {}
            }
        }
        if setup.resend == Resend::Keyed && !self.window_over {
            moves.push(Move::WindowEnds);
        }
        if self.window_over && self.provider.forgets() && self.provider.is_quiet() {
            moves.push(Move::Forget);
        }
        if self.can_be_resolved(setup) {
            moves.push(Move::Resolve);
        }
        moves
    }

    fn moves_of_worker(&self, setup: &Setup, i: usize, worker: &Worker) -> Vec<Move> {
        let mut moves = vec![Move::Crash(i)];
        match worker.stage {
            Stage::Idle => {
                let free = (0..setup.runs).filter(|run| {
                    let it = self.ledger.runs[usize::from(*run)];
                    !it.leased && !it.ended && it.token < setup.attempts
                });
                return free.map(|run| Move::Start(i, run)).collect();
            }
            Stage::Holding(_) => moves.extend([Move::Next(i), Move::NoConnection(i)]),
            Stage::Sending(held) => {
                moves.push(Move::GiveUp(i));
                if matches!(self.provider.packets[usize::from(held.send)], Packet::Answered(_)) {
                    moves.push(Move::Next(i));
                }
            }
            Stage::Returning => moves.extend([Move::Finish(i, true), Move::Finish(i, false)]),
            Stage::Calling | Stage::Met(..) | Stage::Knowing(..) | Stage::Late(_) => moves.push(Move::Next(i)),
        }
        moves
    }

    fn can_be_resolved(&self, setup: &Setup) -> bool {
        let Some(row) = self.ledger.row.filter(|row| row.state == State::Escaped) else { return false };
        !setup.keeps(Rule::ResolverWaits) || (self.provider.is_quiet() && !self.ledger.holds(row.holder.lease))
    }

    /// The world after a step, or the fault that it shows.
    pub fn after(mut self, setup: &Setup, step: Move) -> Result<Self, Fault> {
        match step {
            Move::Start(i, run) => self.start(i, run),
            Move::Next(i) => self.next(setup, i)?,
            Move::NoConnection(i) => self.learn(i, Lesson::NothingWritten),
            Move::GiveUp(i) => self.learn(i, Lesson::Silence),
            Move::Finish(i, ended) => {
                self.ledger.finish(self.workers[i].lease, ended)?;
                self.workers[i] = Worker::default();
            }
            Move::Crash(i) => self.crash(i),
            Move::Expire(run) => self.ledger.runs[usize::from(run)].leased = false,
            Move::Lose(i) => self.provider.lose(i),
            Move::Arrive(i) => self.provider.arrive(setup, i),
            Move::End(i, end) => self.provider.end(setup, i, end)?,
            Move::WindowEnds => self.window_over = true,
            Move::Forget => self.provider.forget(),
            Move::Resolve => self.ledger.resolve(self.provider.applied > 0)?,
        }
        self.check(setup)?;
        self.forget_what_tells_nothing();
        Ok(self)
    }

    /// Worlds that can only go on alike become one: workers have no names, and nobody reads an answer that nobody awaits.
    fn forget_what_tells_nothing(&mut self) {
        self.workers.sort_unstable();
        for (i, packet) in self.provider.packets.iter_mut().enumerate() {
            let awaited = |worker: &Worker| matches!(worker.stage, Stage::Sending(held) if usize::from(held.send) == i);
            if matches!(packet, Packet::Answered(_)) && !self.workers.iter().any(awaited) {
                *packet = Packet::Lost;
            }
        }
    }

    fn start(&mut self, i: usize, run: u8) {
        let row = &mut self.ledger.runs[usize::from(run)];
        (row.token, row.leased) = (row.token + 1, true);
        let lease = Lease { run, token: row.token };
        self.workers[i] = Worker { stage: Stage::Calling, lease, calls: MAX_CALLS };
    }

    fn crash(&mut self, i: usize) {
        self.proof_lost |= matches!(self.workers[i].stage, Stage::Late(_));
        self.workers[i] = Worker::default();
    }

    fn learn(&mut self, i: usize, lesson: Lesson) {
        if let Stage::Holding(held) | Stage::Sending(held) = self.workers[i].stage {
            self.workers[i].stage = Stage::Knowing(held, lesson);
        }
    }

    fn next(&mut self, setup: &Setup, i: usize) -> Result<(), Fault> {
        let worker = self.workers[i];
        let lease = worker.lease;
        // Each attempt may run on another version of the host, which would derive another key.
        let derived_key = lease.run * 16 + lease.token;
        let stage = match worker.stage {
            Stage::Calling => self.call(setup, lease, derived_key)?,
            Stage::Met(from, Intent::Resend) => match self.ledger.resend(setup, lease, from, derived_key)? {
                Some(send) => Stage::Holding(Held { send, earlier_unknown: true }),
                None => Stage::Calling,
            },
            Stage::Met(from, Intent::Escape) => {
                self.ledger.settle(setup, from, Learned::Unknown, State::Escaped, false)?;
                Stage::Calling
            }
            Stage::Holding(held) => self.write(setup, lease, held)?,
            Stage::Sending(held) => match self.provider.packets[usize::from(held.send)] {
                Packet::Answered(answer) => Stage::Knowing(held, Lesson::Heard(answer)),
                _ => worker.stage,
            },
            Stage::Knowing(held, lesson) => self.settle(setup, i, held, lesson)?,
            Stage::Late(send) => {
                self.ledger.prove(setup, send)?;
                Stage::Idle
            }
            Stage::Idle | Stage::Returning => worker.stage,
        };
        self.workers[i].stage = stage;
        if stage == Stage::Idle {
            self.workers[i] = Worker::default();
        }
        Ok(())
    }

    fn call(&mut self, setup: &Setup, lease: Lease, derived_key: u8) -> Result<Stage, Fault> {
        let row = match self.ledger.claim(setup, lease, derived_key)? {
            Claimed::Won(send) => return Ok(Stage::Holding(Held { send, earlier_unknown: false })),
            Claimed::LeaseOver | Claimed::Full => return Ok(Stage::Idle),
            Claimed::Found(row) => row,
        };
        Ok(match meet(&self.found(setup, lease, &row)) {
            Step::Replay | Step::Tell | Step::Mismatch => Stage::Returning,
            Step::Claim | Step::InFlight => Stage::Calling,
            Step::Resend => Stage::Met(row.holder, Intent::Resend),
            Step::EscapeAndWait | Step::EscapeAndTell => Stage::Met(row.holder, Intent::Escape),
            Step::Wait => {
                self.ledger.finish(lease, false)?;
                Stage::Idle
            }
        })
    }

    fn found(&self, setup: &Setup, lease: Lease, row: &Row) -> Found {
        let alive = self.ledger.holds(row.holder.lease);
        let holder = match row.holder.lease {
            own if own == lease => Seen::Own,
            other if alive && other.run != lease.run => Seen::Alive,
            _ => Seen::Gone,
        };
        Found { state: row.state, same_request: true, holder, rules: self.rules(setup) }
    }

    fn rules(&self, setup: &Setup) -> Rules {
        let Setup { resend, on_unknown, .. } = *setup;
        Rules { resend, key_remembered: !self.window_over, lookup: false, on_unknown, send_again: false }
    }

    /// The checks just before the first byte, and the byte.
    fn write(&mut self, setup: &Setup, lease: Lease, held: Held) -> Result<Stage, Fault> {
        let too_late = !self.ledger.holds(lease) && setup.keeps(Rule::FirstByteDeadline);
        let relies_on_key = held.earlier_unknown && setup.resend == Resend::Keyed;
        let forgotten = relies_on_key && self.window_over && setup.keeps(Rule::KeyWindow);
        if too_late || forgotten {
            return Ok(Stage::Knowing(held, Lesson::NothingWritten));
        }
        if let Some(row) = self.ledger.row {
            self.provider.write(setup, held.send, row.key)?;
        }
        Ok(Stage::Sending(held))
    }

    fn settle(&mut self, setup: &Setup, i: usize, held: Held, lesson: Lesson) -> Result<Stage, Fault> {
        let learned = lesson.learned();
        let earlier_unknown = held.earlier_unknown && setup.keeps(Rule::EarlierUnknown);
        let verdict = verdict(&self.rules(setup));
        let (state, after) = settled(learned, earlier_unknown, verdict);
        let success = lesson == Lesson::Heard(Answer::Done);
        let lease = self.workers[i].lease;
        if !self.ledger.settle(setup, Holder { lease, send: held.send }, learned, state, success)? {
            return Ok(if success { Stage::Late(held.send) } else { Stage::Idle });
        }
        self.workers[i].calls -= 1;
        Ok(match after {
            After::Show if state == State::Completed || self.workers[i].calls == 0 => Stage::Returning,
            After::Show => Stage::Calling,
            After::Tell => Stage::Returning,
            After::Wait => {
                self.ledger.finish(lease, false)?;
                Stage::Idle
            }
        })
    }

    /// What must hold in every state.
    fn check(&self, setup: &Setup) -> Result<(), Fault> {
        let Some(row) = self.ledger.row else { return Ok(()) };
        if row.state == State::Released && self.provider.applied > 0 {
            return Err(Fault::ReleasedButApplied);
        }
        let happened = self.provider.applied > 0;
        let said_done = row.state == State::Completed && row.success == Some(true);
        let said_declined = row.state == State::Completed && row.success == Some(false);
        if (said_done && !happened) || (said_declined && happened && setup.is_safe()) {
            return Err(Fault::FalseRecord);
        }
        let idle = self.workers.iter().all(|worker| worker.stage == Stage::Idle);
        let proofs = self.ledger.sends.iter().filter(|send| send.success).count();
        let is_double = setup.resend == Resend::Unsafe && setup.on_unknown == OnUnknown::AtLeastOnce && proofs > 1;
        let unflagged = idle && is_double && !self.proof_lost && !row.doubled;
        if unflagged || (row.doubled && self.provider.applied < 2) || (row.doubled && setup.is_safe()) {
            return Err(Fault::FalseFlag);
        }
        Ok(())
    }
}
