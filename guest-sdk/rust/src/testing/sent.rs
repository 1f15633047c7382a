//! A request that the activity under test made, for assertions.

use std::time::Duration;

use serde_json::Value;

use crate::bindings::deedbox::activity::http::{Options, Request};
use crate::http::{Identity, OnUnknown};

/// One request, as the host would have got it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    pub timeout: Option<Duration>,
    pub identity: Identity,
    pub on_unknown: OnUnknown,
}

impl Sent {
    pub(super) fn new(request: &Request, options: &Options) -> Self {
        Self {
            method: request.method.clone(),
            url: request.url.clone(),
            headers: request.headers.clone(),
            body: request.body.clone(),
            timeout: request.timeout_ms.map(|ms| Duration::from_millis(ms.into())),
            identity: options.identity.clone(),
            on_unknown: options.on_unknown,
        }
    }

    /// The first header of that name, in any case, when its value is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(&found.1).ok()
    }

    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}
