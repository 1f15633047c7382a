//! The note from one attempt to the next.

use uuid::Uuid;

use super::{Result, Store, bounded};

/// Saves under the lease; false when the lease is over, and then nothing is changed.
pub async fn save(store: &Store, tenant: &str, run_id: Uuid, token: i64, state: &[u8]) -> Result<bool> {
    let done = sqlx::query!(
        "with lease as (
           select 1 from runs
           where tenant = $1 and run_id = $2 and token = $3 and state = 'running' and due_at > deedbox_now()
           for share)
         insert into checkpoints (tenant, run_id, state, saved_at) select $1, $2, $4, deedbox_now() from lease
         on conflict (tenant, run_id) do update set state = excluded.state, saved_at = excluded.saved_at",
        tenant,
        run_id,
        token,
        state
    );
    Ok(bounded(done.execute(&store.pool)).await?.rows_affected() == 1)
}

pub async fn load(store: &Store, tenant: &str, run_id: Uuid) -> Result<Option<Vec<u8>>> {
    let state = sqlx::query_scalar!("select state from checkpoints where tenant = $1 and run_id = $2", tenant, run_id);
    bounded(state.fetch_optional(&store.pool)).await
}
