//! One request from its arrival to its reply, as a straight line. It runs in a task of its own, so that a client that hangs up
//! stops nothing half way: it only ends holds. It must never reply before the books say what the reply says.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::behaviour::Behaviour;
use crate::convention::InFlight;
use crate::keys::Begin;
use crate::reply::Reply;
use crate::request::Request;
use crate::state::{Outcome, Received, State};

/// Handles one request; `gone` is cancelled when its client hangs up.
pub(crate) async fn run(state: Arc<State>, request: Request, gone: CancellationToken) -> io::Result<Reply> {
    let operation = Operation { state, request: Arc::new(request), gone };
    let received = operation.on_disk(State::receive).await?;
    if !operation.state.convention().is_effect(&operation.request) {
        return Ok(Reply::Whole(operation.state.look_up(&operation.request)));
    }
    match operation.early(&received.behaviour) {
        Some(reply) => Ok(reply),
        None => operation.effect(received).await,
    }
}

struct Operation {
    state: Arc<State>,
    request: Arc<Request>,
    gone: CancellationToken,
}

#[derive(PartialEq)]
enum Hold {
    Released,
    Gone,
}

impl Operation {
    async fn effect(&self, mut received: Received) -> io::Result<Reply> {
        let begin = match received.begin.take() {
            None | Some(Begin::Wait) => self.begin().await,
            Some(begin) => begin,
        };
        let fresh = matches!(begin, Begin::Fresh);
        if received.behaviour == Behaviour::HoldBeforeApply && self.hold(received.releases).await == Hold::Gone {
            if fresh {
                self.state.forget(&self.request);
            }
            return Ok(Reply::Cut);
        }
        let answer = match begin {
            Begin::Fresh => self.fresh(&received).await?,
            Begin::Settled(answer) => {
                self.linger(&received).await;
                answer
            }
            Begin::Wait => return Ok(Reply::Cut),
        };
        Ok(late(&received.behaviour, answer))
    }

    /// Asks the key until it is not in flight, where the convention waits for that; `Wait` when the client hung up meanwhile.
    async fn begin(&self) -> Begin {
        let mut settlements = self.state.watch_settlements();
        let limit = match &self.state.convention().in_flight {
            InFlight::Wait { ms, .. } => Duration::from_millis(*ms),
            InFlight::Answer(_) => Duration::ZERO,
        };
        let over = tokio::time::sleep(limit);
        tokio::pin!(over);
        loop {
            settlements.mark_unchanged();
            let begin = self.state.begin(&self.request);
            if !matches!(begin, Begin::Wait) {
                return begin;
            }
            tokio::select! {
                _ = settlements.changed() => {}
                () = &mut over => return Begin::Settled(self.state.in_flight_answer(&self.request)),
                () = self.gone.cancelled() => return begin,
            }
        }
    }

    /// Applies, lingers and keeps, in this order; returns what the client is to see.
    async fn fresh(&self, received: &Received) -> io::Result<Answer> {
        let Outcome { answer: regular, id } = match self.refusal(&received.behaviour) {
            Some(answer) => Outcome { answer, id: None },
            None => match self.on_disk(State::apply).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    self.state.forget(&self.request);
                    return Err(error);
                }
            },
        };
        let (seen, kept) = match received.behaviour {
            Behaviour::StatusAfterApply { status, keep: false } => (Answer::with_status(status, &regular), regular),
            Behaviour::StatusAfterApply { status, keep: true } => same(Answer::with_status(status, &regular)),
            Behaviour::Echo => same(Answer::echo(&self.request)),
            _ => same(regular),
        };
        self.linger(received).await;
        self.on_disk(move |state, request| state.keep(request, Outcome { answer: kept, id })).await?;
        Ok(seen)
    }

    /// The final answer of a fresh request that is not to be applied.
    fn refusal(&self, behaviour: &Behaviour) -> Option<Answer> {
        match behaviour {
            Behaviour::StoredFailure { status } => Some(Answer::failure(*status)),
            _ => Answer::declined(&self.request),
        }
    }

    /// The reply of a behaviour that never comes to applying.
    fn early(&self, behaviour: &Behaviour) -> Option<Reply> {
        match behaviour {
            Behaviour::StatusBeforeApply { status, retry_after, body } => {
                Some(Reply::Whole(Answer::early(*status, *retry_after, body.clone())))
            }
            Behaviour::CutBeforeApply => Some(Reply::Cut),
            Behaviour::InFlight => Some(Reply::Whole(self.state.in_flight_answer(&self.request))),
            _ => None,
        }
    }

    async fn linger(&self, received: &Received) {
        match received.behaviour {
            Behaviour::HoldAfterApply => {
                self.hold(received.releases).await;
            }
            Behaviour::SlowAfterApply { ms } => {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(ms)) => {}
                    () = self.gone.cancelled() => {}
                }
            }
            _ => {}
        }
    }

    async fn hold(&self, releases: u64) -> Hold {
        let mut watch = self.state.watch_releases();
        tokio::select! {
            _ = watch.wait_for(|count| *count > releases) => Hold::Released,
            () = self.gone.cancelled() => Hold::Gone,
        }
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&State, &Request) -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (state, request) = (Arc::clone(&self.state), Arc::clone(&self.request));
        tokio::task::spawn_blocking(move || work(&state, &request)).await.map_err(io::Error::other)?
    }
}

fn late(behaviour: &Behaviour, answer: Answer) -> Reply {
    match behaviour {
        Behaviour::CutAfterApply => Reply::Cut,
        Behaviour::EndlessBody => Reply::Endless,
        Behaviour::LyingLength => Reply::Short(answer),
        _ => Reply::Whole(answer),
    }
}

fn same(answer: Answer) -> (Answer, Answer) {
    (answer.clone(), answer)
}
