//! How an activity says that this attempt did not succeed, and whether another one may.
//!
//! A business rejection is no failure: return it as a value. A failure must never carry a secret,
//! for it is recorded and shown.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use crate::bindings::exports::deedbox::activity::activities as wit;
pub use crate::bindings::exports::deedbox::activity::activities::FailureKind;
use crate::{KeyError, checkpoint, files, http, messaging, signals};

/// The end of an attempt without a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    code: String,
    message: String,
    kind: FailureKind,
    retry_after: Option<Duration>,
    details: Option<String>,
}

impl Failure {
    /// Another attempt may succeed; the retry policy decides whether there is one.
    /// `code` is a stable word for programs, `message` a sentence for people.
    pub fn retryable(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Retryable, code.into(), message.into())
    }

    /// No further attempt is made.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(FailureKind::Permanent, code.into(), message.into())
    }

    /// The earliest time for the next attempt, counted from now. The host caps it.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// Adds something for programs to read. Details that cannot be written as JSON are replaced by
    /// the reason.
    #[must_use]
    pub fn details<T: Serialize + ?Sized>(mut self, details: &T) -> Self {
        let text = serde_json::to_string(details)
            .unwrap_or_else(|error| serde_json::json!({ "unwritable": error.to_string() }).to_string());
        self.details = Some(text);
        self
    }

    pub fn code(&self) -> &str {
        &self.code
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn kind(&self) -> FailureKind {
        self.kind
    }

    pub fn is_retryable(&self) -> bool {
        self.kind == FailureKind::Retryable
    }

    pub fn delay(&self) -> Option<Duration> {
        self.retry_after
    }

    /// The details as JSON text.
    pub fn details_json(&self) -> Option<&str> {
        self.details.as_deref()
    }

    fn of_call(retryable: bool, code: &str, message: String) -> Self {
        let kind = if retryable { FailureKind::Retryable } else { FailureKind::Permanent };
        Self::new(kind, code.to_owned(), message)
    }

    fn new(kind: FailureKind, code: String, message: String) -> Self {
        Self { code, message, kind, retry_after: None, details: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failure> for wit::Failure {
    fn from(failure: Failure) -> Self {
        let millis = |delay: Duration| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
        Self {
            code: failure.code,
            message: failure.message,
            kind: failure.kind,
            retry_after_ms: failure.retry_after.map(millis),
            details: failure.details,
        }
    }
}

impl From<http::Error> for Failure {
    fn from(error: http::Error) -> Self {
        let failure = Self::of_call(error.is_retryable(), error.code(), error.to_string());
        match error {
            http::Error::Status(status) => failure.details(&serde_json::json!({ "status": status })),
            _ => failure,
        }
    }
}

impl From<messaging::Error> for Failure {
    fn from(error: messaging::Error) -> Self {
        Self::of_call(error.is_retryable(), error.code(), error.to_string())
    }
}

impl From<files::Error> for Failure {
    fn from(error: files::Error) -> Self {
        Self::of_call(error.is_retryable(), error.code(), error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::permanent("invalid-json", error.to_string())
    }
}

impl From<KeyError> for Failure {
    fn from(error: KeyError) -> Self {
        Self::permanent("invalid-name", error.to_string())
    }
}

impl From<signals::Error> for Failure {
    fn from(error: signals::Error) -> Self {
        Self::permanent(error.code(), error.to_string())
    }
}

impl From<checkpoint::Error> for Failure {
    fn from(error: checkpoint::Error) -> Self {
        Self::permanent(error.code(), error.to_string())
    }
}
