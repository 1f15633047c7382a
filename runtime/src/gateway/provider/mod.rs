//! Providers' conventions as data: one TOML file each, read once, checked when read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::vault::Secret;
use crate::effect::OnUnknown;
use crate::key::{self, HexDigits, Rendering};
use crate::policy::{Origin, Span};

const SHIPPED: [(&str, &str); 4] = [
    ("generic", include_str!("generic.toml")),
    ("keyless", include_str!("keyless.toml")),
    ("stripe", include_str!("stripe.toml")),
    ("unlisted", include_str!("unlisted.toml")),
];

/// The profile for a host that nobody has described.
pub const UNLISTED: &str = "unlisted";

/// How one provider is spoken to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    /// Changes with every change of the file; effects keep the one that they were first claimed under.
    pub version: String,
    /// Where the facts come from.
    pub source: String,
    /// Host names at which this profile is used without being named by a deployment.
    #[serde(default)]
    pub hosts: Vec<String>,
    pub key: Option<KeyRule>,
    #[serde(default)]
    pub credential: Option<Placement>,
    /// Statuses that mean "surely not processed", besides 401, 407, 425 and 429.
    #[serde(default)]
    pub not_processed: Vec<u16>,
    /// The answer that means "this key is being worked on".
    pub in_flight: Option<AnswerRule>,
    /// Request headers that belong to the request digest.
    #[serde(default)]
    pub digest_headers: Vec<String>,
    pub on_unknown: Option<OnUnknown>,
}

/// How the provider takes an idempotency key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRule {
    pub carrier: Carrier,
    #[serde(default)]
    pub rendering: RenderingRule,
    /// How long the provider remembers a key; absent: for ever.
    pub retention: Option<Span>,
    #[serde(default)]
    pub counted_from: CountedFrom,
    /// False: the key is sent, but nothing relies on it.
    #[serde(default = "yes")]
    pub honoured: bool,
}

fn yes() -> bool {
    true
}

/// Where the key goes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Carrier {
    Header(String),
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RenderingRule {
    #[default]
    Uuid,
    Hex,
    #[serde(rename = "base32hex")]
    Base32Hex,
    TruncatedHex(usize),
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

/// Recognises an answer: its status and, if given, the JSON text at a pointer (RFC 6901).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRule {
    pub status: u16,
    pub pointer: Option<String>,
    pub equals: Option<String>,
}

impl AnswerRule {
    pub fn fits(&self, status: u16, body: &[u8]) -> bool {
        let Some(pointer) = &self.pointer else { return status == self.status };
        let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
        let found = json.as_ref().and_then(|json| json.pointer(pointer)).and_then(|value| value.as_str());
        status == self.status && found == self.equals.as_deref()
    }
}

/// Where the credential goes.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// `Authorization: Bearer …`
    Bearer,
    /// `Authorization: Basic …`, with the credential as `user:password`.
    Basic,
    Header(String),
    /// A query parameter of this name.
    Query(String),
}

/// Why a profile cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("provider profile {file}: {message}")]
pub struct ProfileError {
    pub file: String,
    pub message: String,
}

/// All profiles of a node, by name.
#[derive(Clone, Debug)]
pub struct Profiles(BTreeMap<String, Profile>);

impl Profiles {
    /// The profiles that come with the program, and those in the directory, which replace them by name.
    pub fn load(dir: Option<&Path>) -> Result<Self, ProfileError> {
        let mut all = BTreeMap::new();
        for (file, text) in SHIPPED {
            let profile = Profile::parse(file, text)?;
            all.insert(profile.name.clone(), profile);
        }
        for path in dir.map(files).transpose()?.into_iter().flatten() {
            let text = std::fs::read_to_string(&path).map_err(|e| wrong(&path, e.to_string()))?;
            let profile = Profile::parse(&path.display().to_string(), &text)?;
            all.insert(profile.name.clone(), profile);
        }
        Ok(Self(all))
    }

