//! What an activity is handed: the run's keys, what is known about the run, and the ways out.
//!
//! Nothing in here makes up a key: they come from the host, the same in every attempt.

use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use crate::bindings::deedbox::activity::context::RunInfo;
use crate::bindings::deedbox::activity::idempotency;
use crate::checkpoint::Checkpoint;
use crate::files::Files;
use crate::host::Host;
use crate::http::Client;
use crate::messaging::Messages;
use crate::signals::Signals;

/// The run that an activity serves.
#[derive(Clone)]
pub struct Context {
    host: Rc<dyn Host>,
}

impl Context {
    /// The run key: the same in every attempt of this run, and in no other run.
    pub fn idempotency_key(&self) -> Key {
        Key(self.host.idempotency_key())
    }

    /// A key for one of several effects of this run. The same name always gives the same key,
    /// another name another key. Fails when the name is empty or longer than 256 bytes.
    pub fn subkey(&self, name: &str) -> Result<Key, KeyError> {
        match self.host.subkey(name) {
            Ok(key) => Ok(Key(key)),
            Err(idempotency::KeyError::InvalidName) => Err(KeyError::InvalidName),
        }
    }

    /// What is known about the run. The host is asked each time.
    pub fn run(&self) -> Run {
        Run(self.host.run_info())
    }

    /// True once this attempt was asked to stop. Return soon: the host stops it otherwise.
    pub fn cancelled(&self) -> bool {
        self.host.cancelled()
    }

    /// HTTP through the ledger.
    pub fn http(&self) -> Client<'_> {
        Client::new(&*self.host)
    }

    /// Messages through the ledger.
    pub fn messages(&self) -> Messages<'_> {
        Messages::new(&*self.host)
    }

    /// Files through the ledger.
    pub fn files(&self) -> Files<'_> {
        Files::new(&*self.host)
    }

    /// Messages to this run.
    pub fn signals(&self) -> Signals<'_> {
        Signals::new(&*self.host)
    }

    /// The note from one attempt to the next.
    pub fn checkpoint(&self) -> Checkpoint<'_> {
        Checkpoint::new(&*self.host)
    }

    pub(crate) fn new(host: Rc<dyn Host>) -> Self {
        Self { host }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(&self.host.run_info()).finish()
    }
}

/// A key that the host derived: a lower-case hyphenated UUID, 36 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<Key> for String {
    fn from(key: Key) -> Self {
        key.0
    }
}

/// Why a subkey was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("the name of a subkey has 1 to 256 bytes of UTF-8: choose another name")]
    InvalidName,
}

/// What is known about a run.
#[derive(Debug, Clone)]
pub struct Run(RunInfo);

impl Run {
    /// The stable id of the run, a UUID: the same in every attempt.
    pub fn run_id(&self) -> &str {
        &self.0.run_id
    }

    /// The tenant that owns the run.
    pub fn tenant(&self) -> &str {
        &self.0.tenant
    }

    /// The name under which the activity was deployed.
    pub fn activity(&self) -> &str {
        &self.0.activity
    }

    /// 1 for the first attempt. **For logging only: a key built from it differs on every attempt,
    /// and the effect would happen again.** Use [`Context::subkey`] for keys.
    pub fn attempt(&self) -> u32 {
        self.0.attempt
    }

    /// How many attempts the retry policy allows, the first included.
    pub fn max_attempts(&self) -> u32 {
        self.0.max_attempts
    }

    /// The time left before this attempt is stopped, as of the call to [`Context::run`].
    pub fn remaining(&self) -> Duration {
        Duration::from_millis(self.0.remaining_ms)
    }
}
