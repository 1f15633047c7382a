//! Open questions: which are to be asked about next, and how they are settled. Settling one is rare, so it may take a
//! transaction: the effect, the record of who settled it, and the runs that wait for it change together.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::effect::Answer;
use super::late::wake_waiting;
use super::{Db, Error, Result, Store, Tx, big, bounded, storable};
use crate::effect::{Event, State, transition};

/// What is said about an effect whose outcome is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Happened,
    DidNotHappen,
    /// Nobody knows, and it is to be sent once more all the same.
    SendAgain,
}

impl Outcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Happened => "happened",
            Self::DidNotHappen => "did-not-happen",
            Self::SendAgain => "send-again",
        }
    }

    const fn event(self) -> Event {
        match self {
            Self::Happened => Event::Happened,
            Self::DidNotHappen => Event::DidNotHappen,
            Self::SendAgain => Event::SendAgain,
        }
    }
}

/// An answer to an open question.
#[derive(Clone, Debug)]
pub struct Resolution {
    pub effect_id: [u8; 32],
    pub outcome: Outcome,
    /// Who says so.
    pub by: String,
    /// Why, for whoever reads it later.
    pub note: String,
    /// For an effect that happened.
    pub answer: Option<Answer>,
    /// How long after the question was opened its last send may still arrive.
    pub in_flight_ms: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolved {
    Done(State),
    Unknown,
    /// Its outcome is no open question.
    NotOpen(State),
    /// The last send may still arrive: it may not be called undone before this time has passed.
    TooEarly {
        ms: i64,
    },
}

/// Settles an open question, records who did, and wakes the runs that wait for it.
pub async fn resolve(store: &Store, tenant: &str, resolution: &Resolution) -> Result<Resolved> {
    retried!(async {
        let mut tx = store.transaction().await?;
        let resolved = resolve_in(&mut tx, tenant, resolution, false).await?;
        tx.commit().await?;
        Ok(resolved)
    })
}

/// The same inside a transaction. `proof`: who says that it happened has it from the provider, so that it also settles an
/// effect whose send is still under way, as late proof.
pub async fn resolve_in(tx: &mut Tx, tenant: &str, resolution: &Resolution, proof: bool) -> Result<Resolved> {
    let locked = sqlx::query!(
        r#"select state, (extract(epoch from settled_at - deedbox_now()) * 1000)::bigint + $3 as early_ms
           from effects where tenant = $1 and effect_id = $2 for update"#,
        tenant,
        &resolution.effect_id[..],
        big(resolution.in_flight_ms)
    );
    let Some(row) = locked.fetch_optional(tx.connection()).await? else { return Ok(Resolved::Unknown) };
    let state: State = row.state.parse().map_err(|e: crate::effect::UnknownWord| Error::Corrupt(e.to_string()))?;
    let event = match (state, resolution.outcome) {
        (State::Claimed, Outcome::Happened) if proof => Event::LateProof { repeated: false },
        (_, outcome) => outcome.event(),
    };
    let Ok(next) = transition(Some(state), event) else { return Ok(Resolved::NotOpen(state)) };
    let early = row.early_ms.unwrap_or(0);
    if resolution.outcome == Outcome::DidNotHappen && early > 0 {
        return Ok(Resolved::TooEarly { ms: early });
    }
    let answer = resolution.answer.as_ref();
    sqlx::query!(
        "update effects
         set state = $3, settled_at = case when $3 = 'claimed' then null else deedbox_now() end,
             send_again = $3 = 'claimed', status = $4, headers = $5, body = $6, source = $7,
             sealed_with = $8
         where tenant = $1 and effect_id = $2",
        tenant,
        &resolution.effect_id[..],
        next.state.as_str(),
        answer.map(|a| a.status),
        answer.map(|a| a.headers.as_str()),
        answer.and_then(|a| a.body.as_deref()),
        answer.map(|a| a.source.as_str()),
        answer.and_then(|a| a.sealed_with.as_deref())
    )
    .execute(tx.connection())
    .await?;
    sqlx::query!(
        "insert into resolutions (tenant, resolution_id, effect_id, resolved_by, outcome, note, status)
         values ($1, $2, $3, $4, $5, $6, $7)",
        tenant,
        Uuid::now_v7(),
        &resolution.effect_id[..],
        storable(&resolution.by),
        resolution.outcome.as_str(),
        storable(&resolution.note),
        answer.map(|a| a.status)
    )
    .execute(tx.connection())
    .await?;
    wake_waiting(tx.connection(), tenant, &resolution.effect_id).await?;
    Ok(Resolved::Done(next.state))
}

/// A recorded answer to an open question.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub resolved_at: DateTime<Utc>,
    pub resolved_by: String,
    pub outcome: String,
    pub note: String,
    pub status: Option<i32>,
}

