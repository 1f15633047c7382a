//! The ledger's statements. A claim is one statement: it checks and locks the lease, inserts the effect if it is absent
//! or released, and writes the send's row; it has committed before the caller hears of it.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::lease::Lease;
use super::turns::For;
use super::{Error, Result, Store, bounded, rate};
use crate::effect::{Learned, OnUnknown, Resend, State};

/// How often a claim is tried again when another claim of the same effect committed between its snapshot and its end.
const CLAIM_TRIES: usize = 5;

/// An effect to claim, with all that the first claim pins.
#[derive(Clone, Debug)]
pub struct Claim {
    pub lease: Lease,
    pub attempt: i32,
    pub effect_id: [u8; 32],
    pub keying: &'static str,
    /// The identity in words, for people.
    pub identity: String,
    pub provider: String,
    pub account: String,
    /// What the provider's pace is counted by: see `rate`.
    pub meter: String,
    pub profile_version: String,
    pub method: String,
    /// Without its query, which may hold what is not for the ledger.
    pub url: String,
    pub digest: [u8; 32],
    pub wire_key: Option<String>,
    /// Where the host puts the wire key, a JSON text. None with a wire key: the guest has put it there.
    pub carrier: Option<String>,
    /// Headers that go with the key, a JSON text of pairs.
    pub also: Option<String>,
    /// How long the provider remembers a key; none: for ever.
    pub window_ms: Option<i64>,
    pub window_from: &'static str,
    pub resend: Resend,
    pub on_unknown: OnUnknown,
    /// How the provider is asked whether it happened, a JSON text; sealed when `lookup_sealed_with` names a key.
    pub lookup: Option<String>,
    pub lookup_sealed_with: Option<String>,
    /// The digest does not cover the body.
    pub streamed: bool,
}

/// Who holds an effect: settling compares all three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    pub run_id: Uuid,
    pub token: i64,
    pub send: i32,
}

/// An effect in the ledger, as a claim meets it.
#[derive(Clone, Debug)]
pub struct Known {
    pub state: State,
    pub digest: Vec<u8>,
    pub holder: Holder,
    /// The holder's lease is alive.
    pub holder_alive: bool,
    pub wire_key: Option<String>,
    pub carrier: Option<String>,
    pub also: Option<String>,
    pub resend: Resend,
    pub on_unknown: OnUnknown,
    /// The provider can be asked whether it happened.
    pub lookup: bool,
    /// A person said to send it once more.
    pub send_again: bool,
    pub first_sent_at: DateTime<Utc>,
    /// Of a body that was streamed.
    pub body_digest: Option<Vec<u8>>,
    /// What is left of the provider's memory of the key; none: it never forgets. Negative when over.
    pub window_left_ms: Option<i64>,
    pub answer: Option<Answer>,
}

/// A recorded answer. `headers` is a JSON text; the body is absent when it was not kept. Both are sealed when
/// `sealed_with` names a key; `headers` is then base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: i32,
    pub headers: String,
    pub body: Option<Vec<u8>>,
    pub source: String,
    pub sealed_with: Option<String>,
}

/// What came of a claim.
#[derive(Debug)]
pub enum Claimed {
    /// The caller holds the effect and must send and settle it.
    Won(Known),
    /// The effect is there and is not free.
    Found(Known),
    /// The caller's lease is over: nothing was changed and nothing may be sent.
    LeaseOver,
    /// The provider asked for a pause, which goes on for so long: nothing was changed.
    Blocked { ms: u64 },
}

/// Claims an effect that is absent or released.
pub async fn claim(store: &Store, claim: Claim) -> Result<Claimed> {
    let _turn = store.turn(&claim.lease.tenant, For::Ledger).await?;
    for _ in 0..CLAIM_TRIES {
        let row = match claim_once(store, &claim).await {
            Err(error) if error.was_rolled_back() => continue,
            row => row?,
        };
        match row {
            Some(row) if row.won => return Ok(Claimed::Won(row.known()?)),
            Some(row) if !row.leased => return Ok(Claimed::LeaseOver),
            Some(row) => {
                let known = row.known()?;
                let freed_meanwhile = known.state == State::Released && known.digest == claim.digest;
                if !freed_meanwhile {
                    return Ok(Claimed::Found(known));
                }
            }
            None if !lease_holds(store, &claim.lease).await? => return Ok(Claimed::LeaseOver),
            None => {}
        }
        if let Some(ms) = rate::blocked(store, &claim.lease.tenant, &claim.meter, &claim.account).await? {
            return Ok(Claimed::Blocked { ms });
        }
    }
    Err(Error::Corrupt("an effect kept changing while it was being claimed".to_owned()))
}

struct Row {
    won: bool,
    leased: bool,
    state: String,
    digest: Vec<u8>,
    holder_run: Uuid,
    holder_token: i64,
    holder_send: i32,
    holder_alive: bool,
    wire_key: Option<String>,
    carrier: Option<String>,
    also: Option<String>,
    resend: String,
    on_unknown: String,
    lookup: bool,
    send_again: bool,
    first_sent_at: DateTime<Utc>,
    body_digest: Option<Vec<u8>>,
    sealed_with: Option<String>,
    window_left_ms: Option<i64>,
    source: Option<String>,
    status: Option<i32>,
    headers: Option<String>,
    body: Option<Vec<u8>>,
}

