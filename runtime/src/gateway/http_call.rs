//! An effect, or a read, that is one HTTP request: what its provider's profile says about it, the request as it goes
//! out, and how its answer is read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};

use super::attempt::{Attempt, lock};
use super::caller::{Caller, masked, too_large_to};
use super::plan::{Carried, Pins, Sending};
use super::provider::{
    AlreadyDone, Answers, Asked, Carrier, KeyRule, Operation, OwnValue, Parts, Pin, PinnedLookup, Profile, Values,
    fill, fill_url,
};
use super::request::{Checked, Error, Identity, Options, Refusal, Stop};
use super::resolver::Target;
use super::transport::{Body, Bounds, Outgoing, Payload, Sent};
use super::upload::Upload;
use super::{digest, egress, vault};
use crate::config::ms;
use crate::effect::{self, Learned, Reading, Resend};
use crate::key::{self, EffectId};
use crate::policy::GuestKeys;
use crate::store;
use crate::store::effect::Known;

/// A checked request with the provider it goes to.
pub struct HttpCall {
    pub request: Checked,
    pub profile: Arc<Profile>,
    pub target: Target,
    /// The place of the request's operation in the profile.
    operation: Option<usize>,
    captures: BTreeMap<String, String>,
    /// What the guest has put where the provider takes its key.
    own_key: Option<String>,
    lookup: Option<PinnedLookup>,
}

/// An answer as the profile reads it.
struct Read {
    learned: Learned,
    stored_failure: bool,
    proves_nothing: bool,
}

/// How a key that the guest has set itself names the effect.
pub struct OwnName {
    pub name: String,
    /// It is a key of the run: it goes on the wire as it is.
    pub issued: bool,
}

impl HttpCall {
    pub fn new(request: Checked, profile: Arc<Profile>, target: Target, lookup: Option<PinnedLookup>) -> Self {
        let asked =
            Asked { method: &request.method, url: &request.url, headers: &request.headers, body: &request.body };
        let matched = profile.operation(asked);
        let (operation, captures) = matched.map_or((None, BTreeMap::new()), |(at, captures)| (Some(at), captures));
        let rule = operation.and_then(|at| profile.operations[at].key.as_ref());
        let own_key = rule.and_then(|rule| rule.carrier.read(&request.url, &request.headers, &request.body));
        Self { request, profile, target, operation, captures, own_key, lookup }
    }

    /// Refuses a streamed body where the profile would have to look into it.
    pub fn check_upload(&self) -> Result<(), Refusal> {
        let Checked { method, url, headers, .. } = &self.request;
        let asked = Asked { method, url, headers, body: &[] };
        let tried = self.operation.unwrap_or(self.profile.operations.len());
        let unsure = self.profile.operations[..tried].iter().any(|operation| operation.hangs_on_body(asked));
        match self.key_rule() {
            _ if self.request.upload.is_none() => Ok(()),
            _ if unsure => Err(too_large_to("the provider's profile tells by the body what the request is")),
            Some(rule) if rule.carrier.needs_body() => Err(too_large_to("the provider takes its key in the body")),
            _ if self.pin().is_some() => Err(too_large_to("the provider's profile pins a version of the answer")),
            _ => Ok(()),
        }
    }

    fn operation(&self) -> Option<&Operation> {
        self.operation.map(|at| &self.profile.operations[at])
    }

    fn key_rule(&self) -> Option<&KeyRule> {
        self.operation()?.key.as_ref()
    }

    fn answers(&self) -> &Answers {
        self.operation().and_then(|operation| operation.answers.as_ref()).unwrap_or(&self.profile.answers)
    }

    /// What the guest has put in the key's place stays there: a precondition of its own.
    fn own_stays(&self, rule: &KeyRule) -> bool {
        rule.own == OwnValue::Keep && self.own_key.is_some()
    }

    pub fn pin(&self) -> Option<&Pin> {
        self.operation()?.pin.as_ref()
    }

    /// Whether it changes the world: by its method, unless the profile or the call says otherwise. A call that is given a
    /// name says so.
    pub fn is_effect(&self, options: &Options) -> bool {
        let named = !matches!(options.identity, Identity::Positional);
        let declared = self.operation().and_then(|operation| operation.effect);
        named || self.pin().is_some() || declared.unwrap_or(!self.request.is_read())
    }

