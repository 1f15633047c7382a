//! All there is — ledger, provider, two workers — and every step that can be taken next, as a model for the checker.

use stateright::{Model, Property};

use super::attempt::{Attempt, Deed, Lesson, step};
use super::ledger::{End, Ledger, RunState, Token};
use super::promises::{self, Breach};
use super::provider::{DOINGS, Doing, Packet, Provider};
use super::setup::{LEASE_TICKS, Setup};

/// One step of anybody. An attempt is named by its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// An idle worker leases the run: the statement, and what it gives to the process.
    Lease,
    /// The lease is renewed; the process hears of it or does not.
    Renew(Token, Hears),
    /// An attempt does what it does next: a statement, or something to the network.
    Does(Token, Deed),
    /// The connection is never made.
    NoConnection(Token),
    /// The sender waits for the answer no longer: a time-out, a cut, a lost answer.
    GiveUp(Token),
    /// The guest ends with the failure that it saw.
    Fail(Token),
    /// A drain, between two steps at which nothing is open.
    Drain(Token),
    /// The process dies, and what it knew with it.
    Crash(Token),
    /// The rescuer ends a run whose last allowed attempt was lost.
    FailLost,
    /// A request arrives, however late.
    Arrive(u8, Doing),
    /// A request is lost on its way.
    Lose(u8),
    /// A look-up or a person says what is true.
    Resolve { happened: bool },
    /// Time passes, by every clock. A process that takes no step meanwhile is a stopped one.
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hears {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub ledger: Ledger,
    pub provider: Provider,
    /// One for each worker. In order, since workers have no names.
    pub attempts: [Option<Attempt>; 2],
    pub releases: u8,
    pub give_backs: u8,
    /// A first byte was written by a process that was stopped, past its lease, between the check and the write.
    pub slept_in_window: bool,
    /// The first statement that changed what it must not.
    pub breach: Option<Breach>,
}

impl Model for Setup {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World {
            ledger: Ledger::default(),
            provider: Provider::default(),
            attempts: [None; 2],
            releases: self.releases,
            give_backs: self.give_backs,
            slept_in_window: false,
            breach: None,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for attempt in world.attempts.iter().flatten() {
            attempt_actions(self, world, attempt, actions);
        }
        for (send, packet) in (0..).zip(&world.provider.packets) {
            if matches!(packet, Packet::Flying { .. }) {
                actions.extend(DOINGS.map(|doing| Action::Arrive(send, doing)));
                actions.push(Action::Lose(send));
            }
        }
        if world.attempts.contains(&None) {
            actions.push(Action::Lease);
        }
        actions.extend([Action::FailLost, Action::Tick]);
        // Nobody is wrong about what happened, or calls undone what may still arrive.
        let happened = world.provider.applied > 0;
        if happened || (world.provider.is_quiet() && world.releases > 0) {
            actions.push(Action::Resolve { happened });
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut after = *world;
        after.take(self, action);
        after.breach = world.breach.or_else(|| promises::judge(&world.ledger, &after.ledger, action));
        after.forget_what_tells_nothing();
        (after != *world).then_some(after)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        promises::all()
    }
}

fn attempt_actions(setup: &Setup, world: &World, attempt: &Attempt, actions: &mut Vec<Action>) {
    let token = attempt.token;
    actions.extend([Action::Does(token, attempt.next), Action::Crash(token)]);
    if world.ledger.run.left < LEASE_TICKS || attempt.left < LEASE_TICKS {
        actions.extend([Action::Renew(token, Hears::Yes), Action::Renew(token, Hears::No)]);
    }
    if attempt.may_fail(setup) {
        actions.push(Action::Fail(token));
    }
    match attempt.next {
        Deed::Claim => actions.push(Action::Drain(token)),
        Deed::CheckAndWrite(_) => actions.push(Action::NoConnection(token)),
        Deed::Hear(_) => actions.push(Action::GiveUp(token)),
        _ => {}
    }
}

impl World {
    fn take(&mut self, setup: &Setup, action: Action) {
        match action {
            Action::Lease => self.lease(setup),
            Action::Renew(token, hears) => {
                if self.ledger.renew(setup, token) && hears == Hears::Yes {
                    self.change(token, |attempt| Some(Attempt { left: LEASE_TICKS, ..attempt }));
                }
            }
            Action::Does(token, _) => self.step(setup, token),
            Action::NoConnection(token) => self.learn(token, Lesson::NothingWritten),
            Action::GiveUp(token) => self.learn(token, Lesson::Silence),
            Action::Fail(token) => self.end(token, End::Failure),
            Action::Drain(token) => self.end(token, End::GiveBack),
            Action::Crash(token) => self.change(token, |_| None),
            Action::FailLost => self.ledger.fail_lost(setup),
            Action::Arrive(send, doing) => self.provider.arrive(setup, send, doing),
            Action::Lose(send) => *self.provider.packet(send) = Packet::Nowhere,
            Action::Resolve { happened } => {
                let before = self.ledger;
                self.ledger.resolve(setup, happened);
                self.releases -= u8::from(!happened && self.ledger != before);
            }
            Action::Tick => self.tick(),
        }
    }

