//! The answers this provider gives, as plain values that can be kept and replayed byte for byte.
//! Pure: an answer must depend on nothing but the request and the number it was booked under.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::record::Entry;
use crate::request::Request;

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

    /// The regular answer to an application; the same for the same booked line, so it can be rebuilt after a crash.
    pub fn applied(entry: &Entry) -> Self {
        Self::json(201, &applied_body(entry))
    }

    /// The refusal, when this request is one that the bank declines.
    pub fn declined(request: &Request) -> Option<Self> {
        (request.path == DECLINED_PATH).then(|| Self::json(402, &json!({"error": {"code": "card_declined"}})))
    }

    /// Another status in the place of the regular answer, which gives the body when the status is a good one.
    pub fn with_status(status: u16, regular: &Self) -> Self {
        if status < 400 && status != 204 && status != 304 {
            return Self { status, ..regular.clone() };
        }
        Self::json(status, &json!({"error": {"type": "api_error"}}))
    }

    /// An answer given before anything was applied.
    pub fn early(status: u16, retry_after: Option<u64>, body: Option<String>) -> Self {
        let mut answer = Self::json(status, &json!({"error": {"type": "api_error"}}));
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

    pub fn key_in_use() -> Self {
        Self::json(409, &json!({"error": {"type": "idempotency_error", "code": "idempotency_key_in_use"}}))
    }

    pub fn key_mismatch() -> Self {
        Self::json(400, &json!({"error": {"type": "idempotency_error"}}))
    }

    /// The same answer, marked as one that was given before.
    pub fn replayed(mut self) -> Self {
        self.headers.push(("idempotent-replayed".into(), "true".into()));
        self
    }
}

/// How an application looks to a client: `{"id", "number", "request"}`.
pub(crate) fn applied_body(entry: &Entry) -> Value {
    let request = entry.json().unwrap_or_else(|| Value::String(entry.body.clone()));
    json!({"id": format!("ch_{}", entry.number), "number": entry.number, "request": request})
}
