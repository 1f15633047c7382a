//! The one path of a call: claim, send and settle, or replay. Runs in a task of its own. Which step follows is decided by
//! the pure functions of `effect`; here they are carried out.

use std::sync::Arc;
use std::time::Duration;

use super::attempt::{Attempt, lock};
use super::egress::Target;
use super::provider::{Carrier, KeyRule, Profile};
use super::request::{Checked, Error, Identity, Options, Refusal, Response, Stop};
use super::slots::End;
use super::transport::{Body, Bounds, Outgoing, Sent};
use super::{answer, digest, vault};
use crate::config::ms;
use crate::effect::{self, After, Found, Holder, Learned, OnUnknown, Resend, State, Statuses, Step};
use crate::key::{self, EffectId, ProviderAccount};
use crate::probe::Point;
use crate::store::effect::{Answer, Claim, Claimed, Known, Settlement};
use crate::store::storable;
use crate::store::{self, effect as ledger};

/// How long a call sleeps between two looks at an effect that another holds.
const IN_FLIGHT_POLL: Duration = Duration::from_millis(50);

/// How long a settlement is tried again while the database cannot be reached. After that the effect stays claimed and is
/// an unknown outcome for whoever meets it.
const SETTLE_FOR: Duration = Duration::from_secs(60);

/// Refuses a call whose credential cannot be had, before it is counted or claimed.
pub async fn check_credential(attempt: &Arc<Attempt>, call: &Call) -> Result<(), Error> {
    let flow = Flow { attempt, call, effect_id: None };
    flow.outgoing(None).await.map(drop)
}

/// A checked call with the provider it goes to.
pub struct Call {
    pub request: Checked,
    pub options: Options,
    pub profile: Profile,
    pub target: Target,
    /// A key of this run that the guest has put where the provider takes it: the call is the named effect of that key.
    pub issued_key: Option<String>,
}

impl Call {
    pub fn digest(&self) -> [u8; 32] {
        digest::request_digest(&self.request, &self.profile.digest_header_names())
    }

    /// The place that a positional effect is counted at.
    pub fn slot(&self) -> Option<String> {
        (matches!(self.options.identity, Identity::Positional) && self.issued_key.is_none())
            .then(|| format!("{} {}", self.request.method, self.request.url_without_query()))
    }
}

/// A call of GET, HEAD or OPTIONS: not claimed, answered as it comes.
pub async fn read(attempt: Arc<Attempt>, call: Call) -> Result<Response, Error> {
    let flow = Flow { attempt: &attempt, call: &call, effect_id: None };
    let outgoing = flow.outgoing(None).await?;
    match flow.transmit(outgoing, flow.attempt.lease.deadline()).await {
        Sent::Answer { status, headers, body: Body::Whole(body) } => Ok(answer::sent(status, &headers, body, None)),
        other => Err(answer::refusal(&other, attempt.gateway.config.max_response_bytes).into()),
    }
}

/// A call that changes the world: claimed before its first byte leaves, or answered from the ledger. Tells also how it ended
/// for the place that it was counted at.
pub async fn effect(
    attempt: Arc<Attempt>,
    call: Call,
    digest: [u8; 32],
    ordinal: u32,
) -> (Result<Response, Error>, End) {
    let account = attempt.policy.credentials.get(&call.profile.name).map_or("", |c| c.account.as_str()).to_owned();
    let provider = ProviderAccount { profile: &call.profile.name, account: &account };
    let slot = call.slot().unwrap_or_default();
    let identity = match (&call.options.identity, &call.issued_key) {
        (Identity::Positional, Some(name)) => {
            key::Identity::Named { run_id: attempt.run_id(), activity: &attempt.activity, name }
        }
        (Identity::Positional, None) => {
            key::Identity::Positional { run_id: attempt.run_id(), activity: &attempt.activity, slot: &slot, ordinal }
        }
        (Identity::Named(name), _) => {
            key::Identity::Named { run_id: attempt.run_id(), activity: &attempt.activity, name }
        }
        (Identity::Business { operation, key }, _) => key::Identity::Business { operation, key },
    };
    let effect_id = key::effect_id(attempt.tenant(), provider, identity);
    let flow = Flow { attempt: &attempt, call: &call, effect_id: Some(effect_id) };
    let claim = flow.claim(effect_id, identity, &account, digest);
    match flow.meet(claim).await {
        Ok((result, state)) => {
            let end = match (&result, state) {
                (Ok(_), State::Completed) => End::Handed,
                (_, State::Released) => End::Released,
                _ => End::Open,
            };
            (result, end)
        }
        Err(error) => (Err(error), End::Open),
    }
}

