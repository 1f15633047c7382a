//! How a message is carried out: pinned with the time for which the server will know its id, published once on a
//! connection of its own, and its acknowledgement read.
//!
//! What remains open: the client library hands the message to a task of its own that writes it. The lease, the server's
//! memory and the cancellation are looked at just before that hand-over, on a connection that is idle and open; a process
//! or a network that stands still in between may write it later. The id protects such a late message for as long as the
//! server remembers ids.

use std::sync::Arc;
use std::time::Duration;

use async_nats::{Client, RequestErrorKind};
use bytes::Bytes;
use http::HeaderMap;
use serde::{Deserialize, Serialize};

use super::message::{Checked, ID_HEADER};
use super::server::{self, Login, NoWindow};
use super::windows::{Place, Window};
use super::{Kept, body};
use crate::config::ms;
use crate::effect::{Learned, Resend};
use crate::gateway::attempt::Attempt;
use crate::gateway::plan::{Carried, Pins, Sending};
use crate::gateway::request::{Error, Refusal};
use crate::gateway::resolver::Target;
use crate::gateway::transport::{Body, Sent};
use crate::gateway::vault;
use crate::key::{self, EffectId};
use crate::policy::Messaging;
use crate::store::ledger;

/// The server's number for "this id is being worked on".
const ID_IN_USE: u16 = 10158;

/// A message with the server that it goes to.
pub struct Publish {
    pub message: Checked,
    pub policy: Messaging,
    pub target: Target,
}

/// What a server may answer to a message.
#[derive(Deserialize)]
struct Word {
    error: Option<Refused>,
    #[serde(flatten)]
    kept: Option<Kept>,
}

/// The server kept nothing.
#[derive(Debug, Deserialize, Serialize)]
struct Refused {
    /// As an HTTP status.
    code: u16,
    #[serde(default)]
    err_code: u16,
    #[serde(default)]
    description: String,
}

impl Publish {
    /// Asks the server how long it remembers ids, unless the ledger has the effect: then the first claim's answer is pinned
    /// there, and a replay must not need the network.
    pub async fn pins(&self, attempt: &Arc<Attempt>, effect_id: EffectId, issued: Option<&str>) -> Result<Pins, Error> {
        let known = ledger::find(&attempt.gateway.store, attempt.tenant(), &effect_id.0).await?.is_some();
        // If the row went away meanwhile, the claim pins that nothing is remembered.
        let window = if known { Duration::ZERO } else { self.window(attempt).await?.remembers };
        Ok(Pins {
            wire_key: Some(issued.map_or_else(|| key::wire_key(&effect_id).text(), str::to_owned)),
            carrier: Some(serde_json::json!({ "message_header": ID_HEADER }).to_string()),
            window_ms: Some(i64::try_from(window.as_millis()).unwrap_or(i64::MAX)),
            // The server counts from when the first message arrived, which is later: this errs on the safe side.
            window_from: "first",
            resend: Some(Resend::Keyed),
            ..Pins::default()
        })
    }

    /// Refuses a message whose credential cannot be had.
    pub async fn check(&self, attempt: &Attempt) -> Result<(), Error> {
        self.login(attempt).await.map(drop)
    }

    async fn login(&self, attempt: &Attempt) -> Result<Login, Error> {
        let user = self.policy.user.clone();
        let Some(name) = &self.policy.secret else { return Ok(Login { user, secret: None }) };
        let opened = attempt.gateway.vault.open_named(attempt.tenant(), name).await;
        let secret = opened.map_err(|e| match e {
            vault::Error::Store(e) => Error::from(e),
            other => Refusal::Denied(other.for_tenant()).into(),
        })?;
        Ok(Login { user, secret: Some(secret) })
    }

    async fn window(&self, attempt: &Attempt) -> Result<Window, Error> {
        let gateway = &attempt.gateway;
        let place = Place {
            tenant: attempt.tenant().to_owned(),
            server: self.policy.server.to_string(),
            user: self.policy.user.clone(),
            secret: self.policy.secret.clone(),
            subject: self.message.subject.clone(),
        };
        let now = gateway.clock.elapsed();
        let window = match gateway.messaging.windows.get(&place, now) {
            Some(window) => window,
            None => {
                let window = self.asked(attempt).await?;
                gateway.messaging.windows.put(place, window.clone(), now);
                window
            }
        };
        check_size(&self.message, window.max_payload)?;
        Ok(window)
    }

    async fn asked(&self, attempt: &Attempt) -> Result<Window, Error> {
        let limit = ms(attempt.gateway.config.connect_ms);
        let asking = async {
            let client = self.connect(attempt).await?.map_err(Refusal::Unreachable)?;
            let window = server::window(&client, &self.message.subject, limit).await;
            window.map_err(|why| match why {
                NoWindow::NoStream(why) => Refusal::InvalidRequest(format!("{}: {why}", self.message.subject)).into(),
                NoWindow::Unreachable(why) => Refusal::Unreachable(why).into(),
            })
        };
        tokio::select! {
            biased;
            window = asking => window,
            () = attempt.closing.cancelled() => Err(Refusal::Unreachable("the attempt was stopped".to_owned()).into()),
        }
    }

