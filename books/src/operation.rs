//! One request from its arrival to its reply, as a straight line. It runs in a task of its own, so that a client that hangs up
//! stops nothing half way: it only ends holds. It must never reply before the books say what the reply says.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::behaviour::Behaviour;
use crate::lookup;
use crate::reply::Reply;
use crate::request::Request;
use crate::state::{Begin, Received, State};

/// Handles one request; `gone` is cancelled when its client hangs up.
pub(crate) async fn run(state: Arc<State>, request: Request, gone: CancellationToken) -> io::Result<Reply> {
    let operation = Operation { state, request: Arc::new(request), gone };
    let received = operation.on_disk(State::receive).await?;
    if !operation.request.is_effect() {
        let (request, state) = (operation.request, operation.state);
        return Ok(Reply::Whole(lookup::answer(&request, &state.applied())));
    }
    match early(&received.behaviour) {
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
    async fn effect(&self, received: Received) -> io::Result<Reply> {
        let begin = self.state.begin(&self.request);
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
        };
        Ok(late(&received.behaviour, answer))
    }

    /// Applies, lingers and keeps, in this order; returns what the client is to see.
    async fn fresh(&self, received: &Received) -> io::Result<Answer> {
        let regular = match Answer::declined(&self.request) {
            Some(refusal) => refusal,
            None => match self.on_disk(State::apply).await {
                Ok(entry) => Answer::applied(&entry),
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
        self.on_disk(move |state, request| state.keep(request, kept)).await?;
        Ok(seen)
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

/// The reply of a behaviour that never comes to applying.
fn early(behaviour: &Behaviour) -> Option<Reply> {
    match behaviour {
        Behaviour::StatusBeforeApply { status, retry_after, body } => {
            Some(Reply::Whole(Answer::early(*status, *retry_after, body.clone())))
        }
        Behaviour::CutBeforeApply => Some(Reply::Cut),
        Behaviour::InFlight => Some(Reply::Whole(Answer::key_in_use())),
        _ => None,
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
