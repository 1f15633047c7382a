//! One request, received whole, in plain values. It must never hold a connection: it outlives the client that sent it.

use bytes::Bytes;
use hyper::Method;
use hyper::http::request::Parts;

use crate::record::Fingerprint;

/// A request with its body.
#[derive(Debug)]
pub(crate) struct Request {
    pub method: Method,
    pub path_and_query: String,
    pub path: String,
    pub query: String,
    /// The key as it arrived.
    pub key: Option<String>,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Request {
    pub fn new(parts: Parts, body: Bytes) -> Self {
        let headers =
            parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect();
        let key =
            parts.headers.get("idempotency-key").map(|value| text(value.as_bytes())).filter(|key| !key.is_empty());
        Self {
            path_and_query: parts.uri.path_and_query().map_or("/", |whole| whole.as_str()).to_owned(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            method: parts.method,
            key,
            headers,
            body,
        }
    }

    /// Whether it asks for a change to the world.
    pub fn is_effect(&self) -> bool {
        [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(&self.method)
    }

    pub fn body_text(&self) -> String {
        text(&self.body)
    }

    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint {
            method: self.method.to_string(),
            path: self.path_and_query.clone(),
            body_blake3: blake3::hash(&self.body).to_hex().to_string(),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