    async fn connect(&self, attempt: &Attempt) -> Result<Result<Client, String>, Error> {
        let login = self.login(attempt).await?;
        let limit = ms(attempt.gateway.config.connect_ms);
        Ok(attempt.gateway.messaging.connect(&self.target, &login, limit).await)
    }

    /// Publishes once.
    pub async fn carry_out(&self, sending: Sending<'_>) -> Result<Carried, Error> {
        let attempt = sending.attempt;
        let connected = tokio::select! {
            biased;
            connected = self.connect(attempt) => connected?,
            () = attempt.closing.cancelled() => Err("the attempt was stopped".to_owned()),
        };
        let client = match connected {
            Ok(client) => client,
            Err(why) => return Ok(not_sent(why)),
        };
        check_size(&self.message, client.server_info().max_payload)?;
        if attempt.gateway.clock.elapsed() >= sending.not_after {
            return Ok(not_sent("the lease or the server's memory of the message id is over".to_owned()));
        }
        if attempt.closing.is_cancelled() || !server::is_open(&client) {
            return Ok(not_sent("the connection was closed before the message was sent".to_owned()));
        }
        let id = sending.known.wire_key.as_deref().unwrap_or_default();
        Ok(self.exchange(&client, id, attempt).await)
    }

    async fn exchange(&self, client: &Client, id: &str, attempt: &Attempt) -> Carried {
        let request = async_nats::Request::new()
            .headers(self.message.headers_with(id))
            .payload(self.message.payload.clone())
            .timeout(None);
        let limit = ms(attempt.gateway.config.default_send_ms);
        let unknown = |sent| Carried::new(sent, Learned::Unknown);
        let answer = tokio::select! {
            biased;
            answer = client.send_request(self.message.subject.clone(), request) => answer,
            () = attempt.closing.cancelled() => return unknown(Sent::Lost("the attempt was stopped".to_owned())),
            () = tokio::time::sleep(limit) => return unknown(Sent::TimedOut),
        };
        match answer {
            Ok(answer) => read(&answer.payload),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => refused(&Refused {
                    code: 503,
                    err_code: 0,
                    description: "no stream takes this subject any more".to_owned(),
                }),
                RequestErrorKind::InvalidSubject | RequestErrorKind::MaxPayloadExceeded => not_sent(error.to_string()),
                _ => unknown(Sent::Lost("the connection was closed before an acknowledgement came".to_owned())),
            },
        }
    }
}

fn check_size(message: &Checked, max_payload: usize) -> Result<(), Refusal> {
    if message.size() <= max_payload {
        return Ok(());
    }
    Err(Refusal::InvalidRequest(format!(
        "the message has {} bytes, the server's limit is {max_payload}",
        message.size()
    )))
}

/// An answer that is neither an acknowledgement nor a refusal comes from somebody else who listens at the subject.
fn read(answer: &[u8]) -> Carried {
    match serde_json::from_slice(answer) {
        Ok(Word { error: Some(error), .. }) => refused(&error),
        Ok(Word { kept: Some(kept), .. }) => Carried::new(answered(200, body(&kept)), Learned::Answer),
        _ => Carried::new(Sent::Lost("the answer was no acknowledgement of a stream".to_owned()), Learned::Unknown),
    }
}

/// The server says itself that it kept nothing.
fn refused(error: &Refused) -> Carried {
    if error.err_code == ID_IN_USE {
        return Carried::new(answered(409, Bytes::new()), Learned::InFlight);
    }
    let status = if (400..600).contains(&error.code) { error.code } else { 500 };
    let text = match error.err_code {
        0 => error.description.clone(),
        number => format!("{} ({number})", error.description),
    };
    Carried::new(answered(status, text.into()), Learned::NotApplied)
}

fn not_sent(why: String) -> Carried {
    Carried::new(Sent::Nothing(why), Learned::NotApplied)
}

fn answered(status: u16, body: Bytes) -> Sent {
    Sent::Answer { status, headers: HeaderMap::new(), body: Body::Whole(body) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(answer: &str) -> (Learned, Option<u16>, String) {
        let carried = read(answer.as_bytes());
        let status = match &carried.sent {
            Sent::Answer { status, .. } => Some(*status),
            _ => None,
        };
        (carried.learned, status, String::from_utf8_lossy(carried.sent.body()).into_owned())
    }

    #[test]
    fn an_acknowledgement_is_an_answer_and_a_refusal_surely_kept_nothing() {
        let kept = told(r#"{"stream":"ORDERS","seq":7,"domain":"hub"}"#);
        assert_eq!(kept, (Learned::Answer, Some(200), r#"{"stream":"ORDERS","seq":7,"duplicate":false}"#.to_owned()));
        let full =
            r#"{"error":{"code":503,"err_code":10077,"description":"maximum messages exceeded"},"stream":"S","seq":0}"#;
        assert_eq!(told(full), (Learned::NotApplied, Some(503), "maximum messages exceeded (10077)".to_owned()));
        let in_use = r#"{"error":{"code":409,"err_code":10158,"description":"duplicate message id is in process"}}"#;
        assert_eq!(told(in_use).0, Learned::InFlight);
    }

    #[test]
    fn an_answer_of_somebody_else_tells_nothing() {
        for answer in ["", "ok", "{}", "[]", r#"{"stream":"S"}"#] {
            assert_eq!(told(answer).0, Learned::Unknown, "{answer}");
        }
    }
}
