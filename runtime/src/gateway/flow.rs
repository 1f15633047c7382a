//! The one path of an effect: claim, send and settle, or replay. Runs in a task of its own. Which step follows is decided
//! by the pure functions of `effect`; here they are carried out.

use std::sync::Arc;
use std::time::Duration;

use super::answer;
use super::attempt::{Attempt, lock};
use super::pace;
use super::plan::{Carried, Effect, Sending};
use super::request::{Error, Refusal, Response, Stop};
use super::settle::{self, Settling};
use super::slots::End;
use super::transport::Sent;
use super::vault::DataKey;
use crate::config::ms;
use crate::effect::{self, After, Found, Holder, Learned, OnUnknown, Resend, Rules, State, Step, Verdict};
use crate::key::EffectId;
use crate::probe::Point;
use crate::store::effect as ledger;
use crate::store::effect::{Claim, Claimed, Known, Taken};

/// How long a call sleeps between two looks at an effect that another holds.
const IN_FLIGHT_POLL: Duration = Duration::from_millis(50);

/// An effect that changes the world: claimed before its first byte leaves, or answered from the ledger. Tells also how it
/// ended for the place that it was counted at.
pub async fn run(attempt: Arc<Attempt>, effect: Effect, ordinal: u32) -> (Result<Response, Error>, End) {
    let slot = effect.slot().unwrap_or_default();
    let identity = effect.key_identity(&attempt, &slot, ordinal);
    let effect_id = effect.id(attempt.tenant(), identity);
    // Before anything is sent: an answer must not wait for its key.
    let sealer = match attempt.gateway.sealer(attempt.tenant()).await {
        Ok(sealer) => sealer,
        Err(error) => return (Err(answer::stopped(error)), End::Released),
    };
    let claim = match effect.claim(&attempt, effect_id, identity, sealer.as_ref()).await {
        Ok(claim) => claim,
        Err(error) => return (Err(error), End::Released),
    };
    let flow = Flow { attempt: &attempt, effect: &effect, effect_id, sealer };
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
    effect: &'a Effect,
    effect_id: EffectId,
    /// What the answer is sealed with; none where answers are not sealed.
    sealer: Option<DataKey>,
}

/// A held effect and how this send of it stands to earlier ones.
struct Held {
    known: Known,
    /// The outcome of an earlier send is unknown still.
    earlier_unknown: bool,
    /// By the clock: when the provider may have forgotten the key. None: never.
    key_until: Option<Duration>,
}

