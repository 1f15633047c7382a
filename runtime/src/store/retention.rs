//! Retention: ended runs and what hangs on them are swept in batches once their time is over. Never a row that a live run,
//! an open question or a provider's memory of a key needs. A business effect keeps what it is and how it ended.

use super::{Result, Store, bounded};

/// Sweeps up to `limit` runs of any tenant that ended `days` ago or earlier, oldest first, with their attempts, logs,
/// checkpoints and effects; gives their number.
pub async fn sweep(store: &Store, days: u32, limit: i64) -> Result<u64> {
    let swept = sqlx::query_scalar!(
        r#"with old as (
             select r.tenant, r.run_id from runs r
             where r.ended_at < deedbox_now() - $1 * interval '1 day'
               and not exists (
                 select from sends s join effects e on e.tenant = s.tenant and e.effect_id = s.effect_id
                 where s.tenant = r.tenant and s.run_id = r.run_id
                   and (e.state in ('claimed', 'escaped')
                        or case e.window_from when 'first' then e.first_sent_at else e.last_sent_at end
                           + e.window_ms * interval '1 millisecond' > deedbox_now()))
             order by r.ended_at limit $2 for update skip locked),
           made as (
             select distinct s.tenant, s.effect_id from sends s
             join old on old.tenant = s.tenant and old.run_id = s.run_id),
           dropped as (
             delete from effects e using made
             where e.tenant = made.tenant and e.effect_id = made.effect_id and e.keying = 'activity-recipe'),
           reduced as (
             update effects e
             set headers = '[]', body = null, sealed_with = null, lookup = null,
                 look_at = null, lookup_sealed_with = null, swept_at = deedbox_now()
             from made
             where e.tenant = made.tenant and e.effect_id = made.effect_id and e.keying = 'business-identity'
               and e.state = 'completed'
               and not exists (
                 select from sends s join runs r on r.tenant = s.tenant and r.run_id = s.run_id
                 where s.tenant = e.tenant and s.effect_id = e.effect_id
                   and not exists (select from old where old.tenant = r.tenant and old.run_id = r.run_id))
             returning e.tenant, e.effect_id),
           unsent as (
             delete from sends s using reduced e where s.tenant = e.tenant and s.effect_id = e.effect_id),
           gone as (
             delete from runs r using old where r.tenant = old.tenant and r.run_id = old.run_id returning 1)
           select count(*) as "count!" from gone"#,
        f64::from(days),
        limit
    );
    Ok(u64::try_from(bounded(swept.fetch_one(&store.pool)).await?).unwrap_or(0))
}
