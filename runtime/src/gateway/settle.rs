//! What a send learned is written down: as the state of its effect, or, where another send has the effect by now, as
//! late proof.

use std::sync::Arc;
use std::time::Duration;

use super::answer;
use super::attempt::Attempt;
use super::plan::Carried;
use super::request::{Error, Stop};
use super::transport::{Body, Sent};
use super::vault::DataKey;
use crate::effect::{Learned, State};
use crate::key::EffectId;
use crate::store::effect::{self as ledger, Answer, Holder, Settlement};
use crate::store::{self, late};

/// How long a settlement is tried again while the database cannot be reached. After that the effect stays claimed and is
/// an unknown outcome for whoever meets it.
const SETTLE_FOR: Duration = Duration::from_secs(60);

/// Leaves the question open for all to see. Whoever lost the race for it looks again.
pub async fn escape(attempt: &Attempt, effect_id: EffectId, holder: Holder) -> Result<(), Error> {
    let settlement = Settlement {
        tenant: attempt.tenant().to_owned(),
        effect_id: effect_id.0,
        holder,
        learned: Learned::Unknown,
        state: State::Escaped,
        status: None,
        answer: None,
        body_digest: None,
        leave: false,
    };
    ledger::settle(&attempt.gateway.store, &settlement).await?;
    Ok(())
}

/// A send that has ended, and the state that it leaves its effect in.
pub struct Settling<'a> {
    pub attempt: &'a Arc<Attempt>,
    pub effect_id: EffectId,
    pub holder: Holder,
    pub state: State,
    /// A person's leave for one more send stands: nothing was sent.
    pub leave: bool,
    pub sealer: Option<&'a DataKey>,
}

impl Settling<'_> {
    /// False when another send has the effect by now. What was learned must not be lost to a short failure of the database.
    pub async fn settle(&self, carried: &Carried) -> Result<bool, store::Error> {
        let settlement = self.settlement(carried);
        let gateway = &self.attempt.gateway;
        let give_up = gateway.clock.elapsed() + SETTLE_FOR;
        let mut pause = Duration::from_millis(20);
        loop {
            match ledger::settle(&gateway.store, &settlement).await {
                Err(error) if gateway.clock.elapsed() < give_up => {
                    tracing::warn!(effect.id = %self.effect_id, error = %error, "settling is tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
                result => return result,
            }
        }
    }

    fn settlement(&self, carried: &Carried) -> Settlement {
        let status = match &carried.sent {
            Sent::Answer { status, .. } => Some(i32::from(*status)),
            _ => None,
        };
        Settlement {
            tenant: self.attempt.tenant().to_owned(),
            effect_id: self.effect_id.0,
            holder: self.holder,
            learned: carried.learned,
            state: self.state,
            status,
            answer: (self.state == State::Completed).then(|| self.answer(carried)).flatten(),
            body_digest: carried.body_digest,
            leave: self.leave,
        }
    }

    fn answer(&self, carried: &Carried) -> Option<Answer> {
        let Sent::Answer { status, headers, body } = &carried.sent else { return None };
        let config = &self.attempt.gateway.config;
        let body = match body {
            Body::Whole(bytes)
                if carried.keep_body && bytes.len() <= config.max_kept_body_bytes && !answer::is_streamed(headers) =>
            {
                Some(bytes.to_vec())
            }
            _ => None,
        };
        let kept = Answer {
            status: i32::from(*status),
            headers: answer::kept(headers, carried.kept_header.as_ref()),
            body,
            source: carried.source.to_owned(),
            sealed_with: None,
        };
        Some(answer::seal(self.sealer, &self.effect_id.0, kept))
    }

    /// Another send has taken the effect, or it was settled meanwhile: this attempt is stale, but a success stays true.
    pub async fn came_late(&self, carried: &Carried) -> Result<Stop, Error> {
        let Sent::Answer { status: 200..=399, .. } = &carried.sent else { return Ok(Stop::LeaseOver) };
        let Some(answer) = self.answer(carried) else { return Ok(Stop::LeaseOver) };
        let (store, tenant) = (&self.attempt.gateway.store, self.attempt.tenant());
        let give_up = self.attempt.gateway.clock.elapsed() + SETTLE_FOR;
        let mut pause = Duration::from_millis(20);
        let doubled = loop {
            match late::prove(store, tenant, &self.effect_id.0, self.holder, &answer).await {
                Err(error) if error.is_transient() && self.attempt.gateway.clock.elapsed() < give_up => {
                    tracing::warn!(effect.id = %self.effect_id, error = %error, "late proof is tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
                result => break result?,
            }
        };
        if doubled {
            tracing::error!(tenant.id = tenant, effect.id = %self.effect_id, "an effect was applied twice");
        }
        Ok(Stop::LeaseOver)
    }
}
