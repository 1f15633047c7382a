//! What a deployment says about its runs: retries, time-outs, limits, egress, credentials. Data and its rules; nothing
//! here acts on them.

mod ceiling;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;
use utoipa::ToSchema;

use crate::effect::OnUnknown;

pub use ceiling::Ceiling;

/// The policy of one activity version.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    pub retry: Retry,
    pub timeouts: Timeouts,
    pub limits: Limits,
    pub egress: Egress,
    /// Which provider profile answers at an origin that no built-in profile names, for example
    /// `"http://127.0.0.1:8080" = "stripe"`.
    pub providers: BTreeMap<String, String>,
    /// The credential for each provider, by the profile's name.
    pub credentials: BTreeMap<String, Credential>,
    pub on_unknown: Option<OnUnknown>,
    pub randomness: Randomness,
    pub guest_keys: GuestKeys,
    /// The server that `messaging` publishes to. None: publishing is denied.
    pub messaging: Option<Messaging>,
    pub files: Files,
    /// A JSON Schema (draft 2020-12 unless it names another) for the inputs of new runs; others are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<serde_json::Value>,
}

/// When a failed attempt is followed by another.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// The first attempt included: 1 means no retry. At most 1000.
    pub max_attempts: u32,
    pub initial_interval: Span,
    /// 1 to 100.
    pub backoff_coefficient: f64,
    pub max_interval: Span,
    pub jitter: Jitter,
    /// Failure codes after which no further attempt is made.
    pub non_retryable: Vec<String>,
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            initial_interval: Span(Duration::from_secs(1)),
            backoff_coefficient: 2.0,
            max_interval: Span(Duration::from_secs(300)),
            jitter: Jitter::Full,
            non_retryable: Vec::new(),
        }
    }
}

/// How the delay between attempts is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Jitter {
    /// The delay itself.
    None,
    /// Between nothing and the delay.
    Full,
    /// Between half the delay and the delay.
    Equal,
    /// Between the initial interval and three times the previous delay.
    Decorrelated,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// One attempt, from when its module is ready to its end; then it ends as `timed-out`.
    pub start_to_close: Span,
    /// From when the run may start to its first attempt; then it fails as `timed-out`. None: no limit.
    pub schedule_to_start: Option<Span>,
    /// From when the run may start to its end, with all attempts and waits; then it fails as `timed-out`, and its open
    /// questions stay open. None: no limit.
    pub schedule_to_close: Option<Span>,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { start_to_close: Span(Duration::from_secs(60)), schedule_to_start: None, schedule_to_close: None }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Linear memory of one instance, within the host's ceiling.
    pub memory_bytes: Option<u64>,
    /// Runs of the activity at once, on all nodes together; more stay queued. The newest version's counts for all. None: no
    /// limit. 0: none run.
    pub max_running: Option<u32>,
}

/// Where a deployment may send. Nothing is allowed by default.
#[derive(Clone, Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Egress {
    /// Origins: scheme, host and port, for example `https://api.stripe.com`.
    pub allow: Vec<Origin>,
    /// Addresses inside private, loopback or link-local ranges that an allowed host may have. An allowed origin that is
    /// written with such an address allows that address.
    #[schema(value_type = Vec<String>)]
    pub private_addresses: Vec<IpAddr>,
}

/// A credential: the secret's name, and the account it belongs to. The account, never the secret, is part of an
/// effect's identity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Credential {
    pub secret: String,
    pub account: String,
}

/// Where a guest's random numbers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Randomness {
    /// The same stream in every attempt of a run.
    #[default]
    Stable,
    Fresh,
}

/// What an idempotency key in a request means that the guest has set itself and that is no key of its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GuestKeys {
    /// Nothing: client libraries invent random ones. The wire key takes its place.
    #[default]
    Replace,
    /// It names the effect, as an order number does. The provider gets a key derived from it.
    Trust,
}

