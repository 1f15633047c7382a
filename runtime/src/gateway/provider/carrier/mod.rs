//! Where a provider takes its key, and the edits that put a key there, find it and take it out again.
//!
//! Pure: no I/O, no clock. An edit leaves every other byte of the request as it is, because the guest may have signed
//! or counted them. No error shows a value, and nothing here decides whether a key is sent, or which.

mod graphql;
mod json;
mod pairs;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use url::Url;

pub use graphql::{GraphqlKind, graphql_kind};

/// Where the key goes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Carrier {
    Header(String),
    Query(String),
    /// A JSON pointer (RFC 6901) to a member of the body. Every step on the way is an object; one that is missing or
    /// null is made.
    Json(String),
    /// A field of a form-encoded body.
    Form(String),
    /// A directive on the mutation's one root field, for example `idempotent` with the argument `key`.
    GraphqlDirective {
        directive: String,
        argument: String,
    },
    /// A variable of a GraphQL request, without its `$`. The operation must declare it.
    GraphqlVariable(String),
    /// A segment of the path, counted from 0. The path must have it, but it may be empty.
    Path(usize),
}

/// The parts of a request that a carrier may touch.
pub struct Parts<'a> {
    pub url: &'a mut Url,
    pub headers: &'a mut HeaderMap,
    pub body: &'a mut Bytes,
}

impl Parts<'_> {
    /// The same parts, for one more edit.
    pub fn again(&mut self) -> Parts<'_> {
        Parts { url: self.url, headers: self.headers, body: self.body }
    }
}

impl Carrier {
    /// Whether it can be used at all: names and pointers are well formed. The error is a sentence.
    pub fn check(&self) -> Result<(), String> {
        match self {
            Self::Header(name) => header_name(name).map(drop),
            Self::Query(name) if name.is_empty() => Err("a query parameter has a name".into()),
            Self::Form(name) if name.is_empty() => Err("a form field has a name".into()),
            Self::Json(pointer) => json::steps(pointer).map(drop),
            Self::GraphqlDirective { directive, argument } => {
                graphql::check_name(directive)?;
                graphql::check_name(argument)
            }
            Self::GraphqlVariable(name) => graphql::check_name(name),
            Self::Query(_) | Self::Form(_) | Self::Path(_) => Ok(()),
        }
    }

    /// It reads or changes the body.
    pub fn needs_body(&self) -> bool {
        match self {
            Self::Json(_) | Self::Form(_) | Self::GraphqlDirective { .. } | Self::GraphqlVariable(_) => true,
            Self::Header(_) | Self::Query(_) | Self::Path(_) => false,
        }
    }

    /// The value that the request carries there already: a text's content, anything else as it is written. `None` only
    /// when nothing is there, or when the request is not of the form that this carrier needs.
    pub fn read(&self, url: &Url, headers: &HeaderMap, body: &[u8]) -> Option<String> {
        match self {
            Self::Header(name) => read_header(headers, name),
            Self::Query(name) => pairs::read(url.query()?.as_bytes(), name),
            Self::Json(pointer) => json::read(body, &json::steps(pointer).ok()?),
            Self::Form(name) => pairs::read(body, name),
            Self::GraphqlDirective { directive, argument } => graphql::read_directive(body, directive, argument),
            Self::GraphqlVariable(name) => graphql::read_variable(body, name),
            Self::Path(at) => {
                let segment = url.path_segments()?.nth(*at).filter(|segment| !segment.is_empty())?;
                Some(percent_decode_str(segment).decode_utf8_lossy().into_owned())
            }
        }
    }

    /// Puts the value there, replacing what is there, and leaving every other byte of the request as it is.
    pub fn inject(&self, parts: Parts<'_>, value: &str) -> Result<(), String> {
        match self {
            Self::Header(name) => {
                let value = HeaderValue::from_str(value).map_err(|_| "the key has characters no header may have")?;
                parts.headers.insert(header_name(name)?, value);
            }
            Self::Query(name) => set_query(parts.url, |query| pairs::set(query, name, value))?,
            Self::Json(pointer) => *parts.body = json::set(parts.body, &json::steps(pointer)?, value)?.into(),
            Self::Form(name) => *parts.body = pairs::set(parts.body, name, value).into(),
            Self::GraphqlDirective { directive, argument } => {
                *parts.body = graphql::set_directive(parts.body, directive, argument, value)?.into();
            }
            Self::GraphqlVariable(name) => *parts.body = graphql::set_variable(parts.body, name, value)?.into(),
            Self::Path(at) => set_segment(parts.url, *at, value)?,
        }
        Ok(())
    }

    /// Takes out what is there, for the request digest: two requests that differ only in it become equal. What is left
    /// need not be a request that can be sent.
    pub fn strip(&self, parts: Parts<'_>) -> Result<(), String> {
        match self {
            Self::Header(name) => drop(parts.headers.remove(header_name(name)?)),
            Self::Query(name) => set_query(parts.url, |query| pairs::unset(query, name))?,
            Self::Json(pointer) => *parts.body = json::unset(parts.body, &json::steps(pointer)?)?.into(),
            Self::Form(name) => *parts.body = pairs::unset(parts.body, name).into(),
            Self::GraphqlDirective { directive, argument } => {
                *parts.body = graphql::unset_directive(parts.body, directive, argument)?.into();
            }
            Self::GraphqlVariable(name) => *parts.body = graphql::unset_variable(parts.body, name)?.into(),
            Self::Path(at) => set_segment(parts.url, *at, "")?,
        }
        Ok(())
    }
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("`{name}` is not a header name"))
}

/// Several headers of one name count as one, with commas between (RFC 9110). A structured-field string (RFC 8941)
/// counts as its content.
fn read_header(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(name).iter();
    let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
    let text = (!values.is_empty()).then(|| values.join(", "))?;
    let content = text.trim().strip_prefix('"').and_then(|rest| unquoted(rest.strip_suffix('"')?));
    Some(content.unwrap_or(text))
}

/// The content between the quotes; `None` when they do not belong together.
fn unquoted(inner: &str) -> Option<String> {
    let mut content = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => return None,
            '\\' => content.push(chars.next().filter(|escaped| ['"', '\\'].contains(escaped))?),
            plain => content.push(plain),
        }
    }
    Some(content)
}

fn set_query(url: &mut Url, edit: impl FnOnce(&[u8]) -> Vec<u8>) -> Result<(), String> {
    let query = String::from_utf8(edit(url.query().unwrap_or_default().as_bytes()));
    let query = query.map_err(|_| "the query of the URL is not text")?;
    url.set_query(Some(query.as_str()).filter(|query| !query.is_empty()));
    Ok(())
}

/// What a segment may hold as it is (RFC 3986, unreserved).
const ENCODED_IN_A_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

fn set_segment(url: &mut Url, at: usize, value: &str) -> Result<(), String> {
    if [".", ".."].contains(&value) {
        return Err("a segment of a path cannot be `.` or `..`".into());
    }
    let mut segments: Vec<&str> = url.path_segments().ok_or("the URL has no path of segments")?.collect();
    let count = segments.len();
    let no_such = || format!("the path has {count} segments: the key belongs into number {at}, counted from 0");
    let encoded = utf8_percent_encode(value, ENCODED_IN_A_SEGMENT).to_string();
    *segments.get_mut(at).ok_or_else(no_such)? = &encoded;
    let path = format!("/{}", segments.join("/"));
    url.set_path(&path);
    Ok(())
}
