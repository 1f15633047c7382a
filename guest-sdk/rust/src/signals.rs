//! Messages to this run.
//!
//! What a call here gave is recorded by the host and given again to the same call of every later attempt. It is for
//! what the outside tells the run; it carries nothing to the outside.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::bindings::deedbox::activity::signals as wit;
use crate::host::Host;

/// The signals of this run.
pub struct Signals<'a> {
    host: &'a dyn Host,
}

impl<'a> Signals<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Self {
        Self { host }
    }

    /// The oldest unread signal of that name, if one is here.
    pub fn poll(&self, name: &str) -> Result<Option<Signal>, Error> {
        let signal = self.host.poll_signal(name).map_err(Error::of)?;
        Ok(signal.map(Signal::new))
    }

    /// Waits for a signal of that name, without end. A long wait ends this attempt without spending a retry; the run starts
    /// again when the signal is here, and this call then gives it.
    pub fn wait(&self, name: &str) -> Result<Signal, Error> {
        match self.host.wait_signal(name, None).map_err(Error::of)? {
            Some(signal) => Ok(Signal::new(signal)),
            None => Err(Error::NoSignal),
        }
    }

    /// The same with an end: `None` when no signal came in time. The time is counted from the first attempt that waits
    /// here, and goes on while the run is suspended.
    pub fn wait_for(&self, name: &str, timeout: Duration) -> Result<Option<Signal>, Error> {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        let signal = self.host.wait_signal(name, Some(timeout_ms)).map_err(Error::of)?;
        Ok(signal.map(Signal::new))
    }
}

/// One message to the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    name: String,
    payload: String,
    sequence: u64,
}

impl Signal {
    fn new(signal: wit::Signal) -> Self {
        Self { name: signal.name, payload: signal.payload, sequence: signal.sequence }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its place among all signals of the run, from 1.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The payload, a JSON text.
    pub fn payload(&self) -> &str {
        &self.payload
    }

    /// The payload read as JSON. Fails when it has another shape.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        Ok(serde_json::from_str(&self.payload)?)
    }
}

/// Why a signal was not given or not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the name of a signal has 1 to 128 characters of A-Z a-z 0-9 . _ -: choose another name")]
    InvalidName,
    #[error("this attempt has polled and waited more often than the host allows: wait instead of polling in a loop")]
    TooManyCalls,
    #[error("the host gave no signal to a wait without an end")]
    NoSignal,
    #[error("the payload does not have the expected shape: {0}")]
    Format(#[from] serde_json::Error),
}

impl Error {
    fn of(error: wit::SignalError) -> Self {
        match error {
            wit::SignalError::InvalidName => Self::InvalidName,
            wit::SignalError::TooManyCalls => Self::TooManyCalls,
        }
    }

    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::InvalidName => "signal-invalid-name",
            Self::TooManyCalls => "signal-too-many-calls",
            Self::NoSignal => "signal-missing",
            Self::Format(_) => "signal-format",
        }
    }
}
