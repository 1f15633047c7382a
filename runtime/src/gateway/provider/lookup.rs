//! Look-ups: how a provider is asked whether an effect happened, and how its answer is read. A recipe is pinned with the
//! first claim, so that whoever asks later needs neither the guest nor the request.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answers::{Condition, values_at};
use super::operation::MethodText;
use super::parse::{HeaderText, Pointer};
use super::template::{self, Values};
use crate::policy::Span;

/// How to ask, as a profile writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookupRecipe {
    #[serde(default = "get")]
    pub method: MethodText,
    /// Path and query at the origin of the effect.
    pub path: String,
    #[serde(default)]
    pub headers: BTreeMap<HeaderText, String>,
    pub body: Option<String>,
    /// It asks by something that no other effect can share.
    #[serde(default = "yes")]
    pub exact: bool,
    pub found: Condition,
    /// Absent, or not to be believed: the provider can never be sure that it did not happen.
    pub absent: Option<Condition>,
    /// How long after the send `absent` may still be wrong.
    #[serde(default = "no_time")]
    pub settle: Span,
    /// What is recorded as the answer's body; the whole if absent.
    pub answer: Option<Pointer>,
}

fn get() -> MethodText {
    MethodText(http::Method::GET)
}

fn yes() -> bool {
    true
}

fn no_time() -> Span {
    Span(Duration::ZERO)
}

/// A look-up as the ledger keeps it: all is filled in but when the effect was first sent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Pinned {
    pub method: String,
    pub url: String,
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
    pub exact: bool,
    pub found: Condition,
    pub absent: Option<Condition>,
    pub settle_ms: u64,
    pub answer: Option<Pointer>,
}

/// What an answer to a look-up says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// It happened; with what the provider has.
    Found(Vec<u8>),
    Absent,
    CannotTell,
}

impl LookupRecipe {
    pub fn check(&self) -> Result<(), String> {
        if !self.path.starts_with('/') && !self.path.starts_with("{url-path}") {
            return Err("path: begins with `/`: a look-up asks where the effect was sent".to_owned());
        }
        Ok(())
    }

    /// `{url-path}` is the path of the effect itself.
    fn with_path(&self, values: &Values<'_>) -> String {
        values.url.map_or_else(|| self.path.clone(), |url| self.path.replace("{url-path}", url.path()))
    }

    /// The look-up for one request, to be pinned. `origin` has no path.
    pub fn pin(&self, origin: &str, values: &Values<'_>) -> Result<Pinned, String> {
        let header =
            |(name, text): (&HeaderText, &String)| Ok((name.0.as_str().to_owned(), template::fill(text, values)?));
        Ok(Pinned {
            method: self.method.0.to_string(),
            url: format!("{origin}{}", template::fill_url(&self.with_path(values), values)?),
            headers: self.headers.iter().map(header).collect::<Result<_, String>>()?,
            body: self.body.as_ref().map(|body| template::fill_json(body, values)).transpose()?,
            exact: self.exact,
            found: filled(&self.found, values)?,
            absent: self.absent.as_ref().map(|absent| filled(absent, values)).transpose()?,
            settle_ms: u64::try_from(self.settle.0.as_millis()).unwrap_or(u64::MAX),
            answer: self.answer.clone(),
        })
    }
}

fn filled(condition: &Condition, values: &Values<'_>) -> Result<Condition, String> {
    let equals = condition.equals.as_ref().map(|text| template::fill(text, values)).transpose()?;
    Ok(Condition { equals, ..condition.clone() })
}

impl Pinned {
    /// With the time of the effect's first send filled in.
    pub fn at(&self, first_sent: DateTime<Utc>) -> Result<Self, String> {
        let values = Values { first_sent: Some(first_sent), ..Values::default() };
        let mut filled = self.clone();
        filled.url = template::fill_url(&self.url, &values)?;
        filled.body = self.body.as_ref().map(|body| template::fill_json(body, &values)).transpose()?;
        Ok(filled)
    }

    /// Reads an answer. `settled`: the settling time has passed, so that absence can be believed.
    pub fn says(&self, status: u16, headers: &HeaderMap, body: &[u8], settled: bool) -> Says {
        let json = || serde_json::from_slice::<Value>(body).ok();
        if self.found.fits(status, headers, body) {
            let part = self.answer.as_ref().and_then(|pointer| {
                let json = json()?;
                values_at(&json, pointer.as_str()).first().map(|value| value.to_string().into_bytes())
            });
            // Several things fit what was asked for: which of them it was cannot be told.
            let many = !self.exact && self.counted(&json().unwrap_or_default()) > 1;
            return if many { Says::CannotTell } else { Says::Found(part.unwrap_or_else(|| body.to_vec())) };
        }
        match &self.absent {
            Some(absent) if settled && absent.fits(status, headers, body) => Says::Absent,
            _ => Says::CannotTell,
        }
    }

    fn counted(&self, json: &Value) -> usize {
        let text = self.found.equals.as_deref();
        let fits = |value: &&Value| text.is_none_or(|text| super::answers::text_of(value) == text);
        self.found
            .pointer
            .as_ref()
            .map_or(0, |pointer| values_at(json, pointer.as_str()).iter().filter(|v| fits(v)).count())
    }
}