    /// The effect that a key in the request names, where the guest says nothing else.
    pub fn own_name(&self, attempt: &Attempt) -> Option<OwnName> {
        let name = self.own_key.clone()?;
        let rule = self.key_rule()?;
        if rule.is_bare() && lock(&attempt.issued).contains(&name) {
            return Some(OwnName { name, issued: true });
        }
        let trusted = attempt.policy.guest_keys == GuestKeys::Trust && rule.is_bare();
        (trusted && key::check_name(&name).is_ok()).then_some(OwnName { name, issued: false })
    }

    /// Over the request without its key: client libraries invent a new one for every call.
    pub fn digest(&self) -> Result<[u8; 32], Refusal> {
        let names = self.profile.digest_header_names();
        let Some(rule) = self.key_rule() else { return Ok(digest::request_digest(&self.request, &names)) };
        let mut bare = self.request.clone();
        let parts = Parts { url: &mut bare.url, headers: &mut bare.headers, body: &mut bare.body };
        if !self.own_stays(rule) {
            rule.carrier.strip(parts).map_err(Refusal::InvalidRequest)?;
        }
        Ok(digest::request_digest(&bare, &names))
    }

    pub fn pins(&self, effect_id: EffectId, issued: Option<&str>) -> Result<Pins, String> {
        let rule = self.key_rule();
        let key = key::wire_key(&effect_id);
        let stays = rule.is_some_and(|rule| self.own_stays(rule));
        let wire_key = match (rule, issued) {
            (Some(_), Some(issued)) => Some(issued.to_owned()),
            (Some(_), None) if stays => self.own_key.clone(),
            (Some(rule), None) => Some(rule.value(&key, &self.captures)?),
            (None, _) => None,
        };
        // Inside a template the key is a part of what goes on the wire; a look-up may need just that part.
        let bare_key = match rule {
            Some(rule) if !rule.is_bare() => Some(key.render(rule.rendering.0)),
            _ => wire_key.clone(),
        };
        let injected = rule.filter(|_| !stays);
        let also =
            injected.filter(|rule| !rule.also.is_empty()).map(|rule| rule.more_headers(effect_id)).transpose()?;
        let json = |e: serde_json::Error| e.to_string();
        Ok(Pins {
            carrier: injected.map(|rule| serde_json::to_string(&rule.carrier)).transpose().map_err(json)?,
            also: also.as_ref().map(serde_json::to_string).transpose().map_err(json)?,
            window_ms: rule.and_then(KeyRule::window).and_then(|window| i64::try_from(window.as_millis()).ok()),
            window_from: rule.map_or("first", |rule| rule.counted_from.as_str()),
            resend: Some(self.resend()),
            lookup: self.pinned_lookup(effect_id, bare_key.as_deref())?,
            wire_key,
        })
    }

    fn resend(&self) -> Resend {
        match self.key_rule() {
            _ if self.request.is_idempotent() => Resend::Idempotent,
            // A read that the call names is recorded, and may be made again; one that the profile calls an effect may not.
            _ if self.request.is_read() && self.operation().and_then(|o| o.effect) != Some(true) => Resend::Idempotent,
            Some(rule) if rule.honoured => Resend::Keyed,
            _ => Resend::Unsafe,
        }
    }

    /// The guest's own look-up before the profile's. A profile's that the request gives nothing for is left out.
    fn pinned_lookup(&self, effect_id: EffectId, key: Option<&str>) -> Result<Option<String>, String> {
        let effect = effect_id.to_string();
        let values = Values {
            key,
            effect: Some(&effect),
            url: Some(&self.request.url),
            captures: Some(&self.captures),
            request: Some(&self.request.body),
            ..Values::default()
        };
        let origin = self.request.url.origin().ascii_serialization();
        let of_profile = || {
            let operation = self.operation()?;
            // With a value of the guest's own the host adds nothing that a look-up could know the effect by.
            let recipe =
                operation.lookup.as_ref().filter(|_| !operation.key.as_ref().is_some_and(|key| self.own_stays(key)))?;
            recipe.pin(&origin, &values).inspect_err(|why| tracing::debug!(why, "no look-up for this request")).ok()
        };
        let lookup = self.lookup.clone().or_else(of_profile);
        lookup.map(|lookup| serde_json::to_string(&lookup)).transpose().map_err(|e| e.to_string())
    }

    /// Refuses a call whose credential cannot be had.
    pub async fn check_credential(&self, attempt: &Arc<Attempt>) -> Result<(), Error> {
        self.outgoing(attempt, None, None).await.map(drop)
    }

