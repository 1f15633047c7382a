//! Messages as effects: what a guest may publish, and under which id. The server keeps one message for one id, as long as
//! it remembers ids; how long that is, it is asked before the first claim.
//!
//! No message leaves before its claim has committed, and nothing here publishes a second time by itself.

pub(crate) mod message;
mod publish;
mod server;
mod windows;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use message::Message;
pub use publish::Publish;
pub use server::Servers;

use self::message::Checked;
use super::attempt::{Attempt, lock};
use super::egress;
use super::pace::Meter;
use super::plan::{Effect, Means};
use super::request::{self, Error, Identity, Refusal, Response};
use super::resolver::Target;
use crate::effect::OnUnknown;
use crate::key;
use crate::policy::{GuestKeys, Messaging};

/// The provider's name in the identity of a message.
const PROVIDER: &str = "nats";

/// Changes when a message is carried out in another way.
const VERSION: &str = "1";

/// How a message is told apart, and what is done when nobody knows whether it was published.
#[derive(Clone, Debug)]
pub struct Options {
    pub identity: Identity,
    pub on_unknown: Option<OnUnknown>,
}

/// What came of a message: the server's word, with the id that the message had.
#[derive(Clone, Debug)]
pub struct Published {
    pub response: Response,
    pub message_id: String,
}

/// The server's word for a message that it keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Kept {
    pub stream: String,
    pub seq: u64,
    #[serde(default)]
    pub duplicate: bool,
}

impl Published {
    /// Where the message is kept; empty when a person settled the question without saying. The error is the server's own
    /// refusal.
    pub fn kept(&self) -> Result<Kept, String> {
        let body = self.response.body.clone().unwrap_or_default();
        if self.response.status < 400 {
            return Ok(serde_json::from_slice(&body).unwrap_or_default());
        }
        Err(String::from_utf8_lossy(&body).into_owned())
    }
}

impl Attempt {
    /// Publishes one message, or answers from the ledger. What it starts goes on when the caller is dropped.
    pub async fn publish(self: &Arc<Self>, message: Message, options: Options) -> Result<Published, Error> {
        request::check_identity(&options.identity)?;
        let message = message::check(message, &self.gateway.config).map_err(Refusal::InvalidRequest)?;
        let policy = self.policy.messaging.clone().ok_or_else(not_allowed)?;
        let limits = self.gateway.limits_of(self.tenant()).await?;
        egress::within(&policy.server.0, limits.egress.as_ref()).map_err(|denial| self.denied(denial))?;
        let _place = self.take_place()?;
        let target = self.target(policy.server.0.clone(), Duration::MAX).await?;
        let effect = self.planned_message(message, options, policy, target);
        let issued = effect.issued_key.clone();
        let response = self.make(effect, None).await?;
        let derived = || response.effect_id.map(|id| key::wire_key(&id).text()).unwrap_or_default();
        Ok(Published { message_id: issued.unwrap_or_else(derived), response })
    }

    fn planned_message(&self, message: Checked, options: Options, policy: Messaging, target: Target) -> Effect {
        let (identity, issued_key) = self.message_identity(&message, options.identity);
        let on_unknown = options.on_unknown.or(self.policy.on_unknown).unwrap_or(OnUnknown::Ask);
        Effect {
            identity,
            issued_key,
            provider: PROVIDER.to_owned(),
            meter: Meter::unpaced(PROVIDER),
            account: policy.account.clone(),
            profile_version: VERSION.to_owned(),
            method: "PUBLISH".to_owned(),
            url: format!("{}/{}", policy.server, message.subject),
            digest: message.digest(),
            streamed: false,
            on_unknown,
            means: Means::Publish(Box::new(Publish { message, policy, target })),
        }
    }

    /// As with HTTP: a key of the run that the guest has set itself names the effect and goes out as it is; another one is
    /// replaced, or names the effect where the deployment trusts it.
    fn message_identity(&self, message: &Checked, asked: Identity) -> (Identity, Option<String>) {
        let Some(own) = message.own_id.clone().filter(|_| matches!(asked, Identity::Positional)) else {
            return (asked, None);
        };
        if lock(&self.issued).contains(&own) {
            return (Identity::Named(own.clone()), Some(own));
        }
        let trusted = self.policy.guest_keys == GuestKeys::Trust && key::check_name(&own).is_ok();
        if trusted { (Identity::Named(own), None) } else { (asked, None) }
    }
}

fn not_allowed() -> Refusal {
    Refusal::Denied("policy.messaging names no server; add messaging.server to allow publishing".to_owned())
}

/// A word of the server, as the body of an answer.
fn body(word: &impl Serialize) -> Bytes {
    serde_json::to_vec(word).unwrap_or_default().into()
}
