//! Operations: which requests a rule of a profile is about, and the key that they take.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde::Deserialize;
use serde_json::Value;

use super::Asked;
use super::answers::{Answers, text_of, values_at};
use super::carrier::{Carrier, GraphqlKind, graphql_kind};
use super::lookup::LookupRecipe;
use super::parse::{HeaderText, Pointer, RenderingRule};
use super::pattern::{PathPattern, text_fits};
use super::template::{self, Values};
use crate::key::{EffectId, Key};
use crate::policy::Span;

/// A kind of request of one provider. What is absent is not asked for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    pub name: Option<String>,
    /// Absent: every method but GET, HEAD and OPTIONS.
    #[serde(default)]
    pub methods: Vec<MethodText>,
    #[serde(default)]
    pub paths: Vec<PathPattern>,
    #[serde(default)]
    pub headers: BTreeMap<HeaderText, String>,
    /// JSON pointers into the body, and the texts there.
    #[serde(default)]
    pub json: BTreeMap<Pointer, String>,
    /// Fields of a form-encoded body, and the texts there.
    #[serde(default)]
    pub form: BTreeMap<String, String>,
    pub graphql: Option<GraphqlKind>,
    /// With one of these set by the guest, the request is another operation.
    #[serde(default)]
    pub unless_headers: Vec<HeaderText>,
    #[serde(default)]
    pub unless_query: Vec<String>,
    /// Overrides what the method says: a POST that only reads, a GET that is an effect.
    pub effect: Option<bool>,
    pub pin: Option<Pin>,
    pub key: Option<KeyRule>,
    pub lookup: Option<LookupRecipe>,
    /// In the place of the profile's.
    pub answers: Option<Answers>,
}

/// A read whose first answer says which version of a thing later reads of the same name ask for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The query parameter that asks for a version.
    pub query: String,
    /// The answer's header that names the version.
    pub header: HeaderText,
}

/// How the provider takes an idempotency key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRule {
    pub carrier: Carrier,
    #[serde(default)]
    pub rendering: RenderingRule,
    /// What is put there, with the key at `{key}`. Without `{key}` it is a precondition.
    #[serde(default = "bare_key")]
    pub template: String,
    /// What becomes of a value that the guest has put there itself and that is no key of its run.
    #[serde(default)]
    pub own: OwnValue,
    /// How long the provider remembers a key; absent: for ever.
    pub retention: Option<Span>,
    #[serde(default)]
    pub counted_from: CountedFrom,
    /// False: the key is sent, but nothing relies on it.
    #[serde(default = "yes")]
    pub honoured: bool,
    /// More headers that go with the key.
    #[serde(default)]
    pub also: BTreeMap<HeaderText, String>,
}

fn yes() -> bool {
    true
}

fn bare_key() -> String {
    "{key}".to_owned()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OwnValue {
    #[default]
    Replace,
    Keep,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountedFrom {
    #[default]
    First,
    Last,
}

impl CountedFrom {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Last => "last",
        }
    }
}

/// An HTTP method.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct MethodText(pub Method);

impl TryFrom<String> for MethodText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let method = Method::from_bytes(text.as_bytes()).ok().filter(|_| text == text.to_uppercase());
        method.map(Self).ok_or_else(|| format!("`{text}` is not an upper-case HTTP method"))
    }
}

impl Operation {
    /// What the path captures, when the request is this operation.
    pub fn matched(&self, asked: Asked<'_>) -> Option<BTreeMap<String, String>> {
        let captures = self.path_captures(asked.url.path())?;
        let fits = self.method_fits(asked.method) && self.headers_fit(asked) && self.body_fits(asked.body);
        (fits && !self.excepted(asked)).then_some(captures)
    }

    /// Only the body could tell whether the request is this operation.
    pub fn hangs_on_body(&self, asked: Asked<'_>) -> bool {
        let asks_body = self.graphql.is_some() || !self.json.is_empty() || !self.form.is_empty();
        let rest_fits = self.path_captures(asked.url.path()).is_some()
            && self.method_fits(asked.method)
            && self.headers_fit(asked)
            && !self.excepted(asked);
        asks_body && rest_fits
    }

    fn path_captures(&self, path: &str) -> Option<BTreeMap<String, String>> {
        if self.paths.is_empty() {
            return Some(BTreeMap::new());
        }
        self.paths.iter().find_map(|pattern| pattern.matched(path))
    }

    fn method_fits(&self, method: &Method) -> bool {
        let is_read = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
        if self.methods.is_empty() { !is_read } else { self.methods.iter().any(|own| own.0 == *method) }
    }

    fn headers_fit(&self, asked: Asked<'_>) -> bool {
        let fits = |(name, pattern): (&HeaderText, &String)| {
            let value = asked.headers.get(&name.0).and_then(|value| value.to_str().ok());
            value.is_some_and(|value| text_fits(pattern, value))
        };
        self.headers.iter().all(fits)
    }

    fn body_fits(&self, body: &[u8]) -> bool {
        if self.graphql.is_some_and(|kind| graphql_kind(body) != Some(kind)) {
            return false;
        }
        let form_fits = |(name, pattern): (&String, &String)| {
            url::form_urlencoded::parse(body).any(|(own, value)| own == *name && text_fits(pattern, &value))
        };
        if !self.form.iter().all(form_fits) {
            return false;
        }
        if self.json.is_empty() {
            return true;
        }
        let Ok(json) = serde_json::from_slice::<Value>(body) else { return false };
        let fits = |(pointer, pattern): (&Pointer, &String)| {
            values_at(&json, pointer.as_str()).into_iter().any(|value| text_fits(pattern, &text_of(value)))
        };
        self.json.iter().all(fits)
    }

    fn excepted(&self, asked: Asked<'_>) -> bool {
        let by_header = self.unless_headers.iter().any(|name| asked.headers.contains_key(&name.0));
        let by_query = asked.url.query_pairs().any(|(name, _)| self.unless_query.iter().any(|own| *own == name));
        by_header || by_query
    }
}

impl KeyRule {
    /// How long the provider remembers a key.
    pub fn window(&self) -> Option<Duration> {
        self.retention.map(|span| span.0)
    }

    /// What goes on the wire for a key.
    pub fn value(&self, key: &Key, captures: &BTreeMap<String, String>) -> Result<String, String> {
        let text = key.render(self.rendering.0);
        template::fill(&self.template, &Values { key: Some(&text), captures: Some(captures), ..Values::default() })
    }

    /// The headers that go with the key, with all filled in but the time of the first send.
    pub fn more_headers(&self, effect_id: EffectId) -> Result<BTreeMap<String, String>, String> {
        let effect = effect_id.to_string();
        let values = Values { effect: Some(&effect), ..Values::default() };
        let filled = |(name, template): (&HeaderText, &String)| {
            Ok((name.0.as_str().to_owned(), template::fill(template, &values)?))
        };
        self.also.iter().map(filled).collect()
    }

    /// The whole value is one key, so that a key of the run may stand there as it is.
    pub fn is_bare(&self) -> bool {
        self.template == "{key}"
    }
}
