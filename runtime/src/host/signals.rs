//! `deedbox:activity/signals`.

use std::time::Duration;

use tokio::time::Instant;

use super::bindings::deedbox::activity::signals::{Host, Signal, SignalError};
use super::guest::Guest;
use crate::gateway::{self, SignalRefused};

impl Host for Guest {
    async fn poll(&mut self, name: String) -> wasmtime::Result<Result<Option<Signal>, SignalError>> {
        let answer = self.attempt("poll")?.poll_signal(&name).await?;
        Ok(answer.map(|signal| signal.map(shown)).map_err(refused))
    }

    async fn wait(
        &mut self,
        name: String,
        timeout_ms: Option<u64>,
    ) -> wasmtime::Result<Result<Option<Signal>, SignalError>> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let timeout = timeout_ms.map(Duration::from_millis);
        let answer = self.attempt("wait")?.wait_signal(&name, timeout, left).await?;
        Ok(answer.map(|signal| signal.map(shown)).map_err(refused))
    }
}

fn shown(signal: gateway::Signal) -> Signal {
    let gateway::Signal { name, payload, sequence } = signal;
    Signal { name, payload, sequence }
}

fn refused(why: SignalRefused) -> SignalError {
    match why {
        SignalRefused::InvalidName => SignalError::InvalidName,
        SignalRefused::TooManyCalls => SignalError::TooManyCalls,
    }
}
