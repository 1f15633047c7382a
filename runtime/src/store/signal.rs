//! Signals: messages to runs. A key counts once in the life of a run. What a poll or a wait of the guest gave is recorded
//! under the lease before the guest gets it, so that every attempt is given the same.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::effect::Answer as Answered;
use super::lease::Lease;
use super::resolution::{self, Outcome, Resolution, Resolved};
use super::{Db, Error, Result, Store, Tx, big, bounded};
use crate::key::EffectId;

/// A signal to deliver. `payload` is a JSON text.
#[derive(Clone, Debug)]
pub struct Delivery {
    pub name: String,
    pub payload: String,
    pub idempotency_key: Option<String>,
}

/// What came of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    Fresh,
    /// The key was there: nothing was added.
    Duplicate,
    /// The run has ended.
    Ended,
    /// So many wait to be read that no more are taken.
    Full,
    Unknown,
}

/// An open effect of the run that a signal settles.
pub struct Resolving {
    pub named: Named,
    pub outcome: Outcome,
    /// Who says so.
    pub by: String,
    pub in_flight_ms: u64,
    /// For an effect that happened.
    pub answer: Option<Answered>,
    /// Seals the answer, if answers are sealed.
    pub seal: Box<dyn Fn(EffectId, Answered) -> Answered + Send + Sync>,
}

impl std::fmt::Debug for Resolving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resolving").field("named", &self.named).field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

/// How a signal names an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    Id([u8; 32]),
    WireKey(String),
}

/// What came of a delivery and of the effect that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    pub delivered: Delivered,
    /// None: it names none, or was not fresh. Nothing is delivered when the effect is unknown or it is too early.
    pub resolved: Option<Resolved>,
}

/// Delivers one signal, wakes the run if it waits for it, and settles the effect that it names. Nothing of it may be committed
/// when the effect is unknown or it is too early.
pub async fn deliver_resolving(
    tx: &mut Tx,
    tenant: &str,
    run_id: Uuid,
    delivery: &Delivery,
    max_unread: u64,
    resolving: Option<&Resolving>,
) -> Result<Done> {
    let delivered = deliver(tx, tenant, run_id, delivery, max_unread).await?;
    let resolved = match resolving {
        Some(resolving) if delivered == Delivered::Fresh => Some(resolve_in(tx, tenant, run_id, resolving).await?),
        _ => None,
    };
    Ok(Done { delivered, resolved })
}

async fn resolve_in(tx: &mut Tx, tenant: &str, run_id: Uuid, resolving: &Resolving) -> Result<Resolved> {
    let (id, wire_key) = match &resolving.named {
        Named::Id(id) => (Some(&id[..]), None),
        Named::WireKey(key) => (None, Some(key.as_str())),
    };
    let found = sqlx::query_scalar!(
        "select e.effect_id from effects e
         where e.tenant = $1 and (e.effect_id = $3 or e.wire_key = $4)
           and e.effect_id in (select s.effect_id from sends s where s.tenant = $1 and s.run_id = $2)",
        tenant,
        run_id,
        id,
        wire_key
    );
    let Some(found) = found.fetch_optional(tx.connection()).await? else { return Ok(Resolved::Unknown) };
    let effect_id: [u8; 32] = found.try_into().map_err(|_| Error::Corrupt("an effect's id".to_owned()))?;
    let answer = resolving.answer.clone().map(|answer| (resolving.seal)(EffectId(effect_id), answer));
    let resolution = Resolution {
        effect_id,
        outcome: resolving.outcome,
        by: resolving.by.clone(),
        note: "a signal named it".to_owned(),
        answer,
        in_flight_ms: resolving.in_flight_ms,
    };
    resolution::resolve_in(tx, tenant, &resolution, true).await
}

/// Delivers one signal. The run's row is locked first, so that the delivery comes before the run's end or after it.
pub async fn deliver(
    tx: &mut Tx,
    tenant: &str,
    run_id: Uuid,
    delivery: &Delivery,
    max_unread: u64,
) -> Result<Delivered> {
    let run = sqlx::query!(
        r#"select ended_at is not null as "ended!", signals_received from runs
           where tenant = $1 and run_id = $2 for update"#,
        tenant,
        run_id
    )
    .fetch_optional(tx.connection())
    .await?;
    let Some(run) = run else { return Ok(Delivered::Unknown) };
    if let Some(key) = &delivery.idempotency_key
        && is_known(&mut *tx, tenant, run_id, key).await?
    {
        return Ok(Delivered::Duplicate);
    }
    if run.ended {
        return Ok(Delivered::Ended);
    }
    if run.signals_received >= big(max_unread) && unread(tx, tenant, run_id).await? >= big(max_unread) {
        return Ok(Delivered::Full);
    }
    sqlx::query!(
        "with run as (
           update runs
           set signals_received = signals_received + 1,
               state = case when state = 'waiting' and waiting_signal = $3 then 'queued' else state end,
               rank = case when state = 'waiting' and waiting_signal = $3 and paused_at is null
                           then deedbox_rank(deedbox_now(), priority) else rank end,
               due_at = case when state = 'waiting' and waiting_signal = $3
                             then case when paused_at is not null then deedbox_now() end else due_at end
           where tenant = $1 and run_id = $2
           returning signals_received, state, rank),
         added as (
           insert into signals (tenant, run_id, sequence, name, payload, idempotency_key)
           select $1, $2, signals_received, $3, $4, $5 from run)
         select case when state = 'running' then pg_notify('deedbox_signal', $1 || '/' || $2::text)
                     when rank is not null then pg_notify('deedbox_due', '') end
         from run",
        tenant,
        run_id,
        delivery.name,
        delivery.payload,
        delivery.idempotency_key
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(Delivered::Fresh)
}

