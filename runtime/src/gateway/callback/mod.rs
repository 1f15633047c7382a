//! Webhooks out: tells a receiver that a run has ended. The address is the tenant's choice, so it is checked like a guest's
//! call: by the policy of the run's own version, at the start and at every try. Nothing of an answer but its status is kept,
//! no redirect is followed, and no credential but the signature goes out.

mod message;
mod pause;

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, header};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::transport::{Bounds, Outgoing, Payload, Sent};
use super::{Gateway, Refusal, egress, pace, vault};
use crate::config::ms;
use crate::policy::{Egress, Policy};
use crate::probe::Point;
use crate::store::callback::{self, Due, NewCallback, Tried, Wanted};
use crate::store::{self, storable};
use crate::webhook::standard::Keys;

/// The secret of a callback that names none.
pub const DEFAULT_SECRET: &str = "webhook";

const MAX_URL_BYTES: usize = 2048;

/// What is read of an answer's body, for a receiver that does not like to be hung up on.
const MAX_ANSWER_BYTES: usize = 16 << 10;

const MAX_ERROR_BYTES: usize = 256;

/// What a try may take beside the send itself: the secret, the receiver's name, the record. No first byte is written later.
const BEFORE_SEND: Duration = Duration::from_secs(30);

/// Why there is nothing to send, or no callback to keep.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// For the owner of the callback.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Store(#[from] store::Error),
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Denied(why) | Refusal::Unreachable(why) | Refusal::InvalidRequest(why) => Self::Invalid(why),
            other => Self::Invalid(other.to_string()),
        }
    }
}

/// A message that this node has taken.
#[derive(Debug)]
pub struct Taken {
    due: Due,
    /// By the clock: no first byte is written after it.
    not_after: Duration,
}

impl Taken {
    pub fn tenant(&self) -> &str {
        &self.due.tenant
    }
}

/// Which messages to look for.
#[derive(Debug)]
pub struct Asked {
    pub limit: usize,
    /// Tries under way for each tenant.
    pub busy: BTreeMap<String, i32>,
    /// Tenants whose last try got no answer.
    pub silent: Vec<String>,
    /// Only messages of silent tenants; else only those of others.
    pub of_silent: bool,
    /// Tenants behind this one.
    pub after: String,
}

/// What a look for messages found.
#[derive(Debug)]
pub struct Look {
    pub taken: Vec<Taken>,
    /// Where the next look begins; empty: all tenants have been seen.
    pub next: String,
}

impl Gateway {
    /// Checks what a start asks for: an address that the policy allows, and a secret that is there and can sign.
    pub async fn check_callback(
        &self,
        tenant: &str,
        egress: &Egress,
        url: &str,
        secret: &str,
    ) -> Result<NewCallback, Refused> {
        let invalid = |why: String| Refused::Invalid(format!("callback.url: {why}"));
        let parsed = Url::parse(url).map_err(|e| invalid(format!("must be an absolute http or https URL: {e}")))?;
        if url.len() > MAX_URL_BYTES || parsed.as_str().len() > MAX_URL_BYTES {
            return Err(invalid(format!("must be at most {MAX_URL_BYTES} bytes")));
        }
        if parsed.fragment().is_some() {
            return Err(invalid("must have no fragment".to_owned()));
        }
        let limits = self.limits_of(tenant).await?;
        let origin = egress::authorise(&Method::POST, &parsed, egress, limits.egress.as_ref());
        origin.map_err(|denial| match Refused::from(denial.logged(tenant)) {
            Refused::Invalid(why) => invalid(why),
            other => other,
        })?;
        self.signing_keys(tenant, secret).await.map_err(|refused| match refused {
            Refused::Invalid(why) => Refused::Invalid(format!("callback.secret: {why}")),
            other => other,
        })?;
        Ok(NewCallback { url: parsed.into(), secret: secret.to_owned() })
    }

    /// How many tries this node may have under way.
    pub fn max_callbacks(&self) -> usize {
        self.webhooks.max_sends
    }

    /// How many of them may be tries for silent tenants, so that a place is left for the others.
    pub fn max_silent_callbacks(&self) -> usize {
        self.webhooks.max_sends.saturating_sub(self.webhooks.max_tenant_sends).max(1)
    }