/// What the guest gets, and the state that the effect is in.
type Met = (Result<Response, Error>, State);

struct Flow<'a> {
    attempt: &'a Arc<Attempt>,
    call: &'a Call,
    effect_id: Option<EffectId>,
}

/// A held effect and how this send of it stands to earlier ones.
struct Held {
    known: Known,
    effect_id: [u8; 32],
    /// The outcome of an earlier send is unknown still.
    earlier_unknown: bool,
    /// By the clock: when the provider may have forgotten the key. None: never.
    key_until: Option<Duration>,
}

impl Flow<'_> {
    fn claim(&self, effect_id: EffectId, identity: key::Identity<'_>, account: &str, digest: [u8; 32]) -> Claim {
        let (keying, words) = describe(identity);
        let key_rule = self.call.profile.key.as_ref();
        let derived = |rule: &KeyRule| key::wire_key(&effect_id).render(rule.rendering.rendering());
        let wire_key = key_rule.map(|rule| self.call.issued_key.clone().unwrap_or_else(|| derived(rule)));
        let carrier = key_rule.and_then(|rule| serde_json::to_string(&rule.carrier).ok());
        let resend = match key_rule {
            _ if self.call.request.is_idempotent() => Resend::Idempotent,
            Some(rule) if rule.honoured => Resend::Keyed,
            _ => Resend::Unsafe,
        };
        let chosen = self.call.options.on_unknown.or(self.attempt.policy.on_unknown).or(self.call.profile.on_unknown);
        Claim {
            lease: self.attempt.lease.record.clone(),
            attempt: self.attempt.number,
            effect_id: effect_id.0,
            keying,
            identity: storable(&words),
            provider: self.call.profile.name.clone(),
            account: account.to_owned(),
            profile_version: self.call.profile.version.clone(),
            method: self.call.request.method.to_string(),
            url: self.call.request.url_without_query(),
            digest,
            wire_key,
            carrier,
            window_ms: key_rule.and_then(|rule| rule.window()).and_then(|w| i64::try_from(w.as_millis()).ok()),
            window_from: key_rule.map_or("first", |rule| rule.counted_from.as_str()),
            resend,
            on_unknown: chosen.unwrap_or(OnUnknown::Ask),
        }
    }

    /// Claims, or does what the ledger's state of the effect asks for.
    async fn meet(&self, claim: Claim) -> Result<Met, Error> {
        let gateway = &self.attempt.gateway;
        let give_up = gateway.clock.elapsed() + ms(gateway.config.in_flight_wait_ms);
        gateway.probe.reach(Point::BeforeClaim).await;
        loop {
            if self.attempt.is_stopping() {
                return Err(Stop::LeaseOver.into());
            }
            let known = match ledger::claim(&gateway.store, claim.clone()).await? {
                Claimed::LeaseOver => return Err(Stop::LeaseOver.into()),
                Claimed::Won(known) => return self.send_and_settle(self.hold(known, &claim, false)).await,
                Claimed::Found(known) => known,
            };
            match effect::meet(&self.found(&known, &claim)) {
                Step::Replay => return Ok((answer::replay(&known, self.effect_id), State::Completed)),
                Step::Mismatch => return Err(mismatch(&claim.identity).into()),
                Step::Claim => {}
                Step::InFlight if gateway.clock.elapsed() < give_up => tokio::time::sleep(IN_FLIGHT_POLL).await,
                Step::InFlight => return Err(Refusal::InFlight.into()),
                Step::Resend => {
                    if let Some(held) = self.take_over(&known, &claim).await? {
                        return self.send_and_settle(held).await;
                    }
                }
                Step::EscapeAndWait | Step::EscapeAndTell => self.escape(&known, &claim).await?,
                Step::Wait => return Err(Stop::Suspended(EffectId(claim.effect_id)).into()),
                Step::Tell => return Err(unknown_outcome().into()),
            }
        }
    }

    fn found(&self, known: &Known, claim: &Claim) -> Found {
        let lease = &self.attempt.lease.record;
        let own = known.holder.run_id == lease.run_id && known.holder.token == lease.token;
        let holder = match (own, lock(&self.attempt.open).contains(&claim.effect_id), known.holder_alive) {
            (true, false, _) => Holder::Own,
            (true, true, _) => Holder::Alive,
            (false, _, true) if known.holder.run_id != lease.run_id => Holder::Alive,
            (false, ..) => Holder::Gone,
        };
        let margin = i64::try_from(self.attempt.gateway.config.max_send_ms).unwrap_or(i64::MAX);
        Found {
            state: known.state,
            same_request: known.digest == claim.digest,
            holder,
            resend: known.resend,
            key_remembered: known.window_left_ms.is_none_or(|left| left > margin),
            on_unknown: known.on_unknown,
        }
    }

    fn hold(&self, known: Known, claim: &Claim, earlier_unknown: bool) -> Held {
        let now = self.attempt.gateway.clock.elapsed();
        let left = known.window_left_ms.map(|left| ms(u64::try_from(left).unwrap_or(0)));
        Held { effect_id: claim.effect_id, earlier_unknown, key_until: left.map(|left| now + left), known }
    }

    async fn take_over(&self, known: &Known, claim: &Claim) -> Result<Option<Held>, Error> {
        let gateway = &self.attempt.gateway;
        let taken = ledger::resend(&gateway.store, &claim.lease, claim.attempt, &claim.effect_id, known.holder).await?;
        Ok(taken.map(|send| {
            let mut held = self.hold(known.clone(), claim, true);
            held.known.holder = ledger::Holder { run_id: claim.lease.run_id, token: claim.lease.token, send };
            held
        }))
    }

    /// Leaves the question open for all to see. Whoever lost the race for it looks again.
    async fn escape(&self, known: &Known, claim: &Claim) -> Result<(), Error> {
        let settlement = Settlement {
            tenant: claim.lease.tenant.clone(),
            effect_id: claim.effect_id,
            holder: known.holder,
            learned: Learned::Unknown,
            state: State::Escaped,
            status: None,
            answer: None,
        };
        ledger::settle(&self.attempt.gateway.store, &settlement).await?;
        Ok(())
    }

    async fn send_and_settle(&self, held: Held) -> Result<Met, Error> {
        let gateway = &self.attempt.gateway;
        let opened = Opened::new(self.attempt, held.effect_id);
        gateway.probe.reach(Point::AfterClaim).await;
        let outgoing = self.outgoing(Some(&held.known)).await;
        let (sent, failed) = match outgoing {
            Ok(outgoing) => (self.transmit(outgoing, self.not_after(&held)).await, None),
            Err(error) => (Sent::Nothing(String::new()), Some(error)),
        };
        gateway.probe.reach(Point::AfterResponse).await;
        let key_remembered =
            held.key_until.is_none_or(|until| gateway.clock.elapsed() + ms(gateway.config.max_send_ms) < until);
        let verdict = effect::verdict(held.known.resend, key_remembered, held.known.on_unknown);
        let learned = self.learned(&sent, verdict);
        let (state, after) = effect::settle(learned, held.earlier_unknown, verdict);
        let settlement = self.settlement(&held, learned, state, &sent);
        let settled = self.settle(&settlement).await;
        drop(opened);
        gateway.probe.reach(Point::AfterSettle).await;
        if !settled? {
            return Err(self.came_late(&settlement, &sent).await?.into());
        }
        if let Some(error) = failed {
            return Err(error);
        }
        match after {
            After::Show => Ok((self.show(sent, learned), state)),
            After::Wait => Err(Stop::Suspended(EffectId(held.effect_id)).into()),
            After::Tell => Err(unknown_outcome().into()),
        }
    }

    /// A key that the provider may have forgotten makes a second send unsafe, up to its first byte.
    fn not_after(&self, held: &Held) -> Duration {
        let lease = self.attempt.lease.deadline();
        let may_double = held.known.on_unknown == OnUnknown::AtLeastOnce;
        let relies_on_key = held.earlier_unknown && held.known.resend == Resend::Keyed && !may_double;
        match held.key_until {
            Some(until) if relies_on_key => {
                lease.min(until.saturating_sub(ms(self.attempt.gateway.config.max_send_ms)))
            }
            _ => lease,
        }
    }

    /// The request as it goes out: the guest's, with the pinned key and the tenant's credential.
    async fn outgoing(&self, known: Option<&Known>) -> Result<Outgoing, Error> {
        let request = &self.call.request;
        let (mut url, mut headers) = (request.url.clone(), request.headers.clone());
        let denied = |why: String| Error::from(Refusal::Denied(why));
        if let Some((carrier, wire_key)) = known.and_then(|k| k.carrier.as_ref().zip(k.wire_key.as_ref())) {
            let carrier: Carrier = serde_json::from_str(carrier)
                .map_err(|_| Stop::Ledger(store::Error::Corrupt("the pinned carrier of an effect".to_owned())))?;
            carrier.inject(&mut headers, wire_key).map_err(denied)?;
        }
        let credential = self.attempt.policy.credentials.get(&self.call.profile.name);
        if let (Some(credential), Some(placement)) = (credential, &self.call.profile.credential) {
            let vault = &self.attempt.gateway.vault;
            let secret = vault.open(self.attempt.tenant(), &credential.secret).await.map_err(|e| match e {
                vault::Error::Store(e) => Error::from(e),
                other => denied(other.to_string()),
            })?;
            placement.inject(&mut url, &mut headers, &secret).map_err(denied)?;
        }
        Ok(Outgoing { method: request.method.clone(), url, headers, body: request.body.clone() })
    }

    async fn transmit(&self, outgoing: Outgoing, not_after: Duration) -> Sent {
        let gateway = &self.attempt.gateway;
        let config = &gateway.config;
        let asked = self.call.request.timeout.unwrap_or(ms(config.default_send_ms));
        let bounds = Bounds {
            connect: ms(config.connect_ms),
            whole: asked.min(ms(config.max_send_ms)),
            not_after,
            max_response_bytes: config.max_response_bytes,
            cancel: self.attempt.closing.clone(),
        };
        gateway.transport.send(outgoing, &self.call.target, bounds).await
    }

    fn learned(&self, sent: &Sent, verdict: effect::Verdict) -> Learned {
        match sent {
            Sent::Nothing(_) => Learned::NotApplied,
            Sent::TimedOut | Sent::Lost(_) => Learned::Unknown,
            Sent::Answer { status, body, .. } => {
                let profile = &self.call.profile;
                let bytes = if let Body::Whole(bytes) = body { &bytes[..] } else { &[] };
                let in_flight = profile.in_flight.as_ref().is_some_and(|rule| rule.fits(*status, bytes));
                let statuses = Statuses { not_processed: &profile.not_processed, in_flight };
                match effect::learned(*status, &statuses) {
                    // The status proves that it happened; where it can be had again safely, the whole answer is better.
                    Learned::Answer if matches!(body, Body::Cut) && verdict == effect::Verdict::SendAgain => {
                        Learned::Unknown
                    }
                    learned => learned,
                }
            }
        }
    }

    fn settlement(&self, held: &Held, learned: Learned, state: State, sent: &Sent) -> Settlement {
        let config = &self.attempt.gateway.config;
        let (status, answer) = match sent {
            Sent::Answer { status, headers, body } => {
                let body = match body {
                    Body::Whole(bytes) if bytes.len() <= config.max_kept_body_bytes => Some(bytes.to_vec()),
                    _ => None,
                };
                let headers = answer::kept(headers);
                (
                    Some(i32::from(*status)),
                    Some(Answer { status: i32::from(*status), headers, body, source: "original".to_owned() }),
                )
            }
            _ => (None, None),
        };
        Settlement {
            tenant: self.attempt.tenant().to_owned(),
            effect_id: held.effect_id,
            holder: held.known.holder,
            learned,
            state,
            status,
            answer: answer.filter(|_| state == State::Completed),
        }
    }

    /// What was learned must not be lost to a short failure of the database.
    async fn settle(&self, settlement: &Settlement) -> Result<bool, store::Error> {
        let gateway = &self.attempt.gateway;
        let give_up = gateway.clock.elapsed() + SETTLE_FOR;
        let mut pause = Duration::from_millis(20);
        loop {
            match ledger::settle(&gateway.store, settlement).await {
                Err(error) if gateway.clock.elapsed() < give_up => {
                    tracing::warn!(effect.id = %EffectId(settlement.effect_id), error = %error, "settling is tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
                result => return result,
            }
        }
    }

    /// Another send has taken the effect, or it was settled meanwhile: this attempt is stale, but a success stays true.
    async fn came_late(&self, settlement: &Settlement, sent: &Sent) -> Result<Stop, Error> {
        let Sent::Answer { status: 200..=399, headers, .. } = sent else { return Ok(Stop::LeaseOver) };
        let answer = settlement.answer.clone().unwrap_or_else(|| Answer {
            status: settlement.status.unwrap_or_default(),
            headers: answer::kept(headers),
            body: None,
            source: "original".to_owned(),
        });
        let store = &self.attempt.gateway.store;
        let doubled =
            store::late::prove(store, &settlement.tenant, &settlement.effect_id, settlement.holder, &answer).await?;
        if doubled {
            tracing::error!(tenant.id = settlement.tenant, effect.id = %EffectId(settlement.effect_id), "an effect was applied twice");
        }
        Ok(Stop::LeaseOver)
    }

    /// The guest sees what came of the send as it was.
    fn show(&self, sent: Sent, learned: Learned) -> Result<Response, Error> {
        match sent {
            _ if learned == Learned::InFlight => Err(Refusal::InFlight.into()),
            Sent::Answer { status, headers, body: Body::Whole(body) } => {
                Ok(answer::sent(status, &headers, body, self.effect_id))
            }
            other => Err(answer::refusal(&other, self.attempt.gateway.config.max_response_bytes).into()),
        }
    }
}

/// Marks an effect as being sent by this attempt, for as long as it lives.
struct Opened<'a>(&'a Attempt, [u8; 32]);

impl<'a> Opened<'a> {
    fn new(attempt: &'a Attempt, effect_id: [u8; 32]) -> Self {
        lock(&attempt.open).insert(effect_id);
        Self(attempt, effect_id)
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        lock(&self.0.open).remove(&self.1);
    }
}

fn describe(identity: key::Identity<'_>) -> (&'static str, String) {
    match identity {
        key::Identity::Business { operation, key } => ("business-identity", format!("{operation} {key}")),
        key::Identity::Named { name, .. } => ("activity-recipe", name.to_owned()),
        key::Identity::Positional { slot, ordinal, .. } => ("activity-recipe", format!("{slot} #{ordinal}")),
    }
}

fn mismatch(identity: &str) -> Refusal {
    Refusal::EffectMismatch(format!(
        "the effect `{identity}` was claimed with another request; make the same call in every attempt, or give different effects different names"
    ))
}

fn unknown_outcome() -> Refusal {
    Refusal::OutcomeUnknown("the effect may have happened, and this call must not send it again".to_owned())
}
