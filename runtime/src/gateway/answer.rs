//! Answers: as the guest gets them, and as they are recorded. Cookies and credentials are never recorded.

use bytes::Bytes;
use data_encoding::BASE64;
use http::{HeaderMap, HeaderName, header};

use super::Gateway;
use super::attempt::Attempt;
use super::request::{Error, Refusal, Response, Source, Stop};
use super::transport::{Body, Sent};
use super::vault::{self, DataKey};
use crate::config::GatewayConfig;
use crate::key::EffectId;
use crate::store::effect::{Answer, Known};
use crate::store::{self, storable};

/// The headers that are recorded.
const KEPT_HEADERS: [&str; 8] = [
    "content-type",
    "content-language",
    "etag",
    "last-modified",
    "location",
    "retry-after",
    "request-id",
    "x-request-id",
];

/// What came of a send, for the guest.
pub fn shown(sent: Sent, source: &str, effect_id: Option<EffectId>, config: &GatewayConfig) -> Result<Response, Error> {
    let source = if source == "looked-up" { Source::LookedUp } else { Source::Sent };
    match sent {
        Sent::Answer { status, headers, body: Body::Whole(body) } => {
            Ok(Response { status, headers: visible(&headers), body: Some(body), source, effect_id })
        }
        Sent::Answer { status, headers, body: Body::Gone } => {
            Ok(Response { status, headers: visible(&headers), body: None, source, effect_id })
        }
        other => Err(refusal(&other, config.max_response_bytes).into()),
    }
}

fn visible(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let shown = headers.iter().filter(|(name, _)| **name != header::SET_COOKIE);
    shown.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect()
}

/// What the guest is told about a send that gave no whole answer.
pub fn refusal(sent: &Sent, max_response_bytes: usize) -> Refusal {
    match sent {
        Sent::Nothing(why) => Refusal::Unreachable(why.clone()),
        Sent::TooLate => Refusal::Unreachable("the lease or the provider's memory of the key is over".to_owned()),
        Sent::TimedOut => Refusal::TimedOut,
        Sent::Lost(why) => Refusal::ConnectionLost(why.clone()),
        Sent::Answer { body: Body::TooLarge, .. } => Refusal::ResponseTooLarge(max_response_bytes as u64),
        Sent::Answer { .. } => Refusal::ConnectionLost("the answer broke off in the middle of its body".to_owned()),
    }
}

/// The recorded answer of a completed effect.
pub async fn replay(attempt: &Attempt, known: &Known, effect_id: EffectId) -> Result<Response, Error> {
    let corrupt = |what: &str| Error::from(store::Error::Corrupt(what.to_owned()));
    let answer = known.answer.clone().ok_or_else(|| corrupt("a completed effect has no answer"))?;
    let answer = unseal(&attempt.gateway, attempt.tenant(), &effect_id.0, answer).await.map_err(stopped)?;
    let headers: Vec<(String, String)> =
        serde_json::from_str(&answer.headers).map_err(|_| corrupt("the recorded headers of an answer"))?;
    Ok(Response {
        status: u16::try_from(answer.status).map_err(|_| corrupt("the recorded status of an answer"))?,
        headers: headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
        body: answer.body.map(Bytes::from),
        source: match answer.source.as_str() {
            "looked-up" => Source::LookedUp,
            "supplied" => Source::Supplied,
            _ => Source::Replayed,
        },
        effect_id: Some(effect_id),
    })
}

/// A stream of events has no end that could be recorded.
pub fn is_streamed(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("text/event-stream") || kind.starts_with("multipart/x-mixed-replace"))
}

/// The headers to record, as a JSON text of pairs: those of the list, and one that the profile needs.
pub fn kept(headers: &HeaderMap, also: Option<&HeaderName>) -> String {
    let keep = headers.iter().filter(|(name, _)| KEPT_HEADERS.contains(&name.as_str()) || also == Some(name));
    let text = |value: &http::HeaderValue| storable(&String::from_utf8_lossy(value.as_bytes()));
    let pairs: Vec<(&str, String)> = keep.map(|(name, value)| (name.as_str(), text(value))).collect();
    serde_json::to_string(&pairs).unwrap_or_else(|_| "[]".to_owned())
}

/// An answer as it goes into the ledger: sealed, where there is a key.
pub fn seal(key: Option<&DataKey>, effect_id: &[u8], answer: Answer) -> Answer {
    let Some(key) = key else { return answer };
    Answer {
        headers: sealed_text(key, effect_id, "headers", &answer.headers),
        body: answer.body.map(|body| key.seal(effect_id, "body", &body)),
        sealed_with: Some(key.id()),
        ..answer
    }
}

/// A sealed text, as base64.
pub fn sealed_text(key: &DataKey, effect_id: &[u8], place: &str, text: &str) -> String {
    BASE64.encode(&key.seal(effect_id, place, text.as_bytes()))
}

/// Without its key an answer can neither be recorded nor replayed: the attempt ends as with a failing ledger.
pub fn stopped(error: vault::Error) -> Error {
    Error::Stopped(Stop::Ledger(match error {
        vault::Error::Store(error) => error,
        other => store::Error::Corrupt(other.to_string()),
    }))
}

/// An answer as it came. Fails when its key is not to be had or it was changed.
pub async fn unseal(gateway: &Gateway, tenant: &str, effect_id: &[u8], answer: Answer) -> Result<Answer, vault::Error> {
    let Some(key_id) = &answer.sealed_with else { return Ok(answer) };
    let headers = gateway.unsealed_text(tenant, effect_id, "headers", key_id, &answer.headers).await?;
    let body = match &answer.body {
        Some(body) => Some(gateway.vault.unseal(tenant, effect_id, "body", key_id, body).await?),
        None => None,
    };
    Ok(Answer { headers, body, sealed_with: None, ..answer.clone() })
}

impl Gateway {
    /// The key that seals the tenant's answers; none where the node does not seal them.
    pub async fn sealer(&self, tenant: &str) -> Result<Option<DataKey>, vault::Error> {
        match self.config.seal_answers {
            true => self.vault.current(tenant).await.map(Some),
            false => Ok(None),
        }
    }

    pub(super) async fn unsealed_text(
        &self,
        tenant: &str,
        effect_id: &[u8],
        place: &str,
        key_id: &str,
        sealed: &str,
    ) -> Result<String, vault::Error> {
        let tampered = || vault::Error::Tampered(format!("the {place} of an effect"));
        let bytes = BASE64.decode(sealed.as_bytes()).map_err(|_| tampered())?;
        let bytes = self.vault.unseal(tenant, effect_id, place, key_id, &bytes).await?;
        String::from_utf8(bytes).map_err(|_| tampered())
    }
}
