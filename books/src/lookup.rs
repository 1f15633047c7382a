//! What a GET sees: the applications that were booked on the same path, so that a client can find out whether something happened.
//! Each `name=value` of the query keeps the applications whose JSON body has that member with that value; `idempotency_key`
//! compares the key. Reading must never change the books.

use serde_json::{Value, json};

use crate::answer::{Answer, applied_body};
use crate::record::Entry;
use crate::request::Request;

/// 200 with `{"object": "list", "data": [..]}`.
pub(crate) fn answer(request: &Request, applied: &[Entry]) -> Answer {
    let wanted: Vec<(String, String)> = url::form_urlencoded::parse(request.query.as_bytes()).into_owned().collect();
    let data: Vec<Value> = applied
        .iter()
        .filter(|entry| path_of(entry) == request.path && wanted.iter().all(|(name, value)| has(entry, name, value)))
        .map(applied_body)
        .collect();
    Answer::json(200, &json!({"object": "list", "data": data}))
}

fn path_of(entry: &Entry) -> &str {
    entry.path.split('?').next().unwrap_or_default()
}

fn has(entry: &Entry, name: &str, value: &str) -> bool {
    if name == "idempotency_key" {
        return entry.key.as_deref() == Some(value);
    }
    entry.json().as_ref().and_then(|body| body.get(name)).is_some_and(|member| plain(member) == value)
}

fn plain(member: &Value) -> String {
    match member {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