    fn lease(&mut self, setup: &Setup) {
        if let Some(token) = self.ledger.lease(setup)
            && let Some(idle) = self.attempts.iter_mut().find(|attempt| attempt.is_none())
        {
            *idle = Some(Attempt::new(setup, token));
        }
    }

    fn step(&mut self, setup: &Setup, token: Token) {
        let Some(attempt) = self.attempts.iter().flatten().find(|attempt| attempt.token == token).copied() else {
            return;
        };
        let next = step(self, setup, attempt);
        let calls = attempt.calls - u8::from(matches!(attempt.next, Deed::Settle(..)));
        self.change(token, |attempt| next.map(|next| Attempt { next, calls, ..attempt }));
    }

    pub fn finish(&mut self, setup: &Setup, token: Token, end: End) {
        if end == End::GiveBack && self.give_backs == 0 {
            return;
        }
        let before = self.ledger;
        self.ledger.finish(setup, token, end);
        self.give_backs -= u8::from(end == End::GiveBack && self.ledger != before);
    }

    fn end(&mut self, token: Token, end: End) {
        self.change(token, |attempt| Some(Attempt { next: Deed::Finish(end), ..attempt }));
    }

    fn learn(&mut self, token: Token, lesson: Lesson) {
        self.change(token, |attempt| {
            let next = match attempt.next {
                Deed::CheckAndWrite(held) | Deed::Hear(held) => Deed::Settle(held, lesson),
                other => other,
            };
            Some(Attempt { next, ..attempt })
        });
    }

    fn change(&mut self, token: Token, change: impl Fn(Attempt) -> Option<Attempt>) {
        for place in &mut self.attempts {
            if let Some(attempt) = place.filter(|attempt| attempt.token == token) {
                *place = change(attempt);
            }
        }
    }

    fn tick(&mut self) {
        if self.ledger.run.state == RunState::Running {
            self.ledger.run.left = self.ledger.run.left.saturating_sub(1);
        }
        for attempt in self.attempts.iter_mut().flatten() {
            attempt.left = attempt.left.saturating_sub(1);
        }
    }

    /// Worlds that can only go on alike become one.
    fn forget_what_tells_nothing(&mut self) {
        for attempt in self.attempts.iter_mut().flatten().filter(|attempt| !attempt.heeds_its_lease()) {
            (attempt.left, attempt.calls) = (0, 0);
        }
        self.attempts.sort_unstable();
        for (send, packet) in (0..).zip(&mut self.provider.packets) {
            let awaited = |a: &Attempt| matches!(a.next, Deed::Hear(held) if held.send == send);
            if matches!(packet, Packet::Answered(_)) && !self.attempts.iter().flatten().any(awaited) {
                *packet = Packet::Nowhere;
            }
        }
    }
}
