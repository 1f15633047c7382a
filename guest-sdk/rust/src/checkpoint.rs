//! A small note from one attempt to the next attempt of the same run.
//!
//! It is for progress, not for effects: the ledger alone remembers what was sent.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::deedbox::activity::checkpoint::CheckpointError;
use crate::host::Host;

/// The saved state of this run. It holds one value: saving replaces it.
pub struct Checkpoint<'a> {
    host: &'a dyn Host,
}

impl<'a> Checkpoint<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Self {
        Self { host }
    }

    /// Replaces the saved state by `state` as JSON. Durable once it returns.
    pub fn save<T: Serialize + ?Sized>(&self, state: &T) -> Result<(), Error> {
        self.save_bytes(&serde_json::to_vec(state)?)
    }

    /// The state saved last, by this or an earlier attempt. Fails when it has another shape.
    pub fn load<T: DeserializeOwned>(&self) -> Result<Option<T>, Error> {
        let state = self.load_bytes();
        Ok(state.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
    }

    /// Replaces the saved state by these bytes.
    pub fn save_bytes(&self, state: &[u8]) -> Result<(), Error> {
        self.host.save(state).map_err(|CheckpointError::TooLarge| Error::TooLarge)
    }

    /// The bytes saved last.
    pub fn load_bytes(&self) -> Option<Vec<u8>> {
        self.host.load()
    }
}

/// Why a state was not saved or not read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the state is larger than the host allows (64 KiB unless the operator set another limit): save less")]
    TooLarge,
    #[error("the state does not have the expected shape: {0}")]
    Format(#[from] serde_json::Error),
}

impl Error {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => "checkpoint-too-large",
            Self::Format(_) => "checkpoint-format",
        }
    }
}
