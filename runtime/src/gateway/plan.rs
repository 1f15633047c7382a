//! One effect as its first claim will pin it: who it is, what it does, and how it is carried out.

use std::sync::Arc;

use http::HeaderName;

use super::answer;
use super::attempt::Attempt;
use super::files::Write;
use super::http_call::HttpCall;
use super::messaging::Publish;
use super::pace::Meter;
use super::request::{Error, Identity, Refusal};
use super::slots;
use super::transport::Sent;
use super::upload::Upload;
use super::vault::DataKey;
use crate::effect::{Learned, OnUnknown, Resend};
use crate::key::{self, EffectId, ProviderAccount};
use crate::store::effect::Known;
use crate::store::{effect as ledger, storable};

/// An effect that is to be made.
pub struct Effect {
    pub identity: Identity,
    /// A key of the run that the guest has put where the provider takes it: it goes on the wire as it is.
    pub issued_key: Option<String>,
    /// The provider's name in the effect's identity.
    pub provider: String,
    pub account: String,
    pub meter: Meter,
    pub profile_version: String,
    pub method: String,
    /// Without its query, which may hold what is not for the ledger.
    pub url: String,
    pub digest: [u8; 32],
    /// The digest does not cover the body.
    pub streamed: bool,
    pub on_unknown: OnUnknown,
    pub means: Means,
}

/// How an effect is carried out.
pub enum Means {
    Http(Box<HttpCall>),
    Publish(Box<Publish>),
    Write(Box<Write>),
}

/// What the first claim pins of the way in which an effect is carried out.
#[derive(Debug, Default)]
pub struct Pins {
    pub wire_key: Option<String>,
    /// A JSON text.
    pub carrier: Option<String>,
    /// A JSON text of pairs.
    pub also: Option<String>,
    pub window_ms: Option<i64>,
    pub window_from: &'static str,
    pub resend: Option<Resend>,
    /// A JSON text.
    pub lookup: Option<String>,
}

/// What one send came to.
#[derive(Debug)]
pub struct Carried {
    pub sent: Sent,
    pub learned: Learned,
    pub source: &'static str,
    /// The provider repeats a failure that it keeps under the key: sending again teaches nothing.
    pub stored_failure: bool,
    /// The provider refuses this send because of the one before, and sending again will not change that.
    pub proves_nothing: bool,
    /// Of a body that was streamed and went out whole.
    pub body_digest: Option<[u8; 32]>,
    /// A header of the answer that is recorded besides the usual ones.
    pub kept_header: Option<HeaderName>,
    /// False: the answer's body is not recorded.
    pub keep_body: bool,
}

impl Carried {
    pub fn new(sent: Sent, learned: Learned) -> Self {
        Self {
            sent,
            learned,
            source: "original",
            stored_failure: false,
            proves_nothing: false,
            body_digest: None,
            kept_header: None,
            keep_body: true,
        }
    }

    /// Nothing was sent.
    pub fn nothing() -> Self {
        Self::new(Sent::Nothing(String::new()), Learned::NotApplied)
    }
}

/// A send about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Sending<'a> {
    pub attempt: &'a Arc<Attempt>,
    pub known: &'a Known,
    /// By the clock: no first byte after it.
    pub not_after: std::time::Duration,
    /// The outcome of an earlier send is unknown still.
    pub earlier_unknown: bool,
}

impl Effect {
    /// The place that a positional effect is counted at.
    pub fn slot(&self) -> Option<String> {
        matches!(self.identity, Identity::Positional).then(|| slots::place(&self.method, &self.url))
    }

