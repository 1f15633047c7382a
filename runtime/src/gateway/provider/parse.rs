//! Reading a profile: every value is checked where it is read, so that an error names the file, the line and the field.

use std::fmt;

use http::HeaderName;
use serde::{Deserialize, Serialize};

use super::operation::{Operation, OwnValue};
use super::{AlreadyDone, GUESSED_RETENTION, Profile, Profiles};
use crate::key::{self, HexDigits, Rendering};
use crate::policy::Span;

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("provider profile {file}: {message}")]
pub struct ProfileError {
    pub file: String,
    pub message: String,
}

impl Profile {
    /// Reads a profile. One that says `extends = "NAME"` takes from that profile whatever it does not say itself at the top
    /// level. The error names the file, the line and the field.
    pub fn parse(file: &str, text: &str, known: Option<&Profiles>) -> Result<Self, ProfileError> {
        let wrong = |message: String| ProfileError { file: file.to_owned(), message };
        let own: toml::Table = text.parse().map_err(|e: toml::de::Error| wrong(e.to_string()))?;
        let mut profile: Self = match own.get("extends") {
            None => toml::from_str(text).map_err(|e| wrong(e.to_string()))?,
            Some(base) => {
                let base = base.as_str().and_then(|name| known.and_then(|all| all.get(name)));
                let base = base.ok_or_else(|| wrong("extends: names no profile that is there".to_owned()))?;
                extended(&base.text, own).map_err(wrong)?
            }
        };
        if profile.text.is_empty() {
            profile.text = text.to_owned();
        }
        let profile = profile.softened().map_err(wrong)?;
        profile.check().map_err(wrong)?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), String> {
        self.rate.as_ref().map_or(Ok(()), super::Rate::check)?;
        for operation in &self.operations {
            let title = operation.name.as_deref().unwrap_or("without a name");
            operation.check().map_err(|why| format!("operation {title}: {why}"))?;
        }
        Ok(())
    }

    /// Reads every guessed fact on the safe side.
    fn softened(mut self) -> Result<Self, String> {
        let guessed = std::mem::take(&mut self.guessed);
        for fact in &guessed {
            let (operation, fact) = self.split_fact(fact);
            self.soften(operation.as_deref(), &fact)?;
        }
        self.guessed = guessed;
        Ok(self)
    }

    /// `operation.NAME.fact` is about one operation, `operation.fact` about all of them.
    fn split_fact(&self, fact: &str) -> (Option<String>, String) {
        let named = fact.strip_prefix("operation.").and_then(|rest| rest.split_once('.'));
        match named {
            Some((name, rest)) if self.operations.iter().any(|o| o.name.as_deref() == Some(name)) => {
                (Some(name.to_owned()), format!("operation.{rest}"))
            }
            _ => (None, fact.to_owned()),
        }
    }

    fn soften(&mut self, operation: Option<&str>, fact: &str) -> Result<(), String> {
        let meant = |o: &&mut Operation| operation.is_none_or(|name| o.name.as_deref() == Some(name));
        let operations = self.operations.iter_mut().filter(meant);
        match fact {
            "operation.key.retention" => operations.filter_map(|o| o.key.as_mut()).for_each(|key| {
                let least = key.retention.map_or(GUESSED_RETENTION, |span| span.0.min(GUESSED_RETENTION));
                key.retention = Some(Span(least));
            }),
            // A key that may not be taken is sent, and nothing relies on it.
            "operation.key" | "operation.key.carrier" => {
                operations.filter_map(|o| o.key.as_mut()).for_each(|key| key.honoured = false);
            }
            "operation.lookup" => {
                operations.filter_map(|o| o.lookup.as_mut()).for_each(|lookup| lookup.absent = None);
            }
            "answers.not_processed" => self.answers.not_processed.clear(),
            // An answer that may not prove anything leaves the question open, as a mismatch does.
            "answers.already_done" => {
                let unsure = std::mem::take(&mut self.answers.already_done);
                self.answers.mismatch.extend(unsure.into_iter().map(|AlreadyDone { when, .. }| when));
            }
            // These err on the safe side by themselves: the same key is sent again, or a person is asked.
            "answers.in_flight" | "answers.mismatch" | "answers.replayed" | "answers.stores_5xx" => {}
            "hosts" | "credential" | "operation.key.rendering" | "operation.paths" | "operation.methods" => {}
            other => return Err(format!("guessed: `{other}` is not a fact that may be guessed")),
        }
        Ok(())
    }
}

