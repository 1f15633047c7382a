//! Messages and files of the activity under test: what was asked, and scripted refusals. Without a script both succeed,
//! and the same message gets the same id whenever the test runs.

use std::cell::RefCell;
use std::collections::VecDeque;

use serde_json::Value;

use crate::bindings::deedbox::activity::{files as files_wit, messaging as wit};
use crate::http::{Identity, OnUnknown, Source};
use crate::messaging::Published;
use crate::{files, messaging};

const EFFECT: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// One message, as the host would have got it.
#[derive(Debug, Clone, PartialEq)]
pub struct SentMessage {
    pub subject: String,
    pub payload: Vec<u8>,
    pub headers: Vec<(String, String)>,
    pub identity: Identity,
    pub on_unknown: OnUnknown,
}

impl SentMessage {
    /// The payload as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.payload).unwrap_or_default()
    }
}

/// One write, as the host would have got it.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenFile {
    pub path: String,
    pub bytes: Vec<u8>,
    pub identity: Identity,
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    pub messages: RefCell<Vec<SentMessage>>,
    pub files: RefCell<Vec<WrittenFile>>,
    pub message_errors: RefCell<VecDeque<messaging::Error>>,
    pub file_errors: RefCell<VecDeque<files::Error>>,
}

impl Outbox {
    pub fn publish(&self, subject: &str, payload: &[u8], options: &wit::Options) -> Result<Published, wit::Error> {
        let mut messages = self.messages.borrow_mut();
        messages.push(SentMessage {
            subject: subject.to_owned(),
            payload: payload.to_vec(),
            headers: options.headers.clone(),
            identity: options.identity.clone(),
            on_unknown: options.on_unknown,
        });
        if let Some(error) = self.message_errors.borrow_mut().pop_front() {
            return Err(message_error(error));
        }
        let sequence = u64::try_from(messages.len()).unwrap_or(u64::MAX);
        Ok(Published {
            stream: "TEST".to_owned(),
            sequence,
            duplicate: false,
            message_id: format!("00000000-0000-8000-8000-{sequence:012}"),
            source: Source::Sent,
            effect_id: EFFECT.to_owned(),
        })
    }

    pub fn write(&self, path: &str, bytes: &[u8], identity: &Identity) -> Result<files::Written, files_wit::Error> {
        let file = WrittenFile { path: path.to_owned(), bytes: bytes.to_vec(), identity: identity.clone() };
        self.files.borrow_mut().push(file);
        match self.file_errors.borrow_mut().pop_front() {
            Some(error) => Err(file_error(error)),
            None => Ok(files::Written { source: Source::Sent, effect_id: EFFECT.to_owned() }),
        }
    }
}

fn message_error(error: messaging::Error) -> wit::Error {
    use messaging::Error;
    match error {
        Error::Denied(text) => wit::Error::Denied(text),
        Error::EffectMismatch(text) => wit::Error::EffectMismatch(text),
        Error::InFlight => wit::Error::InFlight,
        Error::OutcomeUnknown(text) => wit::Error::OutcomeUnknown(text),
        Error::Unreachable(text) => wit::Error::Unreachable(text),
        Error::TimedOut => wit::Error::TimedOut,
        Error::InvalidRequest(text) => wit::Error::InvalidRequest(text),
        Error::Refused(text) => wit::Error::Refused(text),
        Error::ConnectionLost(text) => wit::Error::ConnectionLost(text),
    }
}

fn file_error(error: files::Error) -> files_wit::Error {
    use files::Error;
    match error {
        Error::Denied(text) => files_wit::Error::Denied(text),
        Error::EffectMismatch(text) => files_wit::Error::EffectMismatch(text),
        Error::InFlight => files_wit::Error::InFlight,
        Error::InvalidRequest(text) => files_wit::Error::InvalidRequest(text),
        Error::Failed(text) => files_wit::Error::Failed(text),
    }
}