    pub fn key_identity<'a>(&'a self, attempt: &'a Attempt, slot: &'a str, ordinal: u32) -> key::Identity<'a> {
        let (run_id, activity) = (attempt.run_id(), attempt.activity.as_str());
        match &self.identity {
            Identity::Positional => key::Identity::Positional { run_id, activity, slot, ordinal },
            Identity::Named(name) => key::Identity::Named { run_id, activity, name },
            Identity::Business { operation, key } => key::Identity::Business { operation, key },
        }
    }

    pub fn id(&self, tenant: &str, identity: key::Identity<'_>) -> EffectId {
        let provider = ProviderAccount { profile: &self.provider, account: &self.account };
        key::effect_id(tenant, provider, identity)
    }

    /// The claim of this effect. Fails when the request has no place for its key, or when nobody says how long the key is
    /// good for.
    pub async fn claim(
        &self,
        attempt: &Arc<Attempt>,
        effect_id: EffectId,
        identity: key::Identity<'_>,
        sealer: Option<&DataKey>,
    ) -> Result<ledger::Claim, Error> {
        let pins = self.means.pins(attempt, effect_id, self.issued_key.as_deref()).await?;
        let (keying, words) = describe(identity);
        let lookup = pins.lookup.map(|text| match sealer {
            Some(key) => answer::sealed_text(key, &effect_id.0, "lookup", &text),
            None => text,
        });
        Ok(ledger::Claim {
            lease: attempt.lease.record.clone(),
            attempt: attempt.number,
            effect_id: effect_id.0,
            keying,
            identity: storable(&words),
            provider: self.provider.clone(),
            account: self.account.clone(),
            meter: self.meter.name.clone(),
            profile_version: self.profile_version.clone(),
            method: self.method.clone(),
            url: self.url.clone(),
            digest: self.digest,
            wire_key: pins.wire_key,
            carrier: pins.carrier,
            also: pins.also,
            window_ms: pins.window_ms,
            window_from: pins.window_from,
            resend: pins.resend.unwrap_or(Resend::Unsafe),
            on_unknown: self.on_unknown,
            lookup,
            lookup_sealed_with: sealer.map(DataKey::id),
            streamed: self.streamed,
        })
    }
}

impl Means {
    async fn pins(&self, attempt: &Arc<Attempt>, effect_id: EffectId, issued: Option<&str>) -> Result<Pins, Error> {
        match self {
            Self::Http(call) => Ok(call.pins(effect_id, issued).map_err(Refusal::InvalidRequest)?),
            Self::Publish(publish) => publish.pins(attempt, effect_id, issued).await,
            Self::Write(write) => Ok(write.pins(effect_id)),
        }
    }

    /// Refuses what cannot be sent before it is counted or claimed.
    pub async fn check(&self, attempt: &Arc<Attempt>) -> Result<(), Error> {
        match self {
            Self::Http(call) => call.check_credential(attempt).await,
            Self::Publish(publish) => publish.check(attempt).await,
            Self::Write(_) => Ok(()),
        }
    }

    /// Sends once. An error means that nothing was sent.
    pub async fn send(&self, sending: Sending<'_>) -> Result<Carried, Error> {
        match self {
            Self::Http(call) => call.carry_out(sending).await,
            Self::Publish(publish) => publish.carry_out(sending).await,
            Self::Write(write) => Ok(write.carry_out(sending).await),
        }
    }

    /// The body that was not buffered.
    pub fn upload(&self) -> Option<&Upload> {
        match self {
            Self::Http(call) => call.request.upload.as_ref(),
            Self::Publish(_) | Self::Write(_) => None,
        }
    }

    /// The HTTP call, where later calls of the same name read anew instead of replaying.
    pub fn pinned_read(&self) -> Option<&HttpCall> {
        match self {
            Self::Http(call) => call.pin().is_some().then_some(call),
            Self::Publish(_) | Self::Write(_) => None,
        }
    }
}

/// The identity as the ledger shows it.
fn describe(identity: key::Identity<'_>) -> (&'static str, String) {
    match identity {
        key::Identity::Business { operation, key } => ("business-identity", format!("{operation} {key}")),
        key::Identity::Named { name, .. } => ("activity-recipe", name.to_owned()),
        key::Identity::Positional { slot, ordinal, .. } => ("activity-recipe", format!("{slot} #{ordinal}")),
    }
}
