//! Look-ups: asks a provider about an effect whose outcome is not known, and settles the question by what it says. Only
//! reads; what cannot be told stays open.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

use super::caller::{Caller, masked};
use super::provider::{Condition, PinnedLookup, Pointer, Says};
use super::request::{self, Lookup, LookupCondition, Options, Refusal};
use super::transport::{Body, Bounds, Outgoing, Payload, Sent};
use super::{Error, Gateway, answer, egress};
use crate::config::{GatewayConfig, ms};
use crate::key::EffectId;
use crate::policy::Policy;
use crate::store::effect::Answer;
use crate::store::resolution::{self, Due, Outcome, Resolution, Resolved};

/// Questions taken at once.
const BATCH: i64 = 16;

/// What came of one look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Looked {
    Resolved(Outcome),
    Open,
}

/// A guest's look-up as the ledger keeps it.
pub fn pinned(lookup: &Lookup, config: &GatewayConfig) -> Result<PinnedLookup, Refusal> {
    let invalid = |why: String| Refusal::InvalidRequest(format!("look-up: {why}"));
    let request = request::check(lookup.request.clone(), &Options::default(), config)?;
    if !matches!(request.method, Method::GET | Method::HEAD | Method::POST) {
        return Err(invalid("it must be a read: GET, HEAD or POST".to_owned()));
    }
    let text = |value: &HeaderValue| {
        value.to_str().map(str::to_owned).map_err(|_| invalid("its headers must be text".to_owned()))
    };
    let headers = request.headers.iter().map(|(name, value)| Ok((name.as_str().to_owned(), text(value)?)));
    let body = String::from_utf8(request.body.to_vec()).map_err(|_| invalid("its body must be text".to_owned()))?;
    Ok(PinnedLookup {
        method: request.method.to_string(),
        url: request.url.to_string(),
        headers: headers.collect::<Result<_, Refusal>>()?,
        body: (!body.is_empty()).then_some(body),
        exact: true,
        found: condition(&lookup.found).map_err(invalid)?,
        absent: Some(condition(&lookup.absent).map_err(invalid)?),
        settle_ms: u64::try_from(lookup.settle.as_millis()).unwrap_or(u64::MAX),
        answer: None,
    })
}

fn condition(own: &LookupCondition) -> Result<Condition, String> {
    if own.statuses.is_empty() {
        return Err("a condition names at least one status".to_owned());
    }
    let pointer = own.pointer.clone().map(Pointer::try_from).transpose()?;
    Ok(Condition { statuses: own.statuses.clone(), pointer, equals: own.equals.clone(), ..Condition::default() })
}

impl PinnedLookup {
    pub fn method_parsed(&self) -> Method {
        Method::from_bytes(self.method.as_bytes()).unwrap_or(Method::GET)
    }

    pub fn url_parsed(&self) -> Result<Url, Refusal> {
        Url::parse(&self.url).map_err(|e| Refusal::InvalidRequest(format!("look-up: the URL cannot be read: {e}")))
    }
}

impl Gateway {
    /// Asks about the questions that are due, and gives their number.
    pub async fn look_up_due(self: &Arc<Self>) -> Result<usize, crate::store::Error> {
        let due = resolution::take_due(&self.store, BATCH, self.config.max_look_up_pause_ms).await?;
        let number = due.len();
        let looks = due.into_iter().map(|due| {
            let gateway = self.clone();
            tokio::spawn(async move {
                let effect = EffectId(due.effect_id.clone().try_into().unwrap_or_default());
                match gateway.look_up(&due).await {
                    Ok(looked) => tracing::info!(effect.id = %effect, looks = due.looks, ?looked, "looked up"),
                    Err(error) => {
                        tracing::warn!(effect.id = %effect, error = %error, "a look-up failed; it is tried again")
                    }
                }
            })
        });
        futures_util::future::join_all(looks.collect::<Vec<_>>()).await;
        Ok(number)
    }

