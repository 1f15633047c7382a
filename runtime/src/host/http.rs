//! `deedbox:activity/http`.

use bytes::Bytes;

use super::bindings::deedbox::activity::http as wit;
use super::guest::Guest;
use crate::config::ms;
use crate::effect::OnUnknown;
use crate::gateway::{Error, Identity, Lookup, LookupCondition, Options, Refusal, Request, Response, Source};

impl wit::Host for Guest {
    async fn send(
        &mut self,
        request: wit::Request,
        options: wit::Options,
    ) -> wasmtime::Result<Result<wit::Response, wit::Error>> {
        let attempt = self.attempt("send")?;
        match attempt.send(request_in(request), options_in(options)).await {
            Ok(response) => Ok(Ok(response_out(response))),
            Err(Error::Refused(refusal)) => Ok(Err(refusal_out(refusal))),
            Err(Error::Stopped(stop)) => Err(stop.into()),
        }
    }
}

fn request_in(request: wit::Request) -> Request {
    Request {
        method: request.method,
        url: request.url,
        headers: request.headers,
        body: Bytes::from(request.body),
        upload: None,
        connect: None,
        timeout: request.timeout_ms.map(|timeout| ms(u64::from(timeout))),
    }
}

fn options_in(options: wit::Options) -> Options {
    Options {
        identity: identity_in(options.identity),
        on_unknown: on_unknown_in(options.on_unknown),
        lookup: options.lookup.map(lookup_in),
    }
}

pub(super) fn identity_in(identity: wit::Identity) -> Identity {
    match identity {
        wit::Identity::Positional => Identity::Positional,
        wit::Identity::Named(name) => Identity::Named(name),
        wit::Identity::Business(business) => Identity::Business { operation: business.operation, key: business.key },
    }
}

pub(super) fn on_unknown_in(on_unknown: wit::OnUnknown) -> Option<OnUnknown> {
    match on_unknown {
        wit::OnUnknown::ProviderDefault => None,
        wit::OnUnknown::Ask => Some(OnUnknown::Ask),
        wit::OnUnknown::AtMostOnce => Some(OnUnknown::AtMostOnce),
        wit::OnUnknown::AtLeastOnce => Some(OnUnknown::AtLeastOnce),
    }
}

fn lookup_in(lookup: wit::Lookup) -> Lookup {
    let condition =
        |own: wit::Condition| LookupCondition { statuses: own.statuses, pointer: own.pointer, equals: own.equals };
    Lookup {
        request: request_in(lookup.request),
        found: condition(lookup.found),
        absent: condition(lookup.absent),
        settle: ms(u64::from(lookup.settle_ms)),
    }
}

fn response_out(response: Response) -> wit::Response {
    wit::Response {
        status: response.status,
        headers: response.headers,
        body: response.body.map_or(wit::Body::NotKept, |bytes| wit::Body::Bytes(bytes.into())),
        source: source_out(response.source),
        effect_id: response.effect_id.map(|id| id.to_string()),
    }
}

pub(super) fn source_out(source: Source) -> wit::Source {
    match source {
        Source::Sent => wit::Source::Sent,
        Source::Replayed => wit::Source::Replayed,
        Source::LookedUp => wit::Source::LookedUp,
        Source::Supplied => wit::Source::Supplied,
    }
}

fn refusal_out(refusal: Refusal) -> wit::Error {
    match refusal {
        Refusal::Denied(why) => wit::Error::Denied(why),
        Refusal::EffectMismatch(why) => wit::Error::EffectMismatch(why),
        Refusal::InFlight => wit::Error::InFlight,
        Refusal::OutcomeUnknown(why) => wit::Error::OutcomeUnknown(why),
        Refusal::Unreachable(why) => wit::Error::Unreachable(why),
        Refusal::TimedOut => wit::Error::TimedOut,
        Refusal::ResponseTooLarge(limit) => wit::Error::ResponseTooLarge(limit),
        Refusal::InvalidRequest(why) => wit::Error::InvalidRequest(why),
        Refusal::ConnectionLost(why) => wit::Error::ConnectionLost(why),
    }
}
