//! An answer, from the provider or from the record of an earlier send. A missing body is an error,
//! never an empty body.

use serde::de::DeserializeOwned;

use super::{Error, Source};
use crate::bindings::deedbox::activity::http as wit;

/// An answer with any status.
#[derive(Debug, Clone)]
pub struct Response(wit::Response);

impl Response {
    pub(crate) fn new(response: wit::Response) -> Self {
        Self(response)
    }

    pub fn status(&self) -> u16 {
        self.0.status
    }

    /// Whether the status is 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status())
    }

    /// The first header of that name, in any case, when its value is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.0.headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(&found.1).ok()
    }

    /// Every header, in the order received.
    pub fn headers(&self) -> &[(String, Vec<u8>)] {
        &self.0.headers
    }

    /// The body. Fails with [`Error::BodyNotKept`] when the record has none.
    pub fn bytes(&self) -> Result<&[u8], Error> {
        match &self.0.body {
            wit::Body::Bytes(bytes) => Ok(bytes),
            wit::Body::NotKept => Err(Error::BodyNotKept),
        }
    }

    /// The body as UTF-8.
    pub fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(self.bytes()?).map_err(|error| Error::UnexpectedBody(error.to_string()))
    }

    /// The body as JSON.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(self.bytes()?).map_err(|error| Error::UnexpectedBody(error.to_string()))
    }

    /// Whether this was sent now, or where it comes from otherwise.
    pub fn source(&self) -> Source {
        self.0.source
    }

    /// The effect behind a claimed call; none for a read.
    pub fn effect_id(&self) -> Option<&str> {
        self.0.effect_id.as_deref()
    }

    /// The answer itself unless its status is 400 or higher. As a failure, 5xx, 408, 425 and 429 are
    /// retryable and the others permanent.
    pub fn error_for_status(self) -> Result<Self, Error> {
        match self.status() {
            status @ 400.. => Err(Error::Status(status)),
            _ => Ok(self),
        }
    }
}
