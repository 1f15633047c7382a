//! Late proof: a send that no longer holds its effect learned that it succeeded. Rare, so it may take a transaction of
//! two statements: the second wakes the runs that wait for the effect, and must see those that began to wait meanwhile.

use super::effect::{Answer, Holder};
use super::{Error, Result, Store};
use crate::effect::{Event, Resend, State, repeats, transition};

/// Completes the effect with the success that came late, if its state allows it; a recorded refusal gives way to it. True when the world changed twice.
pub async fn prove(store: &Store, tenant: &str, effect_id: &[u8; 32], from: Holder, answer: &Answer) -> Result<bool> {
    retried!(async {
        let mut tx = store.begin().await?;
        let locked = sqlx::query!(
            "select state, resend from effects where tenant = $1 and effect_id = $2 for update",
            tenant,
            &effect_id[..]
        );
        let Some(row) = locked.fetch_optional(&mut *tx).await? else { return Ok(false) };
        // Only now that the effect is locked: what the other sends learned is to be seen.
        let applied_twice = sqlx::query_scalar!(
            r#"select exists (select from sends where tenant = $1 and effect_id = $2 and send <> $3
                              and result = 'answered' and status < 400) as "twice!""#,
            tenant,
            &effect_id[..],
            from.send
        )
        .fetch_one(&mut *tx)
        .await?;
        let corrupt = |e: crate::effect::UnknownWord| Error::Corrupt(e.to_string());
        let state: State = row.state.parse().map_err(corrupt)?;
        let resend: Resend = row.resend.parse().map_err(corrupt)?;
        let event = Event::LateProof { repeated: applied_twice && repeats(resend, true) };
        let Ok(next) = transition(Some(state), event) else { return Ok(false) };
        sqlx::query!(
            "update effects
             set state = $3, doubled = doubled or $4,
                 settled_at = case when state = 'completed' then settled_at else deedbox_now() end,
                 status = case when refused then $5 else status end,
                 headers = case when refused then $6 else headers end,
                 body = case when refused then $7 else body end,
                 source = case when refused then $8 else source end,
                 sealed_with = case when refused then $9 else sealed_with end
             from (select status is null or status >= 400 as refused from effects where tenant = $1 and effect_id = $2) as recorded
             where tenant = $1 and effect_id = $2",
            tenant,
            &effect_id[..],
            next.state.as_str(),
            next.doubled,
            answer.status,
            answer.headers,
            answer.body,
            answer.source,
            answer.sealed_with
        )
        .execute(&mut *tx)
        .await?;
        wake_waiting(&mut tx, tenant, effect_id).await?;
        tx.commit().await?;
        Ok(next.doubled)
    })
}

/// Makes the runs ready that wait for the effect.
pub(super) async fn wake_waiting(tx: &mut sqlx::PgConnection, tenant: &str, effect_id: &[u8; 32]) -> Result<()> {
    sqlx::query!(
        "with woken as (
           update runs
           set state = 'queued', waiting_effect = null,
               rank = case when paused_at is null then deedbox_rank(deedbox_now(), priority) end,
               due_at = case when paused_at is not null then deedbox_now() end
           where tenant = $1 and waiting_effect = $2 and state = 'waiting'
           returning rank)
         select pg_notify('deedbox_due', '') from woken where rank is not null limit 1",
        tenant,
        &effect_id[..]
    )
    .fetch_all(tx)
    .await?;
    Ok(())
}
