//! A read by which the host finds out whether an effect happened. It is made without the activity, maybe days
//! later, so all that it needs is said here.

use std::time::Duration;

use crate::bindings::deedbox::activity::http as wit;

/// Recognises an answer of a look-up.
#[derive(Debug, Clone)]
pub struct Condition(wit::Condition);

impl Condition {
    /// Any of these statuses.
    pub fn status(statuses: &[u16]) -> Self {
        Self(wit::Condition { statuses: statuses.to_vec(), pointer: None, equals: None })
    }

    /// And a JSON value at this pointer (RFC 6901; `*` stands for every element) that is not null.
    pub fn with(mut self, pointer: &str) -> Self {
        self.0.pointer = Some(pointer.to_owned());
        self
    }

    /// And a JSON value at this pointer that equals the text: a string, or the compact text of the value.
    pub fn equals(mut self, pointer: &str, text: &str) -> Self {
        self.0.equals = Some(text.to_owned());
        self.with(pointer)
    }
}

/// How to ask whether an effect happened.
#[derive(Debug, Clone)]
pub struct Lookup {
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    found: Condition,
    absent: Condition,
    settle: Duration,
}

impl Lookup {
    /// A GET of this URL. When neither condition is true, it cannot tell.
    pub fn get(url: impl Into<String>, found: Condition, absent: Condition) -> Self {
        Self { url: url.into(), headers: Vec::new(), found, absent, settle: Duration::ZERO }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.as_bytes().to_vec()));
        self
    }

    /// How long after the send `absent` may still be wrong.
    pub fn settle(mut self, time: Duration) -> Self {
        self.settle = time;
        self
    }
}

impl From<Lookup> for wit::Lookup {
    fn from(lookup: Lookup) -> Self {
        let Lookup { url, headers, found, absent, settle } = lookup;
        let request = wit::Request { method: "GET".to_owned(), url, headers, body: Vec::new(), timeout_ms: None };
        let settle_ms = u32::try_from(settle.as_millis()).unwrap_or(u32::MAX);
        Self { request, found: found.0, absent: absent.0, settle_ms }
    }
}