    pub fn get(&self, name: &str) -> Option<&Profile> {
        self.0.get(name)
    }

    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// The profile that names this host as its own.
    pub fn at(&self, origin: &Origin) -> Option<&Profile> {
        let host = origin.host.to_string();
        self.0.values().find(|profile| profile.hosts.contains(&host))
    }
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, ProfileError> {
    let entries = std::fs::read_dir(dir).map_err(|e| wrong(dir, e.to_string()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(|e| wrong(dir, e.to_string()))?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    Ok(paths)
}

fn wrong(path: &Path, message: String) -> ProfileError {
    ProfileError { file: path.display().to_string(), message }
}

impl Profile {
    /// Reads a profile; the error names the file, the line and the field.
    pub fn parse(file: &str, text: &str) -> Result<Self, ProfileError> {
        let wrong = |message: String| ProfileError { file: file.to_owned(), message };
        let profile: Self = toml::from_str(text).map_err(|e| wrong(e.to_string()))?;
        profile.check().map_err(wrong)?;
        Ok(profile)
    }

    fn check(&self) -> Result<(), String> {
        if let Some(KeyRule { carrier: Carrier::Header(name), rendering, .. }) = &self.key {
            header_name("key.carrier.header", name)?;
            rendering.checked().ok_or_else(|| {
                format!("key.rendering.truncated-hex: at least {} and at most 64 digits", key::MIN_KEY_BITS / 4)
            })?;
        }
        if let Some(Placement::Header(name)) = &self.credential {
            header_name("credential.header", name)?;
        }
        self.digest_headers.iter().try_for_each(|name| header_name("digest_headers", name).map(drop))
    }

    /// The key that a request carries already where this provider takes it, unquoted.
    pub fn key_in(&self, headers: &HeaderMap) -> Option<String> {
        let Carrier::Header(name) = &self.key.as_ref()?.carrier;
        let value = headers.get(name)?.to_str().ok()?;
        Some(value.trim_matches('"').to_owned())
    }

    pub fn digest_header_names(&self) -> Vec<HeaderName> {
        self.digest_headers.iter().filter_map(|name| header_name("", name).ok()).collect()
    }
}

impl RenderingRule {
    fn checked(self) -> Option<Rendering> {
        Some(match self {
            Self::Uuid => Rendering::Uuid,
            Self::Hex => Rendering::Hex,
            Self::Base32Hex => Rendering::Base32Hex,
            Self::TruncatedHex(digits) => Rendering::TruncatedHex(HexDigits::new(digits)?),
        })
    }

    pub fn rendering(self) -> Rendering {
        self.checked().unwrap_or(Rendering::Uuid)
    }
}

impl KeyRule {
    /// How long the provider remembers a key, in milliseconds.
    pub fn window(&self) -> Option<Duration> {
        self.retention.map(|span| span.0)
    }
}

impl Carrier {
    /// Puts the key into the request, replacing what the guest may have put there.
    pub fn inject(&self, headers: &mut HeaderMap, key: &str) -> Result<(), String> {
        let Self::Header(name) = self;
        let name = header_name("carrier", name)?;
        let value = HeaderValue::from_str(key).map_err(|_| "the wire key is no header value".to_owned())?;
        headers.insert(name, value);
        Ok(())
    }
}

impl Placement {
    /// Puts the credential into the request. No error of it shows the credential.
    pub fn inject(&self, url: &mut url::Url, headers: &mut HeaderMap, secret: &Secret) -> Result<(), String> {
        let (name, text) = match self {
            Self::Bearer => (AUTHORIZATION, Zeroizing::new(format!("Bearer {}", secret.expose()))),
            Self::Basic => {
                let encoded = Zeroizing::new(data_encoding::BASE64.encode(secret.expose().as_bytes()));
                (AUTHORIZATION, Zeroizing::new(format!("Basic {}", *encoded)))
            }
            Self::Header(name) => (header_name("credential.header", name)?, secret.expose().to_owned().into()),
            Self::Query(name) => {
                url.query_pairs_mut().append_pair(name, secret.expose());
                return Ok(());
            }
        };
        let mut value =
            HeaderValue::from_str(&text).map_err(|_| "the secret has characters no header may have".to_owned())?;
        value.set_sensitive(true);
        headers.insert(name, value);
        Ok(())
    }
}

fn header_name(field: &str, name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{field}: `{name}` is not a header name"))
}
