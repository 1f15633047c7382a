//! The sends of effects: one row per transport attempt. They are written by the claims in `effect`; here they are read.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Db, Result, Store, bounded};

/// One send, with what the witness shows of its effect.
#[derive(Clone, Debug)]
pub struct Send {
    pub effect_id: Vec<u8>,
    pub send: i32,
    pub run_id: Uuid,
    pub attempt: i32,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    pub result: Option<String>,
    pub status: Option<i32>,
    pub keying: String,
    pub wire_key: Option<String>,
    /// The effect's state, which its newest send shows.
    pub state: String,
    pub newest: bool,
}

/// The sends that a run made, in the order of their claims.
pub async fn list_of_run(store: &Store, tenant: &str, run_id: Uuid) -> Result<Vec<Send>> {
    let rows = sqlx::query_as!(
        Send,
        r#"select s.effect_id, s.send, s.run_id, s.attempt, s.started_at, s.ended_at, s.result, s.status,
                  e.keying, e.wire_key, e.state, (s.send = e.holder_send) as "newest!"
           from sends s join effects e on e.tenant = s.tenant and e.effect_id = s.effect_id
           where s.tenant = $1 and s.run_id = $2 order by s.started_at, s.effect_id, s.send"#,
        tenant,
        run_id
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// The sends of an effect, by whichever run, in their order.
pub async fn list_of_effect(mut db: impl Db, tenant: &str, effect_id: &[u8]) -> Result<Vec<Send>> {
    let rows = sqlx::query_as!(
        Send,
        r#"select s.effect_id, s.send, s.run_id, s.attempt, s.started_at, s.ended_at, s.result, s.status,
                  e.keying, e.wire_key, e.state, (s.send = e.holder_send) as "newest!"
           from sends s join effects e on e.tenant = s.tenant and e.effect_id = s.effect_id
           where s.tenant = $1 and s.effect_id = $2 order by s.send"#,
        tenant,
        effect_id
    );
    bounded(rows.fetch_all(&mut *db.connection().await?)).await
}
