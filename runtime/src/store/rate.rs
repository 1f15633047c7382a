//! The pace at which a tenant may send to a provider's account, for all nodes at once: an even rate with a burst, and the
//! pause that the provider itself asked for. All by the database's clock.

use super::{Result, Store, big, bounded};

/// An even rate and how far a burst may run ahead of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Sends in a second, above 0.
    pub per_second: f64,
    /// Sends at once after a rest, at least 1.
    pub burst: u32,
}

/// Whether a send may go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admitted {
    /// After this time; its place is taken.
    After { ms: u64 },
    /// Not within the time that was allowed: come back after this one, behind the others that were sent away.
    TooEarly { ms: u64 },
}

/// Takes the next place, if it comes within `patience_ms` (the generic cell rate algorithm).
pub async fn admit(
    store: &Store,
    tenant: &str,
    meter: &str,
    account: &str,
    pace: Pace,
    patience_ms: u64,
) -> Result<Admitted> {
    let step_ms = 1000.0 / pace.per_second;
    let ahead_ms = step_ms * f64::from(pace.burst.saturating_sub(1));
    let taken = sqlx::query_scalar!(
        r#"with next as (
             insert into rates as r (tenant, meter, account, next_at)
             values ($1, $2, $3, deedbox_now() + $4 * interval '1 millisecond')
             on conflict (tenant, meter, account) do update
             set next_at = greatest(r.next_at, r.blocked_until, deedbox_now()) + $4 * interval '1 millisecond'
             where greatest(r.next_at - $5 * interval '1 millisecond', r.blocked_until)
                   <= deedbox_now() + $6 * interval '1 millisecond'
             returning next_at, blocked_until)
           select greatest(0, extract(epoch from greatest(
                    next_at - ($4::float8 + $5::float8) * interval '1 millisecond', blocked_until) - deedbox_now()) * 1000)::bigint
                    as "ms!"
           from next"#,
        tenant,
        meter,
        account,
        step_ms,
        ahead_ms,
        big(patience_ms) as f64
    );
    if let Some(ms) = bounded(taken.fetch_optional(&store.pool)).await? {
        return Ok(Admitted::After { ms: ms.unsigned_abs() });
    }
    // Those that are sent away come back one after another, at the same pace: together they would be sent away again.
    let wait = sqlx::query_scalar!(
        r#"update rates
           set deferred_until = greatest(deferred_until, next_at - $4::float8 * interval '1 millisecond', blocked_until)
                                + $5 * interval '1 millisecond'
           where tenant = $1 and meter = $2 and account = $3
           returning greatest(1, extract(epoch from deferred_until - deedbox_now()) * 1000)::bigint as "ms!""#,
        tenant,
        meter,
        account,
        ahead_ms,
        step_ms
    );
    let ms = bounded(wait.fetch_optional(&store.pool)).await?.unwrap_or(1);
    Ok(Admitted::TooEarly { ms: ms.unsigned_abs() })
}

/// How much longer the provider wants nothing; none: it takes sends.
pub async fn blocked(store: &Store, tenant: &str, meter: &str, account: &str) -> Result<Option<u64>> {
    let ms = sqlx::query_scalar!(
        r#"select ceil(extract(epoch from blocked_until - deedbox_now()) * 1000)::bigint as "ms!"
           from rates where tenant = $1 and meter = $2 and account = $3 and blocked_until > deedbox_now()"#,
        tenant,
        meter,
        account
    );
    Ok(bounded(ms.fetch_optional(&store.pool)).await?.map(i64::unsigned_abs))
}

/// The provider wants nothing for this time. A longer pause that it asked for before stands.
pub async fn block(store: &Store, tenant: &str, meter: &str, account: &str, ms: u64) -> Result<()> {
    let done = sqlx::query!(
        "insert into rates as r (tenant, meter, account, blocked_until)
         values ($1, $2, $3, deedbox_now() + $4 * interval '1 millisecond')
         on conflict (tenant, meter, account) do update set blocked_until = greatest(r.blocked_until, excluded.blocked_until)",
        tenant,
        meter,
        account,
        big(ms) as f64
    );
    bounded(done.execute(&store.pool)).await?;
    Ok(())
}
