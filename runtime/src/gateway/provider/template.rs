//! Texts with placeholders: a key inside a resource name, the path of a look-up.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use url::Url;

use super::answers::{text_of, values_at};

/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a placeholder may stand for. What is not known yet stays as it is, to be filled in later.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a> {
    /// `{key}`
    pub key: Option<&'a str>,
    /// `{effect}`: the effect's id.
    pub effect: Option<&'a str>,
    /// `{name}`, from the path.
    pub captures: Option<&'a BTreeMap<String, String>>,
    /// `{query:parameter}`, from the URL.
    pub url: Option<&'a Url>,
    /// `{json:/pointer}` and `{form:field}`, from the request's body.
    pub request: Option<&'a [u8]>,
    /// `{answer:/pointer}`, from an answer's body.
    pub answer: Option<&'a [u8]>,
    /// `{first-sent}` as an HTTP date, `{first-sent:rfc3339}`, `{first-sent:date}`.
    pub first_sent: Option<DateTime<Utc>>,
}

/// Fills in a template as it stands. The error names the placeholder that has no value.
pub fn fill(template: &str, values: &Values<'_>) -> Result<String, String> {
    replace(template, |name| values.of(name))
}

/// Fills in a part of a URL: each value is percent-encoded.
pub fn fill_url(template: &str, values: &Values<'_>) -> Result<String, String> {
    let encode = |value: String| utf8_percent_encode(&value, RESERVED).to_string();
    replace(template, |name| Ok(values.of(name)?.map(encode)))
}

/// Fills in a JSON text: each value is escaped as the inside of a string.
pub fn fill_json(template: &str, values: &Values<'_>) -> Result<String, String> {
    let escape = |value: String| {
        let quoted = Value::String(value).to_string();
        quoted[1..quoted.len() - 1].to_owned()
    };
    replace(template, |name| Ok(values.of(name)?.map(escape)))
}

/// The names of all placeholders.
pub fn placeholders(template: &str) -> Vec<&str> {
    template.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name).collect()
}

/// A placeholder is `{` and a name of letters, digits and `-:/_.*~[]`; any other brace is text.
fn replace(template: &str, mut value: impl FnMut(&str) -> Result<Option<String>, String>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        let name = after.split_once('}').filter(|(name, _)| is_name(name));
        let Some((name, after)) = name else {
            filled.push('{');
            rest = after;
            continue;
        };
        match value(name)? {
            Some(value) => filled.push_str(&value),
            None => filled.extend(["{", name, "}"]),
        }
        rest = after;
    }
    Ok(filled + rest)
}

fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-:/_.*~[]".contains(c);
    !text.is_empty() && text.chars().all(allowed)
}

impl Values<'_> {
    /// None: not known yet.
    fn of(&self, name: &str) -> Result<Option<String>, String> {
        let missing = || format!("there is nothing for {{{name}}}");
        let (kind, argument) = name.split_once(':').unwrap_or((name, ""));
        match (kind, argument) {
            ("key", "") => Ok(self.key.map(str::to_owned)),
            ("effect", "") => Ok(self.effect.map(str::to_owned)),
            ("query", parameter) => self.url.map(|url| query_of(url, parameter).ok_or_else(missing)).transpose(),
            // As it is: a path is encoded already.
            ("url-path", "") => Ok(None),
            ("first-sent", form) => self.first_sent.map(|at| time(at, form)).transpose(),
            ("json", pointer) => self.request.map(|body| at(body, pointer).ok_or_else(missing)).transpose(),
            ("form", field) => self.request.map(|body| form_field(body, field).ok_or_else(missing)).transpose(),
            ("answer", pointer) => self.answer.map(|body| at(body, pointer).ok_or_else(missing)).transpose(),
            (capture, "") => match self.captures {
                Some(captures) => captures.get(capture).cloned().map(Some).ok_or_else(missing),
                None => Ok(None),
            },
            _ => Err(format!("{{{name}}} is not a placeholder")),
        }
    }
}

fn query_of(url: &Url, parameter: &str) -> Option<String> {
    url.query_pairs().find(|(name, _)| name == parameter).map(|(_, value)| value.into_owned())
}

fn time(at: DateTime<Utc>, form: &str) -> Result<String, String> {
    match form {
        // RFC 9110 section 5.6.7.
        "" => Ok(at.format("%a, %d %b %Y %H:%M:%S GMT").to_string()),
        "rfc3339" => Ok(at.to_rfc3339_opts(SecondsFormat::Secs, true)),
        "date" => Ok(at.format("%Y-%m-%d").to_string()),
        other => Err(format!("{{first-sent:{other}}} is not a form of time: rfc3339 or date")),
    }
}

fn at(body: &[u8], pointer: &str) -> Option<String> {
    let json: Value = serde_json::from_slice(body).ok()?;
    values_at(&json, pointer).first().filter(|value| !value.is_null()).map(|value| text_of(value))
}

fn form_field(body: &[u8], field: &str) -> Option<String> {
    url::form_urlencoded::parse(body).find(|(name, _)| name == field).map(|(_, value)| value.into_owned())
}
