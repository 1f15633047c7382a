//! `deedbox:activity/messaging`.

use bytes::Bytes;

use super::bindings::deedbox::activity::messaging as wit;
use super::guest::Guest;
use super::http::{identity_in, on_unknown_in, source_out};
use crate::gateway::messaging::{Message, Options, Published};
use crate::gateway::{Error, Refusal};

impl wit::Host for Guest {
    async fn publish(
        &mut self,
        subject: String,
        payload: Vec<u8>,
        options: wit::Options,
    ) -> wasmtime::Result<Result<wit::Published, wit::Error>> {
        let attempt = self.attempt("publish")?;
        let message = Message { subject, headers: options.headers, payload: Bytes::from(payload) };
        let options =
            Options { identity: identity_in(options.identity), on_unknown: on_unknown_in(options.on_unknown) };
        match attempt.publish(message, options).await {
            Ok(published) => Ok(published_out(published)),
            Err(Error::Refused(refusal)) => Ok(Err(refusal_out(refusal))),
            Err(Error::Stopped(stop)) => Err(stop.into()),
        }
    }
}

fn published_out(published: Published) -> Result<wit::Published, wit::Error> {
    let kept = published.kept().map_err(wit::Error::Refused)?;
    Ok(wit::Published {
        stream: kept.stream,
        sequence: kept.seq,
        duplicate: kept.duplicate,
        message_id: published.message_id,
        source: source_out(published.response.source),
        effect_id: published.response.effect_id.map(|id| id.to_string()).unwrap_or_default(),
    })
}

fn refusal_out(refusal: Refusal) -> wit::Error {
    match refusal {
        Refusal::Denied(why) => wit::Error::Denied(why),
        Refusal::EffectMismatch(why) => wit::Error::EffectMismatch(why),
        Refusal::InFlight => wit::Error::InFlight,
        Refusal::OutcomeUnknown(why) => wit::Error::OutcomeUnknown(why),
        Refusal::Unreachable(why) => wit::Error::Unreachable(why),
        Refusal::TimedOut => wit::Error::TimedOut,
        Refusal::InvalidRequest(why) => wit::Error::InvalidRequest(why),
        Refusal::ConnectionLost(why) => wit::Error::ConnectionLost(why),
        too_large @ Refusal::ResponseTooLarge(_) => wit::Error::ConnectionLost(too_large.to_string()),
    }
}
