//! What is to be verified and how far: the command line's wishes, read. Nothing here runs anything.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;

use crate::policy::{Origin, Policy};

/// What is to be verified.
#[derive(Debug)]
pub struct Plan {
    pub component: Vec<u8>,
    /// None: the only one.
    pub activity: Option<String>,
    /// A JSON text.
    pub input: String,
    /// None: the default, with egress to the origins that the input and `providers` name.
    pub policy: Option<Policy>,
    pub providers: Vec<Provider>,
    pub pages: Vec<Page>,
    /// Signals that are there from the start, with their JSON texts.
    pub signals: Vec<(String, String)>,
    /// Origins that no provider stands for are called for real.
    pub live: bool,
    pub groups: BTreeSet<Group>,
    pub max_cases: usize,
    pub time: Duration,
    pub at_once: usize,
    /// Of a database on a server on which databases may be made and removed.
    pub database_url: String,
    /// A master key of its own, which is in no use elsewhere.
    pub master_key_file: PathBuf,
    /// Empty, and the verification's own.
    pub dir: PathBuf,
    /// The program that compiles; none: this one.
    pub compiler: Option<PathBuf>,
}

/// Who stands for an origin: `https://api.example.com=stripe`, or `stripe` for every origin that nobody else stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    pub origin: Option<Origin>,
    pub profile: String,
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (origin, profile) = match text.rsplit_once('=') {
            Some((origin, profile)) => (Some(Origin::parse(origin)?), profile),
            None => (None, text),
        };
        if profile.is_empty() || profile.contains("://") {
            return Err("it must be PROFILE or ORIGIN=PROFILE, for example https://api.example.com=stripe".to_owned());
        }
        Ok(Self { origin, profile: profile.to_owned() })
    }
}

/// A text that a read of an address gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub url: url::Url,
    pub text: String,
}

/// A kind of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The whole run once more, with a fresh ledger and with fresh random numbers.
    Repeat,
    /// A death at each point.
    Crash,
    /// A lost lease whose worker wakes late.
    Overlap,
    /// A provider in trouble: time-outs, 429, 5xx, a rejection.
    Answers,
    /// Effects that are under way at once, in another order.
    Order,
    /// All of these with providers that take no keys.
    Keyless,
}

impl Group {
    pub const ALL: [Self; 6] = [Self::Repeat, Self::Crash, Self::Overlap, Self::Answers, Self::Order, Self::Keyless];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Crash => "crash",
            Self::Overlap => "overlap",
            Self::Answers => "answers",
            Self::Order => "order",
            Self::Keyless => "keyless",
        }
    }
}

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(Self::as_str).join(", ");
        Self::ALL
            .into_iter()
            .find(|group| group.as_str() == text)
            .ok_or_else(|| format!("it must be one of {}", known()))
    }
}

/// The origins of all http addresses in a JSON value, each once.
pub fn origins_in(value: &Value) -> Vec<Origin> {
    let mut found = Vec::new();
    collect(value, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<Origin>) {
    match value {
        Value::String(text) => {
            let origin =
                url::Url::parse(text).ok().and_then(|url| Origin::parse(&url.origin().ascii_serialization()).ok());
            found.extend(origin.filter(|origin| !found.contains(origin)));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(members) => members.values().for_each(|member| collect(member, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_provider_stands_for_one_origin_or_for_the_rest() {
        let one: Provider = "https://api.example.com=stripe".parse().unwrap();
        assert_eq!(one.origin.map(|origin| origin.to_string()).as_deref(), Some("https://api.example.com"));
        assert_eq!("keyless".parse(), Ok(Provider { origin: None, profile: "keyless".to_owned() }));
        for wrong in ["", "https://api.example.com", "https://api.example.com=", "example.com=stripe"] {
            assert!(wrong.parse::<Provider>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_input_names_the_origins_that_it_calls() {
        let input = json!({ "a": ["https://one.test/v1", "no address"], "b": { "c": "http://two.test:81" }, "d": "https://one.test" });
        let found: Vec<_> = origins_in(&input).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["https://one.test", "http://two.test:81"]);
    }

    #[test]
    fn groups_are_known_by_their_names() {
        assert!(Group::ALL.iter().all(|group| group.as_str().parse() == Ok(*group)));
        assert!("everything".parse::<Group>().unwrap_err().contains("crash"));
    }
}
