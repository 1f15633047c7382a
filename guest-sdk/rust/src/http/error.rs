//! Everything that can go wrong with a call, with a stable code for each. The codes are the names of
//! the cases in the WIT; the last three are about reading an answer that did arrive.

use crate::bindings::deedbox::activity::http as wit;

/// Why there is no usable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was sent.
    #[error("the deployment does not allow this call: {0}")]
    Denied(String),
    /// Nothing was sent.
    #[error("{0}")]
    EffectMismatch(String),
    /// Nothing was sent.
    #[error("another attempt or run holds this effect right now: try again later")]
    InFlight,
    /// The effect may have happened, and policy forbids sending it again.
    #[error("nobody knows whether this effect happened, and policy forbids sending it again: {0}")]
    OutcomeUnknown(String),
    /// Nothing was sent.
    #[error("the provider could not be reached: {0}")]
    Unreachable(String),
    /// The effect may have happened.
    #[error("no whole answer came in time")]
    TimedOut,
    /// It was sent; the host's limit in bytes.
    #[error("the answer is larger than the host's limit of {0} bytes")]
    ResponseTooLarge(u64),
    /// Nothing was sent.
    #[error("the request cannot be sent as it stands: {0}")]
    InvalidRequest(String),
    /// The effect may have happened.
    #[error("the connection broke after the request was sent: {0}")]
    ConnectionLost(String),
    /// The answer was recorded without its body, because it was larger than the host keeps.
    #[error("the recorded answer has no body, because it was larger than the host keeps")]
    BodyNotKept,
    /// The body is not what the caller asked for.
    #[error("the answer cannot be read as asked: {0}")]
    UnexpectedBody(String),
    /// From [`error_for_status`](super::Response::error_for_status).
    #[error("the provider answered with status {0}")]
    Status(u16),
}

impl Error {
    /// A stable word for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(_) => "denied",
            Self::EffectMismatch(_) => "effect-mismatch",
            Self::InFlight => "in-flight",
            Self::OutcomeUnknown(_) => "outcome-unknown",
            Self::Unreachable(_) => "unreachable",
            Self::TimedOut => "timed-out",
            Self::ResponseTooLarge(_) => "response-too-large",
            Self::InvalidRequest(_) => "invalid-request",
            Self::ConnectionLost(_) => "connection-lost",
            Self::BodyNotKept => "body-not-kept",
            Self::UnexpectedBody(_) => "unexpected-body",
            Self::Status(_) => "http-status",
        }
    }

    /// Whether another attempt may do better.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InFlight | Self::Unreachable(_) | Self::TimedOut | Self::ConnectionLost(_) => true,
            Self::Status(status) => matches!(status, 408 | 425 | 429 | 500..=599),
            _ => false,
        }
    }
}

impl From<wit::Error> for Error {
    fn from(error: wit::Error) -> Self {
        match error {
            wit::Error::Denied(text) => Self::Denied(text),
            wit::Error::EffectMismatch(text) => Self::EffectMismatch(text),
            wit::Error::InFlight => Self::InFlight,
            wit::Error::OutcomeUnknown(text) => Self::OutcomeUnknown(text),
            wit::Error::Unreachable(text) => Self::Unreachable(text),
            wit::Error::TimedOut => Self::TimedOut,
            wit::Error::ResponseTooLarge(limit) => Self::ResponseTooLarge(limit),
            wit::Error::InvalidRequest(text) => Self::InvalidRequest(text),
            wit::Error::ConnectionLost(text) => Self::ConnectionLost(text),
        }
    }
}
