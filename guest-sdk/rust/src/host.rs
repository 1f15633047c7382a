//! The calls that an activity can make, as one trait, so that a test can answer them.
//!
//! It is exactly the imports of the WIT world. It must never grow a call that the host lacks.

use crate::bindings::deedbox::activity::checkpoint::CheckpointError;
use crate::bindings::deedbox::activity::context::RunInfo;
use crate::bindings::deedbox::activity::http::{Error, Identity, Options, Request, Response};
use crate::bindings::deedbox::activity::idempotency::KeyError;
use crate::bindings::deedbox::activity::signals::{Signal, SignalError};
use crate::bindings::deedbox::activity::{files, messaging};

pub trait Host {
    fn idempotency_key(&self) -> String;
    fn subkey(&self, name: &str) -> Result<String, KeyError>;
    fn run_info(&self) -> RunInfo;
    fn cancelled(&self) -> bool;
    fn send(&self, request: &Request, options: &Options) -> Result<Response, Error>;
    fn publish(
        &self,
        subject: &str,
        payload: &[u8],
        options: &messaging::Options,
    ) -> Result<messaging::Published, messaging::Error>;
    fn write(&self, path: &str, bytes: &[u8], identity: &Identity) -> Result<files::Written, files::Error>;
    fn append(&self, path: &str, bytes: &[u8]) -> Result<(), files::Error>;
    fn poll_signal(&self, name: &str) -> Result<Option<Signal>, SignalError>;
    fn wait_signal(&self, name: &str, timeout_ms: Option<u64>) -> Result<Option<Signal>, SignalError>;
    fn save(&self, state: &[u8]) -> Result<(), CheckpointError>;
    fn load(&self) -> Option<Vec<u8>>;
}