/// Where messages go: a NATS server with JetStream.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Messaging {
    /// `nats://host:4222`, or `tls://host:4222` to insist on TLS. What is written here is allowed; the rules for private
    /// addresses are those of `egress`.
    pub server: NatsServer,
    /// The name of the secret: a token, or the password of `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The account that the credential belongs to. It is part of an effect's identity.
    #[serde(default)]
    pub account: String,
}

/// What a deployment may write into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Names of directories that the operator has granted.
    pub allow: Vec<String>,
}

/// The address of a NATS server. The origin's scheme is `nats` or `tls`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NatsServer(pub Origin);

const NATS_PORT: u16 = 4222;

impl NatsServer {
    /// Reads an address: nothing may follow the port.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("`{text}` is not a server such as nats://nats.example.com:4222: {why}");
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("it has no scheme"))?;
        if !matches!(scheme, "nats" | "tls") {
            return Err(wrong("its scheme must be nats or tls"));
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                (host, port.parse().map_err(|_| wrong("its port is no port"))?)
            }
            _ => (rest, NATS_PORT),
        };
        if port == 0 || host.contains('*') {
            return Err(wrong("it must name one host and one port"));
        }
        let host = url::Host::parse(host).map_err(|e| wrong(&e.to_string()))?;
        Ok(Self(Origin { scheme: scheme.to_owned(), host, port }))
    }
}

impl std::fmt::Display for NatsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}:{}", self.0.scheme, self.0.host, self.0.port)
    }
}

impl<'de> Deserialize<'de> for NatsServer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for NatsServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Scheme, host and port of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub scheme: String,
    pub host: url::Host,
    pub port: u16,
}