    /// A call that is not claimed, answered as it comes.
    pub async fn read(&self, attempt: &Arc<Attempt>) -> Result<Sent, Error> {
        let (outgoing, secret) = self.outgoing(attempt, None, None).await?;
        Ok(self.transmit(attempt, outgoing, secret.as_ref(), attempt.lease.deadline()).await)
    }

    /// A read of the version that an earlier answer named.
    pub async fn read_pinned(&self, attempt: &Arc<Attempt>, version: Option<&str>) -> Result<Sent, Error> {
        let (outgoing, secret) = self.outgoing(attempt, None, version).await?;
        Ok(self.transmit(attempt, outgoing, secret.as_ref(), attempt.lease.deadline()).await)
    }

    pub async fn carry_out(&self, sending: Sending<'_>) -> Result<Carried, Error> {
        let (outgoing, secret) = self.outgoing(sending.attempt, Some(sending.known), None).await?;
        let sent = self.transmit(sending.attempt, outgoing, secret.as_ref(), sending.not_after).await;
        let read = self.learned(&sent, sending.earlier_unknown);
        let pin = self.pin();
        let carried = Carried {
            stored_failure: read.stored_failure,
            proves_nothing: read.proves_nothing,
            body_digest: self.request.upload.as_ref().and_then(Upload::digest),
            kept_header: pin.map(|pin| pin.header.0.clone()),
            keep_body: pin.is_none(),
            ..Carried::new(sent, read.learned)
        };
        match self.proof(&carried.sent, sending.earlier_unknown) {
            Some(proof) => self.proven(proof, carried, sending).await,
            None => Ok(carried),
        }
    }

    /// The request as it goes out: the guest's, with the pinned key and the tenant's credential.
    async fn outgoing(
        &self,
        attempt: &Arc<Attempt>,
        known: Option<&Known>,
        version: Option<&str>,
    ) -> Result<(Outgoing, Option<vault::Secret>), Error> {
        let request = &self.request;
        let (mut url, mut headers, mut body) = (request.url.clone(), request.headers.clone(), request.body.clone());
        if let Some(known) = known {
            put_key(known, request.upload.is_some(), Parts { url: &mut url, headers: &mut headers, body: &mut body })?;
        }
        if let (Some(pin), Some(version)) = (self.pin(), version) {
            url.query_pairs_mut().append_pair(&pin.query, version);
        }
        // A key in the path, or a path that the profile names, is not what was judged before.
        egress::still(&request.method, &url, &self.target.origin, &attempt.policy.egress)
            .map_err(|denial| attempt.denied(denial))?;
        let caller = Caller { gateway: &attempt.gateway, tenant: attempt.tenant(), policy: &attempt.policy };
        let body = request.upload.clone().map_or(Payload::Buffered(body), Payload::Streamed);
        let outgoing = Outgoing { method: request.method.clone(), url, headers, body };
        caller.credentialed(&self.profile, &self.target, outgoing).await
    }

    async fn transmit(
        &self,
        attempt: &Arc<Attempt>,
        outgoing: Outgoing,
        secret: Option<&vault::Secret>,
        not_after: Duration,
    ) -> Sent {
        let config = &attempt.gateway.config;
        let asked = self.request.timeout.unwrap_or(ms(config.default_send_ms));
        let bounds = Bounds {
            connect: self.request.connect.unwrap_or(Duration::MAX).min(ms(config.connect_ms)),
            whole: asked.min(ms(config.max_send_ms)),
            not_after,
            max_response_bytes: config.max_response_bytes,
            cancel: attempt.closing.clone(),
        };
        let sent = attempt.gateway.transport.send(outgoing, &self.target, bounds).await;
        masked(sent, secret)
    }

