//! Providers' conventions as data: one TOML file each, read once, checked when read. What a profile says about one
//! request is asked here; nothing here sends, and nothing here knows a credential's value longer than to place it.

pub(crate) mod answers;
mod carrier;
mod credential;
mod lookup;
mod operation;
mod parse;
pub(crate) mod pattern;
mod shipped;
pub(crate) mod template;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, Method};
use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use crate::effect::OnUnknown;
use crate::policy::Origin;
use crate::store::rate::Pace;

pub use answers::{AlreadyDone, Answers, Condition, HeaderRule};
pub use carrier::{Carrier, Parts};
pub use credential::{Placement, Signing};
pub use lookup::{LookupRecipe, Pinned as PinnedLookup, Says};
pub use operation::{CountedFrom, KeyRule, Operation, OwnValue, Pin};
pub use parse::{Pointer, ProfileError};
pub use template::{Values, fill, fill_url};

use pattern::HostPattern;

/// The profile for a host that nobody has described.
pub const UNLISTED: &str = "unlisted";

/// A guessed or unstated retention counts for at most this long: enough for retries with back-off, and shorter than
/// what providers of this kind publish.
pub const GUESSED_RETENTION: Duration = Duration::from_secs(600);

/// How one provider is spoken to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: parse::ProfileName,
    /// Changes with every change of the file; effects keep the one that they were first claimed under.
    pub version: String,
    /// Where the facts come from.
    pub source: String,
    /// How sure the facts are as a whole.
    #[serde(default)]
    pub confidence: Confidence,
    /// Facts of this file that nobody has read anywhere. Each is read on the safe side.
    #[serde(default)]
    pub guessed: Vec<String>,
    /// Host names at which this profile is used without being named by a deployment.
    #[serde(default)]
    pub hosts: Vec<HostPattern>,
    #[serde(default)]
    pub credential: Option<Placement>,
    pub on_unknown: Option<OnUnknown>,
    /// How fast a tenant may send to one account of it. None: as fast as it likes, until the provider asks for a pause.
    #[serde(default)]
    pub rate: Option<Rate>,
    /// Request headers that belong to the request digest.
    #[serde(default)]
    pub digest_headers: Vec<parse::HeaderText>,
    #[serde(default)]
    pub answers: Answers,
    /// The first that fits a request counts. With none, no key is sent and nothing relies on one.
    #[serde(default, rename = "operation")]
    pub operations: Vec<Operation>,
    /// What it was read from, for profiles that extend it.
    #[serde(skip)]
    pub text: String,
}

/// An even rate and a burst.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// 0.001 to 100000.
    pub per_second: f64,
    /// Sends at once after a rest: 1 to 100000.
    #[serde(default = "one")]
    pub burst: u32,
}

const fn one() -> u32 {
    1
}

impl Rate {
    pub fn pace(&self) -> Pace {
        Pace { per_second: self.per_second, burst: self.burst }
    }

    fn check(&self) -> Result<(), String> {
        let fits = (0.001..=100_000.0).contains(&self.per_second) && (1..=100_000).contains(&self.burst);
        if fits { Ok(()) } else { Err("rate: per_second must be 0.001 to 100000, burst 1 to 100000".to_owned()) }
    }
}

/// How well a fact is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub enum Confidence {
    /// Read in the provider's own specification, SDK or documentation.
    H,
    /// Read in a secondary or truncated source.
    M,
    /// Not read: from memory.
    #[default]
    L,
}

/// A request as profiles look at it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    pub method: &'a Method,
    pub url: &'a Url,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
}

impl Profile {
    /// The place of the operation that a request is, with what its path captured.
    pub fn operation(&self, asked: Asked<'_>) -> Option<(usize, BTreeMap<String, String>)> {
        let matched = |(at, operation): (usize, &Operation)| Some((at, operation.matched(asked)?));
        self.operations.iter().enumerate().find_map(matched)
    }

    pub fn digest_header_names(&self) -> Vec<HeaderName> {
        self.digest_headers.iter().map(|name| name.0.clone()).collect()
    }

    /// The AWS region in a host name, where the host pattern names one.
    pub fn region_of(&self, host: &str) -> Option<String> {
        self.hosts.iter().find_map(|pattern| pattern.matched(host)).flatten()
    }
}

/// Profiles by name.
#[derive(Clone, Debug, Default)]
pub struct Profiles(BTreeMap<String, Arc<Profile>>);

impl Profiles {
    /// The profiles that come with the program, and those in the directory, which replace them by name.
    pub fn load(dir: Option<&Path>) -> Result<Self, ProfileError> {
        let mut all = Self::default();
        for (file, text) in shipped::PROFILES {
            all.insert(Profile::parse(file, text, None)?);
        }
        for path in dir.map(files).transpose()?.into_iter().flatten() {
            let text = std::fs::read_to_string(&path).map_err(|e| unreadable(&path, &e))?;
            let profile = Profile::parse(&path.display().to_string(), &text, Some(&all))?;
            all.insert(profile);
        }
        Ok(all)
    }

    pub fn insert(&mut self, profile: Profile) {
        self.0.insert(profile.name.0.clone(), Arc::new(profile));
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Profile>> {
        self.0.get(name)
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.0.values()
    }

    /// The profile that names this host as its own.
    pub fn at(&self, origin: &Origin) -> Option<&Arc<Profile>> {
        let host = origin.host.to_string();
        self.0.values().find(|profile| profile.hosts.iter().any(|pattern| pattern.matched(&host).is_some()))
    }
}

fn files(dir: &Path) -> Result<Vec<PathBuf>, ProfileError> {
    let entries = std::fs::read_dir(dir).map_err(|e| unreadable(dir, &e))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(|e| unreadable(dir, &e))?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    Ok(paths)
}

fn unreadable(path: &Path, error: &std::io::Error) -> ProfileError {
    ProfileError { file: path.display().to_string(), message: error.to_string() }
}
