//! Building and sending one request. A mistake made while building is kept and returned by `send`, so
//! that nothing is sent with half of what the author meant.

use std::time::Duration;

use serde::Serialize;

use super::{BusinessKey, Error, Identity, Lookup, OnUnknown, Response, form};
use crate::bindings::deedbox::activity::http::{Options, Request};
use crate::host::Host;

/// Where requests start.
#[derive(Clone, Copy)]
pub struct Client<'a> {
    host: &'a dyn Host,
}

impl<'a> Client<'a> {
    pub(crate) fn new(host: &'a dyn Host) -> Self {
        Self { host }
    }

    pub fn get(self, url: impl Into<String>) -> RequestBuilder<'a> {
        self.request("GET", url)
    }

    pub fn post(self, url: impl Into<String>) -> RequestBuilder<'a> {
        self.request("POST", url)
    }

    pub fn put(self, url: impl Into<String>) -> RequestBuilder<'a> {
        self.request("PUT", url)
    }

    pub fn patch(self, url: impl Into<String>) -> RequestBuilder<'a> {
        self.request("PATCH", url)
    }

    pub fn delete(self, url: impl Into<String>) -> RequestBuilder<'a> {
        self.request("DELETE", url)
    }

    /// A request with any method, in upper case. GET, HEAD and OPTIONS are reads; every other method
    /// is an effect.
    pub fn request(self, method: impl Into<String>, url: impl Into<String>) -> RequestBuilder<'a> {
        RequestBuilder {
            host: self.host,
            request: Request {
                method: method.into(),
                url: url.into(),
                headers: Vec::new(),
                body: Vec::new(),
                timeout_ms: None,
            },
            options: Options { identity: Identity::Positional, on_unknown: OnUnknown::ProviderDefault, lookup: None },
            mistake: None,
        }
    }
}

/// A request that is not sent yet.
#[must_use = "nothing is sent until `send` is called"]
pub struct RequestBuilder<'a> {
    host: &'a dyn Host,
    request: Request,
    options: Options,
    mistake: Option<Error>,
}

impl RequestBuilder<'_> {
    /// Adds a header. The host refuses `host`, hop-by-hop and framing headers.
    pub fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.request.headers.push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// The body as JSON, with its content type unless one was given before.
    pub fn json<T: Serialize + ?Sized>(mut self, body: &T) -> Self {
        match serde_json::to_vec(body) {
            Ok(bytes) => self.typed_body(bytes, "application/json"),
            Err(error) => {
                self.mistake = Some(Error::InvalidRequest(format!("the body is not JSON: {error}")));
                self
            }
        }
    }

    /// The body as an HTML form, with its content type unless one was given before.
    pub fn form<K: AsRef<str>, V: AsRef<str>>(self, pairs: &[(K, V)]) -> Self {
        self.typed_body(form::encode(pairs).into_bytes(), "application/x-www-form-urlencoded")
    }

    pub fn body(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.request.body = bytes.into();
        self
    }

    /// How long to wait for the whole answer, rounded up to milliseconds. The host caps it by the
    /// time left for the attempt.
    pub fn timeout(mut self, limit: Duration) -> Self {
        let millis = limit.as_nanos().div_ceil(1_000_000);
        self.request.timeout_ms = Some(u32::try_from(millis).unwrap_or(u32::MAX));
        self
    }

    /// Names this effect, 1 to 256 bytes, unique in this run. A named effect may move within the
    /// code between attempts; an unnamed one is known by its place.
    pub fn effect(mut self, name: impl Into<String>) -> Self {
        self.options.identity = Identity::Named(name.into());
        self
    }

    /// Names this effect by the business itself, for example `("charge", order_number)`: two runs
    /// that name the same operation and key share one effect.
    pub fn business_effect(mut self, operation: impl Into<String>, key: impl Into<String>) -> Self {
        let business = BusinessKey { operation: operation.into(), key: key.into() };
        self.options.identity = Identity::Business(business);
        self
    }

    /// What to do when nobody knows whether the effect happened and sending again is not safe.
    pub fn on_unknown(mut self, choice: OnUnknown) -> Self {
        self.options.on_unknown = choice;
        self
    }

    /// How the host asks the provider whether this effect happened, when nobody knows.
    pub fn lookup(mut self, lookup: Lookup) -> Self {
        self.options.lookup = Some(lookup.into());
        self
    }

    /// Sends it, or answers it from the ledger. Every status is an answer.
    pub fn send(self) -> Result<Response, Error> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let answer = self.host.send(&self.request, &self.options)?;
        Ok(Response::new(answer))
    }

    fn typed_body(mut self, bytes: Vec<u8>, content_type: &str) -> Self {
        let is_typed = |(name, _): &(String, _)| name.eq_ignore_ascii_case("content-type");
        if !self.request.headers.iter().any(is_typed) {
            self = self.header("content-type", content_type);
        }
        self.body(bytes)
    }
}
