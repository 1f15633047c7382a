//! Answers as data: a status, headers and a body with places to fill in. `{id}`, `{number}`, `{key}`, `{at}`, `{at_rfc2822}`,
//! `{field}` (the first field of a GraphQL mutation), `{request}` and `{request/POINTER}` speak of the object that was made.
//! A string that is nothing but one place becomes the value itself; a place of which nothing is known becomes null or no text.
//! This module must never decide which answer is given.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::answer::Answer;
use crate::graphql;
use crate::record::Entry;

/// One answer. The body is sent as JSON, but a string is sent as it is and null is an empty body.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// 200 to 599.
    pub status: u16,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    #[serde(default)]
    pub body: Value,
}

impl Template {
    pub fn new(status: u16, body: Value) -> Self {
        Self { status, headers: Vec::new(), body }
    }

    /// The same answer with one more header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn answer(&self, words: &Words) -> Answer {
        let mut answer = match words.fill(&self.body) {
            Value::Null => Answer { status: self.status, headers: Vec::new(), body: String::new() },
            Value::String(text) => Answer { status: self.status, headers: Vec::new(), body: text },
            body => Answer::json(self.status, &body),
        };
        answer.headers.extend(self.headers(words));
        answer
    }

    /// A header of which nothing is known is left out.
    pub(crate) fn headers(&self, words: &Words) -> Vec<(String, String)> {
        let filled = self.headers.iter().map(|(name, value)| (name.clone(), words.fill_text(value)));
        filled.filter(|(_, value)| !value.is_empty()).collect()
    }
}

/// What there is to fill in.
#[derive(Debug, Default)]
pub(crate) struct Words<'a> {
    /// The id of the object that is spoken of.
    pub id: Option<String>,
    /// The line by which that object was made.
    pub entry: Option<&'a Entry>,
    pub key: Option<&'a str>,
    /// The body in which a GraphQL field is looked for.
    pub body: &'a str,
}

impl Words<'_> {
    pub fn fill(&self, template: &Value) -> Value {
        match template {
            Value::String(text) => match whole_place(text).and_then(|name| self.value(name)) {
                Some(value) => value,
                None => Value::String(self.fill_text(text)),
            },
            Value::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Value::Object(members) => {
                members.iter().map(|(name, member)| (self.fill_text(name), self.fill(member))).collect()
            }
            other => other.clone(),
        }
    }

    pub fn fill_text(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            match after.split_once('}').and_then(|(name, after)| Some((self.value(name)?, after))) {
                Some((value, after)) => {
                    filled.push_str(&plain(&value));
                    rest = after;
                }
                None => {
                    filled.push('{');
                    rest = after;
                }
            }
        }
        filled + rest
    }

    /// None when the place has no such name.
    fn value(&self, name: &str) -> Option<Value> {
        let at = |show: fn(&Entry) -> String| self.entry.map(show);
        Some(match name {
            "id" => self.id.clone().into(),
            "number" => self.entry.map(|entry| entry.number).into(),
            "key" => self.key.into(),
            "at" => at(|entry| entry.at.to_rfc3339()).into(),
            "at_rfc2822" => at(|entry| entry.at.to_rfc2822()).into(),
            "field" => graphql::query_of(self.body).and_then(|query| graphql::first_field(&query)).into(),
            "request" => self.entry.map_or(Value::Null, Entry::shown),
            _ => {
                let pointer = name.strip_prefix("request").filter(|pointer| pointer.starts_with('/'))?;
                self.entry.and_then(|entry| entry.fields().pointer(pointer).cloned()).unwrap_or_default()
            }
        })
    }
}

fn whole_place(text: &str) -> Option<&str> {
    text.strip_prefix('{')?.strip_suffix('}').filter(|name| !name.contains(['{', '}']))
}

/// A value as text: a string without its quotes, null as nothing.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_whole_place_keeps_its_type_and_a_place_within_text_becomes_text() {
        let words = Words { id: Some("ch_1".into()), key: Some("k"), ..Words::default() };
        let filled =
            words.fill(&json!({"a": "{id}", "b": ["id={id} key={key} {odd}"], "c": "{number}", "d": "n={number}"}));
        assert_eq!(filled, json!({"a": "ch_1", "b": ["id=ch_1 key=k {odd}"], "c": null, "d": "n="}));
        assert_eq!(words.fill_text("{ {id"), "{ {id");
    }
}
