//! Files through the ledger: whole files, in directories that the operator has granted.
//!
//! The host claims each write first, and puts the file in place at once. Nothing here reads, appends or deletes.

use crate::bindings::deedbox::activity::files as wit;
pub use crate::bindings::deedbox::activity::files::Written;
use crate::host::Host;
use crate::http::{BusinessKey, Identity};

/// Where writes start.
#[derive(Clone, Copy)]
pub struct Files<'a> {
    host: &'a dyn Host,
}

impl<'a> Files<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Self {
        Self { host }
    }

    /// A whole file. The first segment of the path names the granted directory: `exports/2026/orders.csv`.
    pub fn write(self, path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> WriteBuilder<'a> {
        WriteBuilder { host: self.host, path: path.into(), bytes: bytes.into(), identity: Identity::Positional }
    }

    /// Always refused, with the reason: an append that is made twice writes twice. Write a file of its own for each run,
    /// for example one named by [`idempotency_key`](crate::Context::idempotency_key).
    pub fn append(self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.host.append(path, bytes)?)
    }
}

/// A write that is not made yet.
#[must_use = "nothing is written until `send` is called"]
pub struct WriteBuilder<'a> {
    host: &'a dyn Host,
    path: String,
    bytes: Vec<u8>,
    identity: Identity,
}

impl WriteBuilder<'_> {
    /// Names this effect, 1 to 256 bytes, unique in this run. An unnamed one is known by its path and its order.
    pub fn effect(mut self, name: impl Into<String>) -> Self {
        self.identity = Identity::Named(name.into());
        self
    }

    /// Names this effect by the business itself, for example `("export", day)`: two runs that name the same operation and
    /// key share one write.
    pub fn business_effect(mut self, operation: impl Into<String>, key: impl Into<String>) -> Self {
        self.identity = Identity::Business(BusinessKey { operation: operation.into(), key: key.into() });
        self
    }

    /// Writes it, or answers from the ledger. Readers see the old file or the new one, never a part.
    pub fn send(self) -> Result<Written, Error> {
        Ok(self.host.write(&self.path, &self.bytes, &self.identity)?)
    }
}

/// Why a file was not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("this write is not allowed: {0}")]
    Denied(String),
    #[error("{0}")]
    EffectMismatch(String),
    #[error("another attempt or run holds this effect right now: try again later")]
    InFlight,
    #[error("the file cannot be written as it stands: {0}")]
    InvalidRequest(String),
    #[error("the file was not written: {0}")]
    Failed(String),
}

impl Error {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied",
            Self::EffectMismatch(_) => "effect-mismatch",
            Self::InFlight => "in-flight",
            Self::InvalidRequest(_) => "invalid-request",
            Self::Failed(_) => "write-failed",
        }
    }

    /// Whether another attempt may do better.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InFlight | Self::Failed(_) => true,
            Self::Denied(_) | Self::EffectMismatch(_) | Self::InvalidRequest(_) => false,
        }
    }
}

impl From<wit::Error> for Error {
    fn from(error: wit::Error) -> Self {
        match error {
            wit::Error::Denied(text) => Self::Denied(text),
            wit::Error::EffectMismatch(text) => Self::EffectMismatch(text),
            wit::Error::InFlight => Self::InFlight,
            wit::Error::InvalidRequest(text) => Self::InvalidRequest(text),
            wit::Error::Failed(text) => Self::Failed(text),
        }
    }
}
