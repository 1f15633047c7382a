//! How a provider's answers are to be read: which mean that nothing was processed, that the key is in use, that it was
//! used for another request, or that an earlier send was applied.

use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::parse::{HeaderText, Pointer};

/// What a provider's answers mean beyond their statuses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answers {
    /// Statuses that mean "surely not processed", besides 401, 407, 425 and 429.
    pub not_processed: Vec<u16>,
    /// The provider keeps 5xx answers under the key and repeats them.
    pub stores_5xx: bool,
    /// "This key is being worked on."
    pub in_flight: Vec<Condition>,
    /// "This key was used for another request."
    pub mismatch: Vec<Condition>,
    /// To a second send: an earlier one was applied.
    pub already_done: Vec<AlreadyDone>,
    /// Marks an answer as one that was given before.
    pub replayed: Option<HeaderRule>,
}

/// Recognises an answer: its status, and the JSON value at a pointer or a header. What is absent is not asked for.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Condition {
    pub status: Option<u16>,
    pub statuses: Vec<u16>,
    pub pointer: Option<Pointer>,
    /// A text, or the compact JSON text of the value. Absent: any value but null.
    pub equals: Option<String>,
    pub header: Option<HeaderText>,
}

/// An answer that proves an earlier send, and what is recorded then.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "AlreadyDoneFields")]
pub struct AlreadyDone {
    pub when: Condition,
    /// The status to record where nothing is fetched; 200 if absent.
    pub as_status: Option<u16>,
    /// Path and query of a read at the same origin whose answer is recorded.
    pub fetch: Option<String>,
}

/// As a file writes it, in one table.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AlreadyDoneFields {
    status: Option<u16>,
    statuses: Vec<u16>,
    pointer: Option<Pointer>,
    equals: Option<String>,
    header: Option<HeaderText>,
    as_status: Option<u16>,
    fetch: Option<String>,
}

impl From<AlreadyDoneFields> for AlreadyDone {
    fn from(fields: AlreadyDoneFields) -> Self {
        let AlreadyDoneFields { status, statuses, pointer, equals, header, as_status, fetch } = fields;
        Self { when: Condition { status, statuses, pointer, equals, header }, as_status, fetch }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderRule {
    pub header: HeaderText,
    /// Absent: any value.
    pub equals: Option<String>,
}

impl Condition {
    pub fn fits(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> bool {
        let named = self.status.is_some() || !self.statuses.is_empty();
        if named && self.status != Some(status) && !self.statuses.contains(&status) {
            return false;
        }
        if let Some(header) = &self.header {
            return header_fits(headers, header, self.equals.as_deref());
        }
        let Some(pointer) = &self.pointer else { return true };
        let Ok(json) = serde_json::from_slice::<Value>(body) else { return false };
        let fits = |value: &Value| match &self.equals {
            Some(text) => text_of(value) == *text,
            None => !value.is_null(),
        };
        values_at(&json, pointer.as_str()).into_iter().any(fits)
    }
}

impl HeaderRule {
    pub fn fits(&self, headers: &HeaderMap) -> bool {
        header_fits(headers, &self.header, self.equals.as_deref())
    }
}

fn header_fits(headers: &HeaderMap, name: &HeaderText, equals: Option<&str>) -> bool {
    let values = headers.get_all(&name.0);
    values.iter().any(|value| equals.is_none_or(|text| value.as_bytes() == text.as_bytes()))
}

/// A JSON value as texts are compared with it: a string's own text, else the compact JSON text.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The place in an array: digits without a leading zero.
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with('0');
    (plain && token.bytes().all(|c| c.is_ascii_digit())).then(|| token.parse().ok())?
}

/// The values at a JSON pointer (RFC 6901) in which `*` stands for every element or member.
pub fn values_at<'a>(json: &'a Value, pointer: &str) -> Vec<&'a Value> {
    let mut values = vec![json];
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let step = |value: &'a Value| -> Vec<&'a Value> {
            match value {
                Value::Array(items) if token == "*" => items.iter().collect(),
                Value::Object(members) if token == "*" => members.values().collect(),
                Value::Array(items) => index(&token).and_then(|at| items.get(at)).into_iter().collect(),
                Value::Object(members) => members.get(&token).into_iter().collect(),
                _ => Vec::new(),
            }
        };
        values = values.into_iter().flat_map(step).collect();
    }
    values
}