impl Flow<'_> {
    /// Claims, or does what the ledger's state of the effect asks for.
    async fn meet(&self, claim: Claim) -> Result<Met, Error> {
        let gateway = &self.attempt.gateway;
        let give_up = gateway.clock.elapsed() + ms(gateway.config.in_flight_wait_ms);
        // Before the claim: another call of this attempt under the same name must not take it for one that is over.
        let Some(_opened) = self.open(give_up).await else { return Err(Refusal::InFlight.into()) };
        gateway.probe.reach(Point::BeforeClaim).await;
        loop {
            if self.attempt.is_stopping() {
                return Err(Stop::LeaseOver.into());
            }
            let known = match ledger::claim(&gateway.store, claim.clone()).await? {
                Claimed::LeaseOver => return Err(Stop::LeaseOver.into()),
                Claimed::Blocked { ms } => {
                    pace::rest(self.attempt, ms).await?;
                    continue;
                }
                Claimed::Won(known) => return self.send_and_settle(self.hold(known, false)).await,
                Claimed::Found(known) => known,
            };
            match effect::meet(&self.found(&known, &claim)) {
                Step::Replay => return Ok((self.replay(&known).await, State::Completed)),
                Step::Mismatch => return Err(mismatch(&claim.identity).into()),
                Step::Claim => {}
                Step::InFlight if gateway.clock.elapsed() < give_up => tokio::time::sleep(IN_FLIGHT_POLL).await,
                Step::InFlight => return Err(Refusal::InFlight.into()),
                Step::Resend => {
                    if let Some(held) = self.take_over(&known, &claim).await? {
                        return self.send_and_settle(held).await;
                    }
                }
                Step::EscapeAndWait | Step::EscapeAndTell => {
                    settle::escape(self.attempt, self.effect_id, known.holder).await?;
                }
                Step::Wait => return Err(Stop::Suspended(self.effect_id).into()),
                Step::Tell => return Err(unknown_outcome().into()),
            }
        }
    }

    /// The recorded answer; or, where it names a version to be read, that version as it is now.
    async fn replay(&self, known: &Known) -> Result<Response, Error> {
        self.compare_upload(known).await?;
        let recorded = answer::replay(self.attempt, known, self.effect_id).await?;
        let Some(call) = self.effect.means.pinned_read() else { return Ok(recorded) };
        let version = call.pin().and_then(|pin| recorded.header(pin.header.0.as_str()));
        let sent = call.read_pinned(self.attempt, version.as_deref()).await?;
        answer::shown(sent, "original", Some(self.effect_id), &self.attempt.gateway.config)
    }

    /// The digest does not cover a streamed body: it is read now, and compared with what was sent.
    async fn compare_upload(&self, known: &Known) -> Result<(), Error> {
        let Some(upload) = self.effect.means.upload() else { return Ok(()) };
        let digest = tokio::select! {
            digest = upload.drain() => digest.map_err(|broken| Refusal::InvalidRequest(broken.to_string()))?,
            () = self.attempt.closing.cancelled() => return Err(Stop::LeaseOver.into()),
        };
        match &known.body_digest {
            Some(sent) if sent[..] != digest[..] => Err(Refusal::EffectMismatch(
                "the body differs from the one that was sent; make the same call in every attempt, or give different effects different names"
                    .to_owned(),
            )
            .into()),
            _ => Ok(()),
        }
    }

    /// Waits until no other call of this attempt is at the effect.
    async fn open(&self, give_up: Duration) -> Option<Opened<'_>> {
        loop {
            if let Some(opened) = Opened::new(self.attempt, self.effect_id) {
                return Some(opened);
            }
            if self.attempt.gateway.clock.elapsed() >= give_up || self.attempt.is_stopping() {
                return None;
            }
            tokio::time::sleep(IN_FLIGHT_POLL).await;
        }
    }

    fn found(&self, known: &Known, claim: &Claim) -> Found {
        let lease = &self.attempt.lease.record;
        let own = known.holder.run_id == lease.run_id && known.holder.token == lease.token;
        let holder = match (own, known.holder_alive) {
            (true, _) => Holder::Own,
            (false, true) if known.holder.run_id != lease.run_id => Holder::Alive,
            (false, _) => Holder::Gone,
        };
        let margin = i64::try_from(self.attempt.gateway.config.max_send_ms).unwrap_or(i64::MAX);
        let key_remembered = known.window_left_ms.is_none_or(|left| left > margin);
        Found {
            state: known.state,
            same_request: known.digest == claim.digest,
            holder,
            rules: rules(known, key_remembered),
        }
    }

    fn hold(&self, known: Known, earlier_unknown: bool) -> Held {
        let now = self.attempt.gateway.clock.elapsed();
        let left = known.window_left_ms.map(|left| ms(u64::try_from(left).unwrap_or(0)));
        Held { earlier_unknown, key_until: left.map(|left| now + left), known }
    }

    async fn take_over(&self, known: &Known, claim: &Claim) -> Result<Option<Held>, Error> {
        let store = &self.attempt.gateway.store;
        let send = match ledger::resend(store, claim, known.holder).await? {
            Taken::Won { send } => send,
            Taken::Lost => return Ok(None),
            Taken::Blocked { ms } => {
                pace::rest(self.attempt, ms).await?;
                return Ok(None);
            }
        };
        let mut held = self.hold(known.clone(), true);
        held.known.holder = ledger::Holder { run_id: claim.lease.run_id, token: claim.lease.token, send };
        Ok(Some(held))
    }

    async fn send_and_settle(&self, held: Held) -> Result<Met, Error> {
        let gateway = &self.attempt.gateway;
        gateway.probe.reach(Point::AfterClaim).await;
        let not_after = self.not_after(&held);
        let sending =
            Sending { attempt: self.attempt, known: &held.known, not_after, earlier_unknown: held.earlier_unknown };
        // The lease was over before the first byte: that is no failure of the provider's, and spends no attempt.
        let by_lease = self.attempt.lease.deadline() <= not_after;
        let (carried, failed) = match self.send(sending).await {
            Ok(carried) if matches!(carried.sent, Sent::TooLate) && by_lease => {
                (Carried::nothing(), Some(Stop::LeaseOver.into()))
            }
            Ok(carried) => (carried, None),
            Err(error) => (Carried::nothing(), Some(error)),
        };
        gateway.probe.reach(Point::AfterResponse).await;
        let unsent = failed.is_some();
        let verdict = self.verdict(&held, carried.proves_nothing, unsent);
        let carried = self.whole_or_again(carried, &held, verdict);
        let (state, after) = effect::settle(carried.learned, held.earlier_unknown, verdict);
        let leave = unsent && held.known.send_again;
        let holder = held.known.holder;
        let (attempt, sealer) = (self.attempt, self.sealer.as_ref());
        let settling = Settling { attempt, effect_id: self.effect_id, holder, state, leave, sealer };
        let settled = settling.settle(&carried).await;
        gateway.probe.reach(Point::AfterSettle).await;
        if !settled? {
            return Err(settling.came_late(&carried).await?.into());
        }
        if let Some(error) = failed {
            return Err(error);
        }
        match after {
            After::Show => Ok((self.show(carried), state)),
            After::Wait => Err(Stop::Suspended(self.effect_id).into()),
            After::Tell => Err(unknown_outcome().into()),
        }
    }

    /// Sends at the provider's pace, and hears what it says about it.
    async fn send(&self, sending: Sending<'_>) -> Result<Carried, Error> {
        let (meter, account) = (&self.effect.meter, &self.effect.account);
        pace::admit(self.attempt, meter, account).await?;
        let carried = self.effect.means.send(sending).await?;
        pace::heed(self.attempt, meter, account, &carried.sent).await;
        Ok(carried)
    }

    /// The status of a cut answer proves that it happened; where it can be had again safely, the whole answer is better.
    fn whole_or_again(&self, carried: Carried, held: &Held, verdict: Verdict) -> Carried {
        let cut = matches!(&carried.sent, Sent::Answer { body: super::transport::Body::Cut, .. });
        let safe = verdict == Verdict::SendAgain && !effect::repeats(held.known.resend, self.key_remembered(held));
        let again = cut && carried.learned == Learned::Answer && safe;
        Carried { learned: if again { Learned::Unknown } else { carried.learned }, ..carried }
    }

    fn key_remembered(&self, held: &Held) -> bool {
        let gateway = &self.attempt.gateway;
        let margin = ms(gateway.config.max_send_ms);
        held.key_until.is_none_or(|until| gateway.clock.elapsed() + margin < until)
    }

    /// What is to be done if the outcome of the send that just ended is unknown.
    fn verdict(&self, held: &Held, proves_nothing: bool, unsent: bool) -> Verdict {
        let key_remembered = self.key_remembered(held);
        // A person's leave was for the send that just ended, if it went out.
        let rules = rules(&held.known, key_remembered);
        let rules = Rules { send_again: rules.send_again && unsent, ..rules };
        let resend = if proves_nothing { Resend::Unsafe } else { rules.resend };
        effect::verdict(&Rules { resend, ..rules })
    }

    /// A key that the provider may have forgotten makes a second send unsafe, up to its first byte.
    fn not_after(&self, held: &Held) -> Duration {
        let lease = self.attempt.lease.deadline();
        let may_double = held.known.send_again || held.known.on_unknown == OnUnknown::AtLeastOnce && !held.known.lookup;
        let relies_on_key = held.earlier_unknown && held.known.resend == Resend::Keyed && !may_double;
        match held.key_until {
            Some(until) if relies_on_key => {
                lease.min(until.saturating_sub(ms(self.attempt.gateway.config.max_send_ms)))
            }
            _ => lease,
        }
    }

    /// The guest sees what came of the send as it was.
    fn show(&self, carried: Carried) -> Result<Response, Error> {
        if carried.learned == Learned::InFlight {
            return Err(Refusal::InFlight.into());
        }
        if let (true, Sent::Answer { status, .. }) = (carried.stored_failure, &carried.sent) {
            return Err(stored_failure(*status).into());
        }
        answer::shown(carried.sent, carried.source, Some(self.effect_id), &self.attempt.gateway.config)
    }
}

fn rules(known: &Known, key_remembered: bool) -> Rules {
    Rules {
        resend: known.resend,
        key_remembered,
        lookup: known.lookup,
        on_unknown: known.on_unknown,
        send_again: known.send_again,
    }
}

/// Marks an effect as being at hand in this attempt, for as long as it lives.
struct Opened<'a>(&'a Attempt, [u8; 32]);

impl<'a> Opened<'a> {
    /// None while another call of the attempt has it.
    fn new(attempt: &'a Attempt, effect_id: EffectId) -> Option<Self> {
        lock(&attempt.open).insert(effect_id.0).then(|| Self(attempt, effect_id.0))
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        lock(&self.0.open).remove(&self.1);
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

fn stored_failure(status: u16) -> Refusal {
    Refusal::OutcomeUnknown(format!(
        "the provider repeats a failure that it stored under this key (status {status}): sending again cannot help; find out whether it happened, and resolve the effect"
    ))
}
