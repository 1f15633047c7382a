//! The answers this provider gives, as plain values that can be kept and replayed byte for byte.
//! Pure: an answer must depend on nothing but the request, the convention and the number it was booked under.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::convention::{Convention, OnRepeat};
use crate::record::Entry;
use crate::request::Request;
use crate::template::Words;

/// Operations on this path are refused by the "bank": 402, never booked, and final for their key.
const DECLINED_PATH: &str = "/v1/declined";

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn json(status: u16, body: &Value) -> Self {
        let body = if matches!(status, 204 | 304) { String::new() } else { body.to_string() };
        Self { status, headers: vec![("content-type".into(), "application/json".into())], body }
    }

    /// A text that is there to be read.
    pub fn page(text: &str) -> Self {
        let kind =
            if serde_json::from_str::<Value>(text).is_ok() { "application/json" } else { "text/plain; charset=utf-8" };
        Self { status: 200, headers: vec![("content-type".into(), kind.into())], body: text.to_owned() }
    }

    /// The regular answer to an application; the same for the same booked line, so it can be rebuilt after a crash.
    pub fn applied(convention: &Convention, entry: &Entry) -> Self {
        convention.applied.answer(&words(convention, entry))
    }

    /// This answer with the headers that the convention puts on every application's answer.
    pub fn with_applied_headers(mut self, convention: &Convention, entry: &Entry) -> Self {
        self.headers.extend(convention.applied.headers(&words(convention, entry)));
        self
    }

    /// The refusal, when this request is one that the bank declines.
    pub fn declined(request: &Request) -> Option<Self> {
        (request.path == DECLINED_PATH).then(|| Self::json(402, &json!({"error": {"code": "card_declined"}})))
    }

    pub fn failure(status: u16) -> Self {
        Self::json(status, &json!({"error": {"type": "api_error"}}))
    }

    /// Another status in the place of the regular answer, which gives the body when the status is a good one.
    pub fn with_status(status: u16, regular: &Self) -> Self {
        if status < 400 && status != 204 && status != 304 {
            return Self { status, ..regular.clone() };
        }
        Self::failure(status)
    }

    /// An answer given before anything was applied.
    pub fn early(status: u16, retry_after: Option<u64>, body: Option<String>) -> Self {
        let mut answer = Self::failure(status);
        answer.headers.extend(retry_after.map(|seconds| ("retry-after".to_owned(), seconds.to_string())));
        answer.body = body.unwrap_or(answer.body);
        answer
    }

    pub fn echo(request: &Request) -> Self {
        let mut answer = Self::json(
            200,
            &json!({"headers": request.headers, "method": request.method.as_str(), "path": request.path_and_query}),
        );
        answer.headers.extend(request.headers.iter().map(|(name, value)| (format!("x-echo-{name}"), value.clone())));
        answer
    }

    pub fn not_found() -> Self {
        Self::json(404, &json!({"error": {"type": "not_found"}}))
    }

    /// The same answer with one more header.
    pub fn marked(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// How an object looks in a look-up; as in the answer to its application, unless the convention says otherwise.
pub(crate) fn item(convention: &Convention, entry: &Entry) -> Value {
    let shown = match (&convention.item, &convention.on_repeat) {
        (Some(item), _) => item,
        (None, OnRepeat::Latest(latest)) => &latest.body,
        (None, _) => &convention.applied.body,
    };
    words(convention, entry).fill(shown)
}

fn words<'a>(convention: &Convention, entry: &'a Entry) -> Words<'a> {
    Words { id: Some(convention.id(entry.number)), entry: Some(entry), key: entry.key.as_deref(), body: &entry.body }
}