    fn learned(&self, sent: &Sent, earlier_unknown: bool) -> Read {
        let bare = |learned| Read { learned, stored_failure: false, proves_nothing: false };
        let (status, headers) = match sent {
            Sent::Nothing(_) | Sent::TooLate => return bare(Learned::NotApplied),
            Sent::TimedOut | Sent::Lost(_) => return bare(Learned::Unknown),
            Sent::Answer { status, headers, .. } => (*status, headers),
        };
        let body = sent.body();
        let answers = self.answers();
        let mut reading = Reading {
            not_processed: &answers.not_processed,
            in_flight: answers.in_flight.iter().any(|rule| rule.fits(status, headers, body)),
            mismatch: answers.mismatch.iter().any(|rule| rule.fits(status, headers, body)),
            already_done: self.proof(sent, earlier_unknown).is_some(),
            earlier_unknown,
        };
        // Nobody has said how this provider answers a key in use. To a second send a conflict may be just that, and must not
        // be recorded as the end.
        let untold = answers.in_flight.is_empty() && self.resend() == Resend::Keyed && earlier_unknown;
        reading.in_flight |= untold && status == 409 && !reading.mismatch && !reading.already_done;
        let repeated = answers.replayed.as_ref().map_or(earlier_unknown, |marker| marker.fits(headers));
        let learned = effect::learned(status, &reading);
        Read {
            learned,
            stored_failure: answers.stores_5xx && status >= 500 && repeated,
            proves_nothing: reading.mismatch && learned == Learned::Unknown,
        }
    }

    fn proof(&self, sent: &Sent, earlier_unknown: bool) -> Option<&AlreadyDone> {
        let Sent::Answer { status, headers, .. } = sent else { return None };
        let fits = |rule: &&AlreadyDone| rule.when.fits(*status, headers, sent.body());
        self.answers().already_done.iter().find(fits).filter(|_| earlier_unknown)
    }

    /// An earlier send was applied. Its answer is gone; what the provider has of it takes its place.
    async fn proven(&self, proof: &AlreadyDone, carried: Carried, sending: Sending<'_>) -> Result<Carried, Error> {
        let Some(path) = &proof.fetch else {
            let status = proof.as_status.unwrap_or(200);
            let sent = Sent::Answer { status, headers: HeaderMap::new(), body: Body::Gone };
            return Ok(Carried { sent, source: "looked-up", ..carried });
        };
        // It happened, but what is not known until it could be fetched: the next send asks again.
        let unsure = |carried| Carried { learned: Learned::Unknown, ..carried };
        let call = self.fetch(path, carried.sent.body()).filter(|call| call.is_allowed(sending.attempt));
        let Some(call) = call else { return Ok(unsure(carried)) };
        match call.read(sending.attempt).await? {
            sent @ Sent::Answer { status: 200..=299, .. } => {
                Ok(Carried { sent, learned: Learned::Answer, source: "looked-up", ..carried })
            }
            _ => Ok(unsure(carried)),
        }
    }

    fn is_allowed(&self, attempt: &Attempt) -> bool {
        let Checked { method, url, .. } = &self.request;
        let judged = egress::still(method, url, &self.target.origin, &attempt.policy.egress);
        judged.map_err(|denial| attempt.denied(denial)).is_ok()
    }

    fn fetch(&self, path: &str, answer: &[u8]) -> Option<Self> {
        let values = Values { answer: Some(answer), captures: Some(&self.captures), ..Values::default() };
        let mut request = self.request.clone();
        request.url = request.url.join(&fill_url(path, &values).ok()?).ok()?;
        request.method = Method::GET;
        (request.body, request.upload) = (Bytes::new(), None);
        request.headers.remove(header::CONTENT_TYPE);
        Some(Self::new(request, self.profile.clone(), self.target.clone(), None))
    }
}

fn put_key(known: &Known, streamed: bool, mut parts: Parts<'_>) -> Result<(), Error> {
    let corrupt = |_| Error::from(Stop::Ledger(store::Error::Corrupt("the pinned carrier of an effect".to_owned())));
    let (Some(carrier), Some(wire_key)) = (&known.carrier, &known.wire_key) else { return Ok(()) };
    let carrier: Carrier = serde_json::from_str(carrier).map_err(corrupt)?;
    if streamed && carrier.needs_body() {
        return Err(too_large_to("the provider takes its key in the body").into());
    }
    carrier.inject(parts.again(), wire_key).map_err(Refusal::InvalidRequest)?;
    let Some(also) = &known.also else { return Ok(()) };
    let also: BTreeMap<String, String> = serde_json::from_str(also).map_err(corrupt)?;
    let values = Values { key: Some(wire_key), first_sent: Some(known.first_sent_at), ..Values::default() };
    for (name, template) in also {
        let value = fill(&template, &values).map_err(Refusal::InvalidRequest)?;
        let name = header::HeaderName::from_bytes(name.as_bytes()).ok();
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            parts.headers.insert(name, value);
        }
    }
    Ok(())
}