/// Who settled the effect's questions, oldest first.
pub async fn list(mut db: impl Db, tenant: &str, effect_id: &[u8]) -> Result<Vec<Recorded>> {
    let rows = sqlx::query_as!(
        Recorded,
        "select resolved_at, resolved_by, outcome, note, status from resolutions
         where tenant = $1 and effect_id = $2 order by resolved_at, resolution_id",
        tenant,
        effect_id
    );
    bounded(rows.fetch_all(&mut *db.connection().await?)).await
}

/// An open question that its provider is to be asked about now.
#[derive(Clone, Debug)]
pub struct Due {
    pub tenant: String,
    pub effect_id: Vec<u8>,
    pub run_id: Uuid,
    pub provider: String,
    pub lookup: String,
    pub lookup_sealed_with: Option<String>,
    pub first_sent_at: DateTime<Utc>,
    /// Since the question was opened: no send of it began later.
    pub open_ms: i64,
    pub looks: i32,
}

/// Takes up to `limit` questions of any tenant, those that wait longest first. Each is asked again later: after one second,
/// then twice as long every time, up to `max_pause_ms`.
pub async fn take_due(store: &Store, limit: i64, max_pause_ms: u64) -> Result<Vec<Due>> {
    let rows = sqlx::query_as!(
        Due,
        r#"with picked as (
             select tenant, effect_id from effects
             where state = 'escaped' and look_at <= deedbox_now()
             order by look_at limit $1 for update skip locked)
           update effects e
           set looks = e.looks + 1,
               look_at = deedbox_now() + least(1000 * 2.0 ^ least(e.looks, 30), $2) * interval '1 millisecond'
           from picked p where e.tenant = p.tenant and e.effect_id = p.effect_id
           returning e.tenant, e.effect_id, e.run_id, e.provider, e.lookup as "lookup!", e.lookup_sealed_with,
                     e.first_sent_at,
                     coalesce((extract(epoch from deedbox_now() - e.settled_at) * 1000)::bigint, 0) as "open_ms!",
                     e.looks"#,
        limit,
        big(max_pause_ms) as f64
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// Asks again after this time, whatever the back-off says.
pub async fn look_again(store: &Store, tenant: &str, effect_id: &[u8], after_ms: i64) -> Result<()> {
    let done = sqlx::query!(
        "update effects set look_at = deedbox_now() + $3 * interval '1 millisecond'
         where tenant = $1 and effect_id = $2 and state = 'escaped'",
        tenant,
        effect_id,
        after_ms as f64
    );
    bounded(done.execute(&store.pool)).await?;
    Ok(())
}

/// Whether another effect of about the same time is looked up in the same words, so that a look-up by its fields may find
/// that one.
pub async fn has_twin(store: &Store, due: &Due) -> Result<bool> {
    let twin = sqlx::query_scalar!(
        r#"select exists (select from effects
                          where tenant = $1 and provider = $2 and lookup = $3 and effect_id <> $4
                            and first_sent_at between $5::timestamptz - interval '2 days'
                                and $5::timestamptz + interval '2 days') as "twin!""#,
        due.tenant,
        due.provider,
        due.lookup,
        due.effect_id,
        due.first_sent_at
    );
    bounded(twin.fetch_one(&store.pool)).await
}
