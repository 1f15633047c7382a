//! What a deployment says about its runs: retries, time-outs, limits, egress, credentials. Data and its rules; nothing
//! here acts on them.

mod ceiling;
mod egress;
mod hosts;
mod limits;
mod origin;
mod path;
mod retry;
mod rule;
mod span;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::effect::OnUnknown;

pub use ceiling::Ceiling;
pub use egress::{Egress, Messaging, Verdict};
pub use hosts::Hosts;
pub use limits::Limits;
pub use origin::{NatsServer, Origin};
pub use retry::{Jitter, Retry};
pub use rule::{Rule, RuleForm};
pub use span::Span;
use span::within;

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

/// What a deployment may write into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Names of directories that the operator has granted.
    pub allow: Vec<String>,
}

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
        self.limits.check()?;
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
