//! Where a request carries its key, and how the key must be written. This is the provider's own reading of it: it must never
//! share code with whatever puts keys into requests, which it is there to judge.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::graphql::{self, Argument};
use crate::request::Request;
use crate::template::plain;

/// The place of the key. In JSON: `{"header": "Idempotency-Key"}`, `{"path": 2}`, `"none"`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Carrier {
    /// The first value of a header, whatever its case.
    Header(String),
    /// The first value of a query parameter, decoded.
    Query(String),
    /// A string or number in the JSON body, by JSON pointer.
    Json(String),
    /// The first value of a field of a form-encoded body.
    Form(String),
    /// `@directive(argument: ..)` in the GraphQL document: a literal, or a variable that `variables` gives.
    GraphqlDirective { directive: String, argument: String },
    /// A GraphQL variable; dots lead into it: `input.key`.
    GraphqlVariable(String),
    /// A segment of the path, from 0, not decoded.
    Path(usize),
    /// No key at all.
    None,
}

/// How a key must be written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Grammar {
    /// In characters. With 0 an empty value is no key; with more it is a bad one.
    pub min_length: usize,
    /// In characters.
    pub max_length: Option<usize>,
    pub charset: Charset,
    /// Only what follows the last slash is measured: resource names.
    pub last_segment: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Charset {
    #[default]
    Any,
    /// `!` to `~`.
    VisibleAscii,
    /// ASCII letters and digits, and the characters given here.
    AlphanumericAnd(String),
    /// The hyphenated text of a UUID of any version, but not the one of zeroes.
    Uuid,
    /// `0` to `9` and `a` to `v`.
    Base32Hex,
}

impl Carrier {
    pub(crate) fn key(&self, request: &Request) -> Option<String> {
        match self {
            Self::Header(name) => request.header(&name.to_ascii_lowercase()).map(str::to_owned),
            Self::Query(name) => first_value(request.query.as_bytes(), name),
            Self::Json(pointer) => text(body(request)?.pointer(pointer)?),
            Self::Form(name) => first_value(&request.body, name),
            Self::GraphqlDirective { directive, argument } => {
                let body = body(request)?;
                match graphql::argument(body.get("query")?.as_str()?, directive, argument)? {
                    Argument::Literal(key) => Some(key),
                    Argument::Variable(name) => text(body.get("variables")?.get(name)?),
                }
            }
            Self::GraphqlVariable(path) => {
                let body = body(request)?;
                text(path.split('.').try_fold(body.get("variables")?, |value, name| value.get(name))?)
            }
            Self::Path(index) => request.path.split('/').filter(|part| !part.is_empty()).nth(*index).map(str::to_owned),
            Self::None => None,
        }
    }

    pub(crate) fn is_graphql(&self) -> bool {
        matches!(self, Self::GraphqlDirective { .. } | Self::GraphqlVariable(_))
    }
}

impl Grammar {
    pub(crate) fn allows(&self, key: &str) -> bool {
        let key = if self.last_segment { key.rsplit('/').next().unwrap_or(key) } else { key };
        let length = key.chars().count();
        length >= self.min_length && self.max_length.is_none_or(|max| length <= max) && self.charset.allows(key)
    }
}

impl Charset {
    fn allows(&self, key: &str) -> bool {
        match self {
            Self::Any => true,
            Self::VisibleAscii => key.chars().all(|letter| letter.is_ascii_graphic()),
            Self::AlphanumericAnd(more) => {
                key.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
            }
            Self::Uuid => is_uuid(key) && key.chars().any(|letter| !matches!(letter, '0' | '-')),
            Self::Base32Hex => key.chars().all(|letter| matches!(letter, '0'..='9' | 'a'..='v')),
        }
    }
}

fn is_uuid(key: &str) -> bool {
    let parts: Vec<&str> = key.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn body(request: &Request) -> Option<Value> {
    serde_json::from_slice(&request.body).ok()
}

fn text(value: &Value) -> Option<String> {
    (value.is_string() || value.is_number()).then(|| plain(value))
}

/// The first value of a name in `a=b&c=d`.
pub(crate) fn first_value(pairs: &[u8], name: &str) -> Option<String> {
    url::form_urlencoded::parse(pairs).find(|(found, _)| found == name).map(|(_, value)| value.into_owned())
}