/// Whether a signal of this key was delivered to the run.
pub async fn is_known(mut db: impl Db, tenant: &str, run_id: Uuid, key: &str) -> Result<bool> {
    let found = sqlx::query_scalar!(
        r#"select exists (select from signals where tenant = $1 and run_id = $2 and idempotency_key = $3) as "found!""#,
        tenant,
        run_id,
        key
    );
    bounded(found.fetch_one(&mut *db.connection().await?)).await
}

async fn unread(tx: &mut Tx, tenant: &str, run_id: Uuid) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"select count(*) as "count!" from signals where tenant = $1 and run_id = $2 and not read"#,
        tenant,
        run_id
    );
    Ok(count.fetch_one(tx.connection()).await?)
}

/// A signal as its owner sees it. `payload` is a JSON text.
#[derive(Clone, Debug)]
pub struct Signal {
    pub sequence: i64,
    pub name: String,
    pub payload: String,
    pub received_at: DateTime<Utc>,
    pub read: bool,
}

/// The signals of a run after a sequence number, in their order.
pub async fn list(store: &Store, tenant: &str, run_id: Uuid, after: i64, limit: i64) -> Result<Vec<Signal>> {
    let rows = sqlx::query_as!(
        Signal,
        "select sequence, name, payload, received_at, read from signals
         where tenant = $1 and run_id = $2 and sequence > $3 order by sequence limit $4",
        tenant,
        run_id,
        after,
        limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// The guest's n-th poll or wait for a name.
#[derive(Clone, Debug)]
pub struct Ask {
    pub lease: Lease,
    pub kind: Kind,
    pub name: String,
    pub ordinal: i32,
    /// Of a wait, counted from its first attempt; none: for ever.
    pub timeout_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Poll,
    Wait,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Poll => "poll",
            Self::Wait => "wait",
        }
    }
}

/// What the guest is given.
#[derive(Clone, Debug)]
pub enum Answer {
    Signal {
        sequence: i64,
        payload: String,
    },
    /// There was none, or not in time.
    Nothing,
    /// There is none yet. `seen`: the signals that this answer knew of.
    Open {
        seen: i64,
        until: Option<DateTime<Utc>>,
        left_ms: Option<i64>,
    },
    LeaseOver,
}

/// Gives what was recorded; else the oldest unread signal of that name that came in time, and records it; else, for a poll or
/// when the time is over, records that there was none; but not while a signal is there that this look did not see, because it
/// was just being delivered. One outcome at the edge: a signal counts by when it was received,
/// not by when somebody looks.
pub async fn ask(store: &Store, ask: &Ask) -> Result<Answer> {
    let row = sqlx::query!(
        r#"with lease as (
             select signals_received from runs
             where tenant = $1 and run_id = $2 and token = $3 and state = 'running' and due_at > deedbox_now()
             for share),
           counted as (
             select coalesce(max(sequence), 0) as seen from signals where tenant = $1 and run_id = $2),
           known as (
             select deadline_at, settled_at, sequence from signal_reads
             where tenant = $1 and run_id = $2 and kind = $4 and name = $5 and ordinal = $6),
           until as (
             select case when exists (select from known) then (select deadline_at from known)
                         when $4 = 'poll' then deedbox_now()
                         else deedbox_now() + $7 * interval '1 millisecond' end as at),
           first as (
             select s.sequence from signals s, until
             where s.tenant = $1 and s.run_id = $2 and s.name = $5 and not s.read
               and (until.at is null or s.received_at <= until.at)
               and exists (select from lease)
               and not exists (select from known where settled_at is not null)
             order by s.sequence limit 1),
           taken as (
             update signals s set read = true from first
             where s.tenant = $1 and s.run_id = $2 and s.sequence = first.sequence and not s.read
             returning s.sequence),
           noted as (
             insert into signal_reads (tenant, run_id, kind, name, ordinal, deadline_at, settled_at, sequence)
             select $1, $2, $4, $5, $6, until.at,
                    case when exists (select from taken)
                           or until.at <= deedbox_now() and (select signals_received from lease) = (select seen from counted)
                         then deedbox_now() end,
                    (select sequence from taken)
             from until
             where exists (select from lease) and not exists (select from known where settled_at is not null)
             on conflict (tenant, run_id, kind, name, ordinal) do update
             set settled_at = excluded.settled_at, sequence = excluded.sequence
             returning settled_at, sequence)
           select exists (select from lease) as "leased!",
                  coalesce((select settled_at from known), (select settled_at from noted)) is not null as "settled!",
                  s.sequence as "sequence?", s.payload as "payload?",
                  (select at from until) as until,
                  (select (extract(epoch from at - deedbox_now()) * 1000)::bigint from until) as left_ms,
                  (select seen from counted) as "seen!"
           from (select 1) as one
           left join signals s on s.tenant = $1 and s.run_id = $2
             and s.sequence = coalesce((select sequence from known), (select sequence from taken))"#,
        ask.lease.tenant,
        ask.lease.run_id,
        ask.lease.token,
        ask.kind.as_str(),
        ask.name,
        ask.ordinal,
        ask.timeout_ms.map(|ms| big(ms) as f64)
    );
    let row = bounded(row.fetch_one(&store.pool)).await?;
    Ok(match (row.leased, row.settled, row.sequence.zip(row.payload)) {
        (false, ..) => Answer::LeaseOver,
        (true, _, Some((sequence, payload))) => Answer::Signal { sequence, payload },
        (true, true, None) => Answer::Nothing,
        (true, false, None) => Answer::Open { seen: row.seen, until: row.until, left_ms: row.left_ms },
    })
}