impl Origin {
    /// The origin of an `http` or `https` URL.
    pub fn of(url: &Url) -> Result<Self, String> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("the scheme `{}` is not http or https", url.scheme()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("user information is not allowed in a URL".to_owned());
        }
        let host = url.host().ok_or("the URL has no host")?.to_owned();
        let port = url.port_or_known_default().ok_or("the URL has no port")?;
        if port == 0 {
            return Err("port 0 cannot be reached".to_owned());
        }
        Ok(Self { scheme: url.scheme().to_owned(), host, port })
    }

    /// Reads an origin as a policy writes it: nothing may follow the port.
    pub fn parse(text: &str) -> Result<Self, String> {
        let url =
            Url::parse(text).map_err(|e| format!("`{text}` is not an origin such as https://api.example.com: {e}"))?;
        let origin = Self::of(&url).map_err(|e| format!("`{text}`: {e}"))?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none() && url.fragment().is_none();
        let wildcard = text.contains('*');
        if !bare || wildcard {
            return Err(format!("`{text}` must be a scheme, one host and a port, and nothing else"));
        }
        Ok(origin)
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let default = if self.scheme == "https" { 443 } else { 80 };
        write!(f, "{}://{}", self.scheme, self.host)?;
        if self.port == default { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

impl<'de> Deserialize<'de> for Origin {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Origin {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A duration, written with its unit: `500ms`, `30s`, `5m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = |e| serde::de::Error::custom(format!("`{text}` is not a duration such as 500ms, 30s or 5m: {e}"));
        humantime::parse_duration(&text).map(Self).map_err(wrong)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&humantime::format_duration(self.0))
    }
}

/// Codes that a policy may name, and the length of each.
const MAX_CODES: usize = 100;
const MAX_CODE_BYTES: usize = 128;

const LONGEST: Span = Span(Duration::from_secs(30 * 24 * 3600));
const SHORTEST: Span = Span(Duration::from_millis(1));

impl Policy {
    /// Reads and checks a policy. The error names the field.
    pub fn parse(json: &str) -> Result<Self, String> {
        let policy: Self = serde_json::from_str(json).map_err(|e| format!("policy: {e}"))?;
        policy.check()?;
        Ok(policy)
    }

    /// Checks what the types alone do not.
    pub fn check(&self) -> Result<(), String> {
        self.retry.check()?;
        within("policy.timeouts.start_to_close", self.timeouts.start_to_close)?;
        for (field, span) in [
            ("policy.timeouts.schedule_to_start", self.timeouts.schedule_to_start),
            ("policy.timeouts.schedule_to_close", self.timeouts.schedule_to_close),
        ] {
            span.map_or(Ok(()), |span| within(field, span))?;
        }
        if self.limits.max_running.is_some_and(|most| i32::try_from(most).is_err()) {
            return Err(format!("policy.limits.max_running must be at most {}", i32::MAX));
        }
        if self.messaging.as_ref().is_some_and(|messaging| messaging.user.is_some() && messaging.secret.is_none()) {
            return Err("policy.messaging.user needs policy.messaging.secret, the name of its password".to_owned());
        }
        for origin in self.providers.keys() {
            Origin::parse(origin).map_err(|e| format!("policy.providers: {e}"))?;
        }
        Ok(())
    }

    /// The profile that the deployment names for an origin.
    pub fn provider_at(&self, origin: &Origin) -> Option<&str> {
        let same = |text: &String| Origin::parse(text).is_ok_and(|o| o == *origin);
        self.providers.iter().find(|(text, _)| same(text)).map(|(_, profile)| profile.as_str())
    }
}

impl Retry {
    /// Reads a stored policy.
    pub fn parse(json: &str) -> Result<Self, String> {
        serde_json::from_str(json).map_err(|e| format!("retry: {e}"))
    }

    pub fn check(&self) -> Result<(), String> {
        if !(1..=1000).contains(&self.max_attempts) {
            return Err(format!("policy.retry.max_attempts is {}; it must be 1 to 1000", self.max_attempts));
        }
        if !(1.0..=100.0).contains(&self.backoff_coefficient) {
            return Err(format!(
                "policy.retry.backoff_coefficient is {}; it must be 1 to 100",
                self.backoff_coefficient
            ));
        }
        within("policy.retry.initial_interval", self.initial_interval)?;
        within("policy.retry.max_interval", self.max_interval)?;
        let code = |code: &String| (1..=MAX_CODE_BYTES).contains(&code.len());
        if self.non_retryable.len() > MAX_CODES || !self.non_retryable.iter().all(code) {
            return Err(format!(
                "policy.retry.non_retryable must be at most {MAX_CODES} codes of 1 to {MAX_CODE_BYTES} bytes"
            ));
        }
        Ok(())
    }

    /// The delay before the next attempt. `spent`: attempts that count so far, at least 1. `chance`: 0 to 1.
    pub fn delay(&self, spent: u32, chance: f64) -> Duration {
        let full = self.nominal(spent);
        let seconds = match self.jitter {
            Jitter::None => full,
            Jitter::Full => full * chance,
            Jitter::Equal => full / 2.0 + full / 2.0 * chance,
            Jitter::Decorrelated => {
                let least = self.initial_interval.0.as_secs_f64();
                let most = (self.nominal(spent.saturating_sub(1).max(1)) * 3.0).min(self.max_interval.0.as_secs_f64());
                least.min(most) + (most - least).max(0.0) * chance
            }
        };
        Duration::from_secs_f64(seconds.clamp(0.001, LONGEST.0.as_secs_f64()))
    }

    /// Seconds, capped. An overflow of the power is infinite, and so is cut to the cap.
    fn nominal(&self, spent: u32) -> f64 {
        let power = self.backoff_coefficient.powf(f64::from(spent.saturating_sub(1)));
        (self.initial_interval.0.as_secs_f64() * power).min(self.max_interval.0.as_secs_f64())
    }
}

fn within(field: &str, span: Span) -> Result<(), String> {
    if (SHORTEST..=LONGEST).contains(&span) { Ok(()) } else { Err(format!("{field} must be between 1ms and 30days")) }
}