    /// Gives up messages whose time is over and whose tries left no record.
    pub async fn give_up_callbacks(&self) -> Result<(), store::Error> {
        for run_id in callback::give_up(&self.store, self.webhooks.max_hours).await? {
            tracing::warn!(run.id = %run_id, "a callback is given up: no try of it could be recorded");
        }
        Ok(())
    }

    pub async fn take_callbacks(&self, asked: Asked) -> Result<Look, store::Error> {
        let config = &self.webhooks;
        // Read before the database is asked, so that the lease ends later than this.
        let not_after = self.clock.elapsed() + BEFORE_SEND;
        let before_send_ms = u64::try_from(BEFORE_SEND.as_millis()).unwrap_or(u64::MAX);
        let wanted = Wanted {
            limit: i64::try_from(asked.limit).unwrap_or(i64::MAX),
            per_tenant: i32::try_from(config.max_tenant_sends).unwrap_or(i32::MAX),
            busy: asked.busy.into_iter().collect(),
            silent: asked.silent,
            of_silent: asked.of_silent,
            after: asked.after,
            ttl_ms: config.send_ms.saturating_add(2 * before_send_ms),
            max_hours: config.max_hours,
            max_bytes: i32::try_from(config.max_body_bytes).unwrap_or(i32::MAX),
        };
        let look = callback::take_due(&self.store, &wanted).await?;
        let taken = look.due.into_iter().map(|due| Taken { due, not_after });
        Ok(Look { taken: taken.collect(), next: look.next })
    }

    /// Tries once to deliver a message, and records what came of it. What cannot be recorded is tried again when the lease is
    /// over, under the same id. Gives whether there was an answer; none when the database is to blame that there was no try.
    pub async fn deliver(&self, taken: Taken) -> Option<bool> {
        let Due { run_id, tries, .. } = taken.due;
        let tried = self.try_once(&taken).await;
        let answered = tried.as_ref().ok().map(|tried| tried.status.is_some());
        let recorded = match tried {
            Ok(tried) => self.record(&taken.due, &tried).await.map(|state| (state, tried)),
            Err(error) => Err(error),
        };
        match recorded {
            Ok((Some(state), tried)) => {
                let (status, error) = (tried.status, tried.error);
                match state.as_str() {
                    "failed" => tracing::warn!(run.id = %run_id, tries, status, error, "a callback is given up"),
                    _ => tracing::info!(run.id = %run_id, tries, state, status, error, "tried a callback"),
                }
            }
            Ok((None, _)) => tracing::info!(run.id = %run_id, tries, "a callback is no longer this node's to record"),
            Err(error) => {
                tracing::warn!(run.id = %run_id, tries, error = %error, "a callback failed; it is tried again")
            }
        }
        answered
    }

    async fn record(&self, due: &Due, tried: &Tried) -> Result<Option<String>, store::Error> {
        callback::record(&self.store, &due.tenant, due.run_id, due.lease, tried, self.webhooks.max_hours).await
    }

    /// Fails only when the database cannot be reached: then the receiver is not to blame.
    async fn try_once(&self, taken: &Taken) -> Result<Tried, store::Error> {
        let tries = taken.due.tries;
        let sent = match self.send(taken).await {
            Ok(sent) => sent,
            Err(Refused::Store(error)) if error.is_transient() => return Err(error),
            Err(refused) => {
                let again_after_ms = Some(pause::millis(pause::after(tries, rand::random(), &self.webhooks)));
                return Ok(Tried { error: Some(short(&refused.to_string())), again_after_ms, ..Tried::default() });
            }
        };
        self.probe.reach(Point::AfterCallback).await;
        let (status, error) = judged(&sent);
        let again = match (&error, status) {
            (None, _) | (_, Some(410)) => None,
            _ => Some(pause::after(tries, rand::random(), &self.webhooks).max(self.asked_for(&sent))),
        };
        Ok(Tried {
            delivered: error.is_none(),
            status: status.map(i32::from),
            error: error.as_deref().map(short),
            again_after_ms: again.map(pause::millis),
        })
    }