impl Row {
    fn known(self) -> Result<Known> {
        let answer = self.status.zip(self.source).map(|(status, source)| Answer {
            status,
            headers: self.headers.unwrap_or_else(|| "[]".to_owned()),
            body: self.body,
            source,
            sealed_with: self.sealed_with,
        });
        Ok(Known {
            state: word(&self.state)?,
            digest: self.digest,
            holder: Holder { run_id: self.holder_run, token: self.holder_token, send: self.holder_send },
            holder_alive: self.holder_alive,
            wire_key: self.wire_key,
            carrier: self.carrier,
            also: self.also,
            resend: word(&self.resend)?,
            on_unknown: word(&self.on_unknown)?,
            lookup: self.lookup,
            send_again: self.send_again,
            first_sent_at: self.first_sent_at,
            body_digest: self.body_digest,
            window_left_ms: self.window_left_ms,
            answer,
        })
    }
}

fn word<T: std::str::FromStr<Err = crate::effect::UnknownWord>>(text: &str) -> Result<T> {
    text.parse().map_err(|e: crate::effect::UnknownWord| Error::Corrupt(e.to_string()))
}

async fn claim_once(store: &Store, claim: &Claim) -> Result<Option<Row>> {
    let row = sqlx::query_as!(
        Row,
        r#"with lease as (
             select 1 from runs
             where tenant = $1 and run_id = $2 and token = $3 and state = 'running' and due_at > deedbox_now()
             for share),
           blocked as (
             select from rates where tenant = $1 and meter = $24 and account = $9 and blocked_until > deedbox_now()),
           claimed as (
             insert into effects (tenant, effect_id, keying, identity, run_id, provider, account, profile_version,
               method, url, digest, wire_key, carrier, window_ms, window_from, resend, on_unknown, also, lookup, look_at,
               lookup_sealed_with, streamed, state, holder_run, holder_token, holder_send, first_sent_at, last_sent_at)
             select $1, $5, $6, $7, $2, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21,
               case when $21::text is not null then deedbox_now() end, $22, $23, 'claimed', $2, $3, 1, deedbox_now(), deedbox_now()
             from lease where not exists (select from blocked)
             on conflict (tenant, effect_id) do update set state = 'claimed', holder_run = $2, holder_token = $3, holder_send = effects.holder_send + 1,
                 last_sent_at = deedbox_now(), settled_at = null, send_again = false
             where effects.state = 'released' and effects.digest = $13
             returning *),
           sent as (
             insert into sends (tenant, effect_id, send, run_id, attempt, token, started_at)
             select tenant, effect_id, holder_send, $2, $4, $3, deedbox_now() from claimed)
           select true as "won!", true as "leased!", state as "state!", digest as "digest!",
                  holder_run as "holder_run!", holder_token as "holder_token!", holder_send as "holder_send!",
                  true as "holder_alive!", wire_key, carrier, also, resend as "resend!", on_unknown as "on_unknown!",
                  lookup is not null as "lookup!", send_again as "send_again!",
                  first_sent_at as "first_sent_at!", body_digest, sealed_with, (extract(epoch from
                    case window_from when 'first' then first_sent_at else last_sent_at end - deedbox_now()) * 1000
                   + window_ms)::bigint as window_left_ms,
                  source, status, headers, body
           from claimed
           union all
           select false, exists (select from lease), state, digest, holder_run, holder_token, holder_send,
                  exists (select from runs h where h.tenant = e.tenant and h.run_id = e.holder_run
                          and h.token = e.holder_token and h.state = 'running' and h.due_at > deedbox_now()),
                  wire_key, carrier, also, resend, on_unknown, lookup is not null, send_again, first_sent_at,
                  body_digest, sealed_with, (extract(epoch from
                    case window_from when 'first' then first_sent_at else last_sent_at end - deedbox_now()) * 1000
                   + window_ms)::bigint,
                  source, status, headers, body
           from effects e
           where tenant = $1 and effect_id = $5 and not exists (select from claimed)"#,
        claim.lease.tenant,
        claim.lease.run_id,
        claim.lease.token,
        claim.attempt,
        &claim.effect_id[..],
        claim.keying,
        claim.identity,
        claim.provider,
        claim.account,
        claim.profile_version,
        claim.method,
        claim.url,
        &claim.digest[..],
        claim.wire_key,
        claim.carrier,
        claim.window_ms,
        claim.window_from,
        claim.resend.as_str(),
        claim.on_unknown.as_str(),
        claim.also,
        claim.lookup,
        claim.lookup_sealed_with,
        claim.streamed,
        claim.meter
    );
    bounded(row.fetch_optional(&store.pool)).await
}

async fn lease_holds(store: &Store, lease: &Lease) -> Result<bool> {
    let row = sqlx::query_scalar!(
        "select 1 as one from runs
         where tenant = $1 and run_id = $2 and token = $3 and state = 'running' and due_at > deedbox_now()",
        lease.tenant,
        lease.run_id,
        lease.token
    );
    Ok(bounded(row.fetch_optional(&store.pool)).await?.is_some())
}

