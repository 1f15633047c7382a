//! One object with all its generations, and the conditions under which it may be written.
//! A generation must never come back once it was given, also not after a delete.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::carrier::first_value;

/// What is known of a name, oldest generation first.
#[derive(Debug, Default)]
pub(crate) struct Object(Vec<Generation>);

#[derive(Debug)]
struct Generation {
    number: u64,
    /// None: deleted.
    content: Option<Content>,
    at: DateTime<Utc>,
}

#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub kind: Option<String>,
    /// The writer's own headers, which are given back with the object: `x-amz-meta-*` and `x-goog-meta-*`.
    pub meta: Vec<(String, String)>,
    pub body: String,
}

/// The conditions of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conditions {
    if_none_match: bool,
    if_match: Option<String>,
    if_generation: Option<String>,
}

impl Conditions {
    pub fn of<'a>(header: impl Fn(&str) -> Option<&'a str>, query: &str) -> Self {
        Self {
            if_none_match: header("if-none-match") == Some("*"),
            if_match: header("if-match").map(str::to_owned),
            if_generation: first_value(query.as_bytes(), "ifGenerationMatch")
                .or_else(|| header("x-goog-if-generation-match").map(str::to_owned)),
        }
    }

    pub fn are_none(&self) -> bool {
        !self.if_none_match && self.if_match.is_none() && self.if_generation.is_none()
    }

    /// Whether the object as it is now may be written.
    pub fn hold(&self, object: Option<&Object>) -> bool {
        let latest = object.and_then(Object::latest);
        let number = latest.map_or(0, |(number, _)| number).to_string();
        let wanted_tag = self.if_match.as_deref();
        !(self.if_none_match && latest.is_some())
            && wanted_tag.is_none_or(|wanted| latest.is_some_and(|(_, is)| wanted == "*" || wanted == tag(is)))
            && self.if_generation.as_ref().is_none_or(|wanted| *wanted == number)
    }
}

impl Object {
    /// The latest generation; none when there is no object, or no more.
    pub fn latest(&self) -> Option<(u64, &Content)> {
        self.0.last().and_then(|generation| Some((generation.number, generation.content.as_ref()?)))
    }

    pub fn write(&mut self, number: u64, content: Option<Content>, at: DateTime<Utc>) {
        self.0.push(Generation { number, content, at });
    }

    pub fn append(&mut self, number: u64, more: &str, at: DateTime<Utc>) {
        let mut content =
            self.latest().map_or(Content { kind: None, meta: Vec::new(), body: String::new() }, |(_, is)| is.clone());
        content.body.push_str(more);
        self.write(number, Some(content), at);
    }

    /// The answer to a GET: the generation that is asked for, or the latest, of those that have settled by `now`.
    pub fn read(&self, query: &str, lag: TimeDelta, now: DateTime<Utc>) -> Answer {
        let wanted = first_value(query.as_bytes(), "generation");
        let is_it = |number: u64| wanted.as_ref().is_none_or(|wanted| *wanted == number.to_string());
        let mut settled = self.0.iter().rev().filter(|one| now.signed_duration_since(one.at) >= lag);
        match settled.find(|one| is_it(one.number)) {
            Some(Generation { number, content: Some(content), .. }) => {
                let kind = content.kind.clone().unwrap_or_else(|| "application/octet-stream".into());
                let mut headers = vec![("content-type".into(), kind)];
                headers.extend(content.meta.iter().cloned());
                Answer { status: 200, headers, body: content.body.clone() }.with_version(*number, content)
            }
            _ => Answer::not_found(),
        }
    }

    /// The answer to a write: `{"name", "generation", "etag"}`.
    pub fn written(&self, name: &str) -> Answer {
        match self.latest() {
            Some((number, content)) => {
                let body = json!({"name": name, "generation": number.to_string(), "etag": tag(content)});
                Answer::json(200, &body).with_version(number, content)
            }
            None => Answer::json(204, &Value::Null),
        }
    }

    /// `{"body", "generation", "writes"}`, or none when it was deleted.
    pub fn shown(&self) -> Option<Value> {
        let (number, content) = self.latest()?;
        Some(json!({"body": content.body, "generation": number, "writes": self.0.len()}))
    }
}

impl Answer {
    fn with_version(self, number: u64, content: &Content) -> Self {
        self.marked("etag", &tag(content)).marked("x-goog-generation", &number.to_string())
    }
}

/// Equal bodies have equal tags.
fn tag(content: &Content) -> String {
    let hash = blake3::hash(content.body.as_bytes()).to_hex();
    format!("\"{}\"", &hash[..32])
}