    async fn look_up(&self, due: &Due) -> Result<Looked, Error> {
        let corrupt = |what: &str| Error::from(crate::store::Error::Corrupt(what.to_owned()));
        let effect_id: [u8; 32] = due.effect_id.clone().try_into().map_err(|_| corrupt("an effect's id"))?;
        let lookup = match &due.lookup_sealed_with {
            None => due.lookup.clone(),
            Some(key) => self
                .unsealed_text(&due.tenant, &effect_id, "lookup", key, &due.lookup)
                .await
                .map_err(answer::stopped)?,
        };
        let lookup: PinnedLookup = serde_json::from_str(&lookup).map_err(|_| corrupt("a look-up"))?;
        let lookup = lookup.at(due.first_sent_at).map_err(Refusal::InvalidRequest)?;
        let in_flight_ms = self.config.max_send_ms.saturating_add(lookup.settle_ms);
        let left_ms = i64::try_from(in_flight_ms).unwrap_or(i64::MAX).saturating_sub(due.open_ms);
        let store = &self.store;
        // Sealed look-ups cannot be compared: then nobody knows whether there is another.
        let twin =
            || async { Ok::<_, Error>(due.lookup_sealed_with.is_some() || resolution::has_twin(store, due).await?) };
        if !lookup.exact && twin().await? {
            return Ok(Looked::Open);
        }
        let sealer = self.sealer(&due.tenant).await.map_err(answer::stopped)?;
        let (status, headers, body) = self.ask(due, &lookup).await?;
        let (outcome, answer) = match lookup.says(status, &headers, &body, true) {
            Says::Found(body) => {
                (Outcome::Happened, Some(answer::seal(sealer.as_ref(), &effect_id, self.found(&headers, body))))
            }
            // It may still arrive: whoever believes in its absence now could be wrong.
            Says::Absent if left_ms > 0 => {
                resolution::look_again(store, &due.tenant, &due.effect_id, left_ms).await?;
                return Ok(Looked::Open);
            }
            Says::Absent => (Outcome::DidNotHappen, None),
            Says::CannotTell => return Ok(Looked::Open),
        };
        let note = format!("{} {} answered {status}", lookup.method, without_query(&lookup.url));
        let by = "look-up".to_owned();
        let resolution = Resolution { effect_id, outcome, by, note, answer, in_flight_ms };
        match resolution::resolve(store, &due.tenant, &resolution).await? {
            Resolved::Done(_) => Ok(Looked::Resolved(outcome)),
            _ => Ok(Looked::Open),
        }
    }

    async fn ask(&self, due: &Due, lookup: &PinnedLookup) -> Result<(u16, HeaderMap, Bytes), Error> {
        let policy = self.policy_of(due).await?;
        let caller = Caller { gateway: self, tenant: &due.tenant, policy: &policy };
        let url = lookup.url_parsed()?;
        let limits = self.limits_of(&due.tenant).await?;
        let method = lookup.method_parsed();
        let origin = egress::authorise(&method, &url, &policy.egress, limits.egress.as_ref());
        let origin = origin.map_err(|denial| denial.logged(&due.tenant))?;
        let profile = caller.profile_at(&origin).await?;
        let at_most = ms(self.config.default_send_ms);
        let target = self.resolver.target(&due.tenant, origin, &policy.egress, at_most).await?;
        let mut headers = HeaderMap::new();
        for (name, value) in &lookup.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).ok();
            if let (Some(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                headers.append(name, value);
            }
        }
        let body = Payload::Buffered(Bytes::from(lookup.body.clone().unwrap_or_default()));
        let (outgoing, secret) =
            caller.credentialed(&profile, &target, Outgoing { method, url, headers, body }).await?;
        let config = &self.config;
        let bounds = Bounds {
            connect: ms(config.connect_ms),
            whole: ms(config.default_send_ms),
            not_after: self.clock.elapsed() + ms(config.max_send_ms),
            max_response_bytes: config.max_response_bytes,
            cancel: tokio_util::sync::CancellationToken::new(),
        };
        match masked(self.transport.send(outgoing, &target, bounds).await, secret.as_ref()) {
            Sent::Answer { status, headers, body: Body::Whole(body) } => Ok((status, headers, body)),
            other => Err(answer::refusal(&other, config.max_response_bytes).into()),
        }
    }

    /// The policy of the run that claimed the effect first.
    async fn policy_of(&self, due: &Due) -> Result<Policy, Error> {
        let gone =
            || Error::from(Refusal::Denied("the run that made the effect is gone, and its policy with it".to_owned()));
        let text =
            crate::store::activity::policy_of_run(&self.store, &due.tenant, due.run_id).await?.ok_or_else(gone)?;
        let corrupt = |why| Error::from(crate::store::Error::Corrupt(format!("a stored policy: {why}")));
        Policy::parse(&text).map_err(corrupt)
    }

    fn found(&self, headers: &HeaderMap, body: Vec<u8>) -> Answer {
        Answer {
            status: 200,
            headers: answer::kept(headers, None),
            body: (body.len() <= self.config.max_kept_body_bytes).then_some(body),
            source: "looked-up".to_owned(),
            sealed_with: None,
        }
    }
}

/// The query may hold what is not for the record.
fn without_query(url: &str) -> &str {
    url.split_once('?').map_or(url, |(before, _)| before)
}