/// What came of taking an effect over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is the caller's, for the send of this number.
    Won { send: i32 },
    /// The lease is over or somebody else took it first: nothing was changed.
    Lost,
    /// The provider asked for a pause, which goes on for so long: nothing was changed.
    Blocked { ms: u64 },
}

/// Takes over a claimed effect from a holder that is done with it, for another send.
pub async fn resend(store: &Store, claim: &Claim, from: Holder) -> Result<Taken> {
    let lease = &claim.lease;
    let send = sqlx::query_scalar!(
        r#"with lease as (
             select 1 from runs
             where tenant = $1 and run_id = $2 and token = $3 and state = 'running' and due_at > deedbox_now()
             for share),
           taken as (
             update effects e
             set holder_run = $2, holder_token = $3, holder_send = e.holder_send + 1,
                 last_sent_at = deedbox_now(), send_again = false
             from lease
             where e.tenant = $1 and e.effect_id = $5 and e.state = 'claimed' and e.holder_run = $6
               and e.holder_token = $7 and e.holder_send = $8
               and not exists (
                 select from rates where tenant = $1 and meter = $9 and account = $10 and blocked_until > deedbox_now())
             returning e.holder_send),
           closed as (
             update sends s set ended_at = deedbox_now(), result = 'unknown'
             from taken where s.tenant = $1 and s.effect_id = $5 and s.send = $8 and s.ended_at is null)
           insert into sends (tenant, effect_id, send, run_id, attempt, token, started_at)
           select $1, $5, holder_send, $2, $4, $3, deedbox_now() from taken
           returning send"#,
        lease.tenant,
        lease.run_id,
        lease.token,
        claim.attempt,
        &claim.effect_id[..],
        from.run_id,
        from.token,
        from.send,
        claim.meter,
        claim.account
    );
    match bounded(send.fetch_optional(&store.pool)).await {
        Err(error) if error.was_rolled_back() => Ok(Taken::Lost),
        Err(error) => Err(error),
        Ok(Some(send)) => Ok(Taken::Won { send }),
        Ok(None) => {
            let blocked = rate::blocked(store, &lease.tenant, &claim.meter, &claim.account).await?;
            Ok(blocked.map_or(Taken::Lost, |ms| Taken::Blocked { ms }))
        }
    }
}

/// What a send learned, and the state that it leaves the effect in.
#[derive(Clone, Debug)]
pub struct Settlement {
    pub tenant: String,
    pub effect_id: [u8; 32],
    pub holder: Holder,
    pub learned: Learned,
    /// Claimed, when nobody knows and sending again is safe.
    pub state: State,
    /// The status of the send's answer, also of one that is not final.
    pub status: Option<i32>,
    /// The final answer, for a completed effect.
    pub answer: Option<Answer>,
    /// Of a body that was streamed and went out whole.
    pub body_digest: Option<[u8; 32]>,
    /// A person's leave for one more send stands: nothing was sent.
    pub leave: bool,
}

/// Settles an effect as long as the same send still holds it, even after its lease is over; what the send learned is
/// kept on its own row in any case. False when another send has taken the effect or it is no longer claimed.
pub async fn settle(store: &Store, settlement: &Settlement) -> Result<bool> {
    let _turn = store.turn(&settlement.tenant, For::Ledger).await?;
    let answer = settlement.answer.as_ref();
    let settled = sqlx::query_scalar!(
        r#"with settled as (
             update effects
             set state = $6, status = $9, headers = $10, body = $11, source = $12,
                 sealed_with = $13, body_digest = coalesce($14, body_digest), send_again = send_again or $15,
                 doubled = doubled or (resend = 'unsafe' and holder_send > 1 and $9 < 400 and exists (
                   select from sends s where s.tenant = $1 and s.effect_id = $2 and s.send <> $5
                     and s.result = 'answered' and s.status < 400)),
                 settled_at = case when $6 = 'claimed' then null else deedbox_now() end
             where tenant = $1 and effect_id = $2 and holder_run = $3 and holder_token = $4 and holder_send = $5
               and state = 'claimed'
             returning 1),
           sent as (
             update sends set ended_at = deedbox_now(), result = $7, status = $8
             where tenant = $1 and effect_id = $2 and send = $5 and (result is null or result = 'unknown'))
           select count(*) as "count!" from settled"#,
        settlement.tenant,
        &settlement.effect_id[..],
        settlement.holder.run_id,
        settlement.holder.token,
        settlement.holder.send,
        settlement.state.as_str(),
        settlement.learned.as_str(),
        settlement.status,
        answer.map(|a| a.status),
        answer.map(|a| a.headers.as_str()),
        answer.and_then(|a| a.body.as_deref()),
        answer.map(|a| a.source.as_str()),
        answer.and_then(|a| a.sealed_with.as_deref()),
        settlement.body_digest.as_ref().map(|digest| &digest[..]),
        settlement.leave
    );
    Ok(bounded(settled.fetch_one(&store.pool)).await? == 1)
}
