//! Messages through the ledger: what is published, how its effect is told apart, and where the server keeps it.
//!
//! The host claims each message first and gives it an id that is the same in every attempt. So nothing here may retry
//! by itself or invent an id.

use serde::Serialize;

use crate::bindings::deedbox::activity::messaging as wit;
pub use crate::bindings::deedbox::activity::messaging::Published;
use crate::host::Host;
use crate::http::{BusinessKey, Identity, OnUnknown};

/// Where messages start.
#[derive(Clone, Copy)]
pub struct Messages<'a> {
    host: &'a dyn Host,
}

impl<'a> Messages<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Self {
        Self { host }
    }

    /// A message to the deployment's server, with an empty payload.
    pub fn publish(self, subject: impl Into<String>) -> MessageBuilder<'a> {
        let options = wit::Options {
            identity: Identity::Positional,
            on_unknown: OnUnknown::ProviderDefault,
            headers: Vec::new(),
        };
        MessageBuilder { host: self.host, subject: subject.into(), payload: Vec::new(), options, mistake: None }
    }
}

/// A message that is not published yet.
#[must_use = "nothing is published until `send` is called"]
pub struct MessageBuilder<'a> {
    host: &'a dyn Host,
    subject: String,
    payload: Vec<u8>,
    options: wit::Options,
    mistake: Option<Error>,
}

impl MessageBuilder<'_> {
    /// Adds a header. The host refuses those of the server, but for `Nats-Msg-Id` and conditions.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.options.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn payload(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.payload = bytes.into();
        self
    }

    /// The payload as JSON, with a content type unless one was given before.
    pub fn json<T: Serialize + ?Sized>(mut self, payload: &T) -> Self {
        match serde_json::to_vec(payload) {
            Ok(bytes) => {
                let is_typed = |(name, _): &(String, String)| name.eq_ignore_ascii_case("content-type");
                if !self.options.headers.iter().any(is_typed) {
                    self = self.header("Content-Type", "application/json");
                }
                self.payload(bytes)
            }
            Err(error) => {
                self.mistake = Some(Error::InvalidRequest(format!("the payload is not JSON: {error}")));
                self
            }
        }
    }

    /// Names this effect, 1 to 256 bytes, unique in this run. An unnamed one is known by its subject and its order.
    pub fn effect(mut self, name: impl Into<String>) -> Self {
        self.options.identity = Identity::Named(name.into());
        self
    }

    /// Names this effect by the business itself, for example `("order-paid", order_number)`: two runs that name the same
    /// operation and key share one message.
    pub fn business_effect(mut self, operation: impl Into<String>, key: impl Into<String>) -> Self {
        self.options.identity = Identity::Business(BusinessKey { operation: operation.into(), key: key.into() });
        self
    }

    /// What to do when nobody knows whether the message was published and the server may have forgotten its id.
    pub fn on_unknown(mut self, choice: OnUnknown) -> Self {
        self.options.on_unknown = choice;
        self
    }

    /// Publishes it and waits until the server keeps it, or answers from the ledger.
    pub fn send(self) -> Result<Published, Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        Ok(self.host.publish(&self.subject, &self.payload, &self.options)?)
    }
}

/// Why there is no acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was sent.
    #[error("the deployment does not allow this message: {0}")]
    Denied(String),
    /// Nothing was sent.
    #[error("{0}")]
    EffectMismatch(String),
    /// Nothing was sent.
    #[error("another attempt or run holds this effect right now: try again later")]
    InFlight,
    /// The message may have been published, and policy forbids sending it again.
    #[error("nobody knows whether this message was published, and policy forbids sending it again: {0}")]
    OutcomeUnknown(String),
    /// Nothing was sent.
    #[error("the server could not be reached: {0}")]
    Unreachable(String),
    /// The message may have been published.
    #[error("no acknowledgement came in time")]
    TimedOut,
    /// Nothing was sent.
    #[error("the message cannot be sent as it stands: {0}")]
    InvalidRequest(String),
    /// The server kept nothing.
    #[error("the server refused the message: {0}")]
    Refused(String),
    /// The message may have been published.
    #[error("the connection broke after the message was sent: {0}")]
    ConnectionLost(String),
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
            Self::InvalidRequest(_) => "invalid-request",
            Self::Refused(_) => "message-refused",
            Self::ConnectionLost(_) => "connection-lost",
        }
    }

    /// Whether another attempt may do better. A server refuses for a while when a stream is full.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::InFlight | Self::Unreachable(_) | Self::TimedOut | Self::Refused(_) | Self::ConnectionLost(_) => true,
            Self::Denied(_) | Self::EffectMismatch(_) | Self::OutcomeUnknown(_) | Self::InvalidRequest(_) => false,
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
            wit::Error::InvalidRequest(text) => Self::InvalidRequest(text),
            wit::Error::Refused(text) => Self::Refused(text),
            wit::Error::ConnectionLost(text) => Self::ConnectionLost(text),
        }
    }
}
