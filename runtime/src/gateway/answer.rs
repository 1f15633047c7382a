//! Answers: as the guest gets them, and as they are recorded. Cookies and credentials are never recorded.

use bytes::Bytes;
use http::HeaderMap;

use super::request::{Error, Refusal, Response, Source};
use super::transport::{Body, Sent};
use crate::key::EffectId;
use crate::store::effect::Known;
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

/// An answer that just came, whole.
pub fn sent(status: u16, headers: &HeaderMap, body: Bytes, effect_id: Option<EffectId>) -> Response {
    let headers = headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()));
    let headers = headers.filter(|(name, _)| name != "set-cookie").collect();
    Response { status, headers, body: Some(body), source: Source::Sent, effect_id }
}

/// What the guest is told about a send that gave no whole answer.
pub fn refusal(sent: &Sent, max_response_bytes: usize) -> Refusal {
    match sent {
        Sent::Nothing(why) => Refusal::Unreachable(why.clone()),
        Sent::TimedOut => Refusal::TimedOut,
        Sent::Lost(why) => Refusal::ConnectionLost(why.clone()),
        Sent::Answer { body: Body::TooLarge, .. } => Refusal::ResponseTooLarge(max_response_bytes as u64),
        Sent::Answer { .. } => Refusal::ConnectionLost("the answer broke off in the middle of its body".to_owned()),
    }
}

/// The recorded answer of a completed effect.
pub fn replay(known: &Known, effect_id: Option<EffectId>) -> Result<Response, Error> {
    let corrupt = |what: &str| Error::from(store::Error::Corrupt(what.to_owned()));
    let answer = known.answer.as_ref().ok_or_else(|| corrupt("a completed effect has no answer"))?;
    let headers: Vec<(String, String)> =
        serde_json::from_str(&answer.headers).map_err(|_| corrupt("the recorded headers of an answer"))?;
    Ok(Response {
        status: u16::try_from(answer.status).map_err(|_| corrupt("the recorded status of an answer"))?,
        headers: headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
        body: answer.body.clone().map(Bytes::from),
        source: match answer.source.as_str() {
            "looked-up" => Source::LookedUp,
            "supplied" => Source::Supplied,
            _ => Source::Replayed,
        },
        effect_id,
    })
}

/// The headers to record, as a JSON text of pairs.
pub fn kept(headers: &HeaderMap) -> String {
    let keep = headers.iter().filter(|(name, _)| KEPT_HEADERS.contains(&name.as_str()));
    let text = |value: &http::HeaderValue| storable(&String::from_utf8_lossy(value.as_bytes()));
    let pairs: Vec<(&str, String)> = keep.map(|(name, value)| (name.as_str(), text(value))).collect();
    serde_json::to_string(&pairs).unwrap_or_else(|_| "[]".to_owned())
}
