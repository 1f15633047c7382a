//! One request, received whole, in plain values. It must never hold a connection: it outlives the client that sent it.

use bytes::Bytes;
use hyper::Method;
use hyper::http::request::Parts;

use crate::convention::Convention;
use crate::graphql;
use crate::record::Fingerprint;

/// A request with its body.
#[derive(Debug)]
pub(crate) struct Request {
    pub method: Method,
    pub path_and_query: String,
    pub path: String,
    pub query: String,
    /// The key as it arrived, where the convention looks for it.
    pub key: Option<String>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl Request {
    pub fn new(parts: Parts, body: Bytes, convention: &Convention) -> Self {
        let headers =
            parts.headers.iter().map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes()))).collect();
        let mut request = Self {
            path_and_query: parts.uri.path_and_query().map_or("/", |whole| whole.as_str()).to_owned(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().unwrap_or_default().to_owned(),
            method: parts.method,
            key: None,
            headers,
            body,
        };
        let is_one = |key: &String| !key.is_empty() || convention.grammar.min_length > 0;
        request.key = convention.carrier.key(&request).filter(is_one);
        request
    }

    /// The first value of a header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Whether the body is a GraphQL document that only reads.
    pub fn is_graphql_read(&self) -> bool {
        graphql::query_of(&self.body_text()).is_some_and(|query| !graphql::is_mutation(&query))
    }

    pub fn body_text(&self) -> String {
        text(&self.body)
    }

    pub fn fingerprint(&self, convention: &Convention) -> Fingerprint {
        Fingerprint {
            method: self.method.to_string(),
            path: self.path_and_query.clone(),
            body_blake3: blake3::hash(&self.body).to_hex().to_string(),
            companions: Fingerprint::companions(convention, &self.headers),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
