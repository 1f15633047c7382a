//! A scripted answer to a request of the activity under test.

use serde::Serialize;

use crate::bindings::deedbox::activity::http as wit;
use crate::http::{Error, Source};

/// What the next request gets.
#[derive(Debug, Clone)]
pub struct Answer(Result<wit::Response, wit::Error>);

impl Answer {
    /// An answer with this status and an empty body, sent now.
    pub fn status(status: u16) -> Self {
        Self(Ok(wit::Response {
            status,
            headers: Vec::new(),
            body: wit::Body::Bytes(Vec::new()),
            source: Source::Sent,
            effect_id: Some("00000000000000000000000000000000".to_owned()),
        }))
    }

    /// Status 200 with this JSON.
    ///
    /// # Panics
    /// When the value cannot be written as JSON.
    pub fn json<T: Serialize + ?Sized>(body: &T) -> Self {
        Self::status(200).with_json(body)
    }

    /// No answer but this error. [`Error::Status`], [`Error::BodyNotKept`] and
    /// [`Error::UnexpectedBody`] come from reading an answer: script that answer instead.
    ///
    /// # Panics
    /// For those three.
    pub fn error(error: Error) -> Self {
        Self(Err(host_error(error)))
    }

    /// # Panics
    /// When the value cannot be written as JSON.
    #[must_use]
    pub fn with_json<T: Serialize + ?Sized>(self, body: &T) -> Self {
        let text = match serde_json::to_vec(body) {
            Ok(text) => text,
            Err(error) => panic!("this answer cannot be written as JSON: {error}"),
        };
        self.with_header("content-type", "application/json").with_body(text)
    }

    #[must_use]
    pub fn with_body(self, body: impl Into<Vec<u8>>) -> Self {
        self.change(|response| response.body = wit::Body::Bytes(body.into()))
    }

    #[must_use]
    pub fn with_header(self, name: &str, value: &str) -> Self {
        self.change(|response| response.headers.push((name.to_owned(), value.as_bytes().to_vec())))
    }

    /// As from the record of an earlier send.
    #[must_use]
    pub fn replayed(self) -> Self {
        self.change(|response| response.source = Source::Replayed)
    }

    /// As from a record without its body.
    #[must_use]
    pub fn without_body(self) -> Self {
        self.change(|response| {
            response.body = wit::Body::NotKept;
            response.source = Source::Replayed;
        })
    }

    pub(super) fn into_result(self) -> Result<wit::Response, wit::Error> {
        self.0
    }

    fn change(mut self, change: impl FnOnce(&mut wit::Response)) -> Self {
        if let Ok(response) = &mut self.0 {
            change(response);
        }
        self
    }
}

fn host_error(error: Error) -> wit::Error {
    match error {
        Error::Denied(text) => wit::Error::Denied(text),
        Error::EffectMismatch(text) => wit::Error::EffectMismatch(text),
        Error::InFlight => wit::Error::InFlight,
        Error::OutcomeUnknown(text) => wit::Error::OutcomeUnknown(text),
        Error::Unreachable(text) => wit::Error::Unreachable(text),
        Error::TimedOut => wit::Error::TimedOut,
        Error::ResponseTooLarge(limit) => wit::Error::ResponseTooLarge(limit),
        Error::InvalidRequest(text) => wit::Error::InvalidRequest(text),
        Error::ConnectionLost(text) => wit::Error::ConnectionLost(text),
        Error::BodyNotKept | Error::UnexpectedBody(_) | Error::Status(_) => {
            panic!("{:?} comes from reading an answer: script that answer instead", error.code())
        }
    }
}