impl Operation {
    fn check(&self) -> Result<(), String> {
        if let Some(key) = &self.key {
            key.carrier.check().map_err(|why| format!("key.carrier: {why}"))?;
            if key.own == OwnValue::Keep && key.template.contains("{key}") {
                return Err("key.own: `keep` is for preconditions: a guest must not choose its key".to_owned());
            }
            let captured = |name: &str| self.paths.iter().all(|path| path.capture_names().any(|own| own == name));
            let unknown =
                super::template::placeholders(&key.template).into_iter().find(|name| *name != "key" && !captured(name));
            if let Some(name) = unknown {
                return Err(format!("key.template: no path of the operation captures {{{name}}}"));
            }
        }
        self.lookup.as_ref().map_or(Ok(()), |lookup| lookup.check().map_err(|why| format!("lookup: {why}")))
    }
}

/// A profile over another: its top-level members replace the other's.
fn extended(base: &str, own: toml::Table) -> Result<Profile, String> {
    let mut whole: toml::Table = base.parse().map_err(|e: toml::de::Error| e.to_string())?;
    whole.extend(own.into_iter().filter(|(name, _)| name != "extends"));
    let text = whole.to_string();
    let profile: Profile = whole.try_into().map_err(|e: toml::de::Error| e.to_string())?;
    Ok(Profile { text, ..profile })
}

/// A profile's name: lower-case letters, digits and `-`, 1 to 64.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct ProfileName(pub String);

impl TryFrom<String> for ProfileName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let letters = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if (1..=64).contains(&text.len()) && text.bytes().all(letters) {
            return Ok(Self(text));
        }
        Err(format!("`{}` is not a profile's name: lower-case letters, digits and `-`, 1 to 64", text.escape_debug()))
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A header's name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HeaderText(pub HeaderName);

impl PartialOrd for HeaderText {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for HeaderText {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.as_str().cmp(other.0.as_str())
    }
}

impl TryFrom<String> for HeaderText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        HeaderName::from_bytes(text.as_bytes()).map(Self).map_err(|_| format!("`{text}` is not a header name"))
    }
}

impl From<HeaderText> for String {
    fn from(name: HeaderText) -> Self {
        name.0.as_str().to_owned()
    }
}

/// A JSON pointer (RFC 6901), with `*` for every element or member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(String);

impl Pointer {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Pointer {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() || text.starts_with('/') {
            return Ok(Self(text));
        }
        Err(format!("`{text}` is not a JSON pointer: it begins with `/`"))
    }
}

impl From<Pointer> for String {
    fn from(pointer: Pointer) -> Self {
        pointer.0
    }
}

/// How a key is written.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "RenderingText")]
pub struct RenderingRule(pub Rendering);

impl Default for RenderingRule {
    fn default() -> Self {
        Self(Rendering::Uuid)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RenderingText {
    Uuid,
    Hex,
    #[serde(rename = "base32hex")]
    Base32Hex,
    TruncatedHex(usize),
}

impl TryFrom<RenderingText> for RenderingRule {
    type Error = String;

    fn try_from(text: RenderingText) -> Result<Self, String> {
        let few = || format!("truncated-hex: at least {} and at most 64 digits", key::MIN_KEY_BITS / 4);
        Ok(Self(match text {
            RenderingText::Uuid => Rendering::Uuid,
            RenderingText::Hex => Rendering::Hex,
            RenderingText::Base32Hex => Rendering::Base32Hex,
            RenderingText::TruncatedHex(digits) => Rendering::TruncatedHex(HexDigits::new(digits).ok_or_else(few)?),
        }))
    }
}