    async fn send(&self, taken: &Taken) -> Result<Sent, Refused> {
        let due = &taken.due;
        let corrupt = store::Error::Corrupt;
        let policy = Policy::parse(&due.policy).map_err(|e| corrupt(format!("a stored policy: {e}")))?;
        let url = Url::parse(&due.url).map_err(|e| corrupt(format!("the URL of a callback: {e}")))?;
        let keys = self.signing_keys(&due.tenant, &due.secret).await?;
        let limits = self.limits_of(&due.tenant).await?;
        let origin = egress::authorise(&Method::POST, &url, &policy.egress, limits.egress.as_ref());
        let origin = origin.map_err(|denial| denial.logged(&due.tenant))?;
        let connect = ms(self.config.connect_ms);
        let target = self.resolver.target(&due.tenant, origin, &policy.egress, connect).await?;
        let body = message::body(due, self.webhooks.max_body_bytes)?;
        let now = self.clock.now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let headers = message::headers(&keys, &due.webhook_id, now.as_secs(), &body)?;
        let bounds = Bounds {
            connect,
            whole: ms(self.webhooks.send_ms),
            not_after: taken.not_after,
            max_response_bytes: MAX_ANSWER_BYTES,
            cancel: CancellationToken::new(),
        };
        let body = Payload::Buffered(Bytes::from(body));
        Ok(self.transport.send(Outgoing { method: Method::POST, url, headers, body }, &target, bounds).await)
    }

    async fn signing_keys(&self, tenant: &str, name: &str) -> Result<Keys, Refused> {
        let secret = self.vault.open_named(tenant, name).await.map_err(|error| match error {
            vault::Error::Store(error) => Refused::Store(error),
            other => Refused::Invalid(other.for_tenant()),
        })?;
        Keys::parse(secret.expose()).map_err(|e| Refused::Invalid(format!("the secret `{name}` {e}")))
    }

    /// How long the receiver wants to be left alone, at most as long as the longest pause.
    fn asked_for(&self, sent: &Sent) -> Duration {
        let Sent::Answer { headers, .. } = sent else { return Duration::ZERO };
        let value = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let asked = value.and_then(|value| pace::retry_after(value, self.clock.now()));
        asked.unwrap_or_default().min(ms(self.webhooks.max_pause_ms))
    }
}

/// The status of the answer, and why the message is not delivered.
fn judged(sent: &Sent) -> (Option<u16>, Option<String>) {
    match sent {
        Sent::Answer { status: status @ 200..=299, .. } => (Some(*status), None),
        Sent::Answer { status: status @ 300..=399, .. } => {
            (Some(*status), Some(format!("answered {status}: redirects are not followed")))
        }
        Sent::Answer { status: 410, .. } => (Some(410), Some("answered 410: it wants no more of this".to_owned())),
        Sent::Answer { status, .. } => (Some(*status), Some(format!("answered {status}"))),
        Sent::Nothing(why) => (None, Some(format!("nothing was sent: {why}"))),
        Sent::TooLate => (None, Some("nothing was sent: this node was too slow".to_owned())),
        Sent::TimedOut => (None, Some("no answer came in time".to_owned())),
        Sent::Lost(why) => (None, Some(why.clone())),
    }
}

fn short(why: &str) -> String {
    storable(&why[..why.floor_char_boundary(MAX_ERROR_BYTES)])
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::gateway::transport::Body;

    fn answer(status: u16) -> Sent {
        Sent::Answer { status, headers: HeaderMap::new(), body: Body::Cut }
    }

    #[test]
    fn only_a_2xx_is_a_delivery_whatever_became_of_its_body() {
        for status in [200, 201, 202, 204, 299] {
            assert_eq!(judged(&answer(status)), (Some(status), None));
        }
        for status in [100, 300, 302, 308, 400, 404, 410, 429, 500, 503] {
            let (told, why) = judged(&answer(status));
            assert!(told == Some(status) && why.is_some_and(|why| why.contains(&status.to_string())), "{status}");
        }
        for sent in [Sent::Nothing("x".to_owned()), Sent::TooLate, Sent::TimedOut, Sent::Lost("x".to_owned())] {
            assert!(matches!(judged(&sent), (None, Some(_))), "{sent:?}");
        }
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        assert_eq!(short("short\0"), "short\u{fffd}");
        assert_eq!(short(&"ä".repeat(200)).len(), 256);
        assert!(short(&format!("x{}", "ä".repeat(200))).len() <= 256);
    }
}
