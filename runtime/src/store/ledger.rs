//! The ledger as people read it: effects and their sends. Nothing here changes anything; the statements that do are in
//! `effect`. Recorded headers and bodies are never read here.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::send::Send;
use super::{Db, Result, Store, bounded};

/// An effect without its answer's headers and body.
#[derive(Clone, Debug)]
pub struct Entry {
    pub effect_id: Vec<u8>,
    pub keying: String,
    /// The identity in words, for people.
    pub identity: String,
    pub state: String,
    pub provider: String,
    pub account: String,
    pub method: String,
    pub url: String,
    /// Of the request: method, URL, named headers and body.
    pub digest: Vec<u8>,
    pub wire_key: Option<String>,
    /// The run that claimed it first.
    pub run_id: Uuid,
    pub on_unknown: String,
    pub source: Option<String>,
    pub status: Option<i32>,
    pub doubled: bool,
    pub first_sent_at: DateTime<Utc>,
    pub last_sent_at: DateTime<Utc>,
    pub settled_at: Option<DateTime<Utc>>,
    /// The provider can be asked whether it happened.
    pub has_lookup: bool,
    /// How often it was asked.
    pub looks: i32,
}

/// Which effects to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub state: Option<String>,
    pub provider: Option<String>,
    /// The last effect of the page before: when it was first sent, and its id.
    pub after: Option<(DateTime<Utc>, Vec<u8>)>,
    pub limit: i64,
}

pub async fn find(mut db: impl Db, tenant: &str, effect_id: &[u8]) -> Result<Option<Entry>> {
    let row = sqlx::query_as!(
        Entry,
        r#"select effect_id, keying, identity, state, provider, account, method, url, digest, wire_key, run_id, on_unknown,
                source, status, doubled, first_sent_at, last_sent_at, settled_at, lookup is not null as "has_lookup!",
                looks
         from effects where tenant = $1 and effect_id = $2"#,
        tenant,
        effect_id
    );
    bounded(row.fetch_optional(&mut *db.connection().await?)).await
}

/// Oldest first.
pub async fn list(store: &Store, tenant: &str, filter: &Filter) -> Result<Vec<Entry>> {
    let (after_time, after_id) = filter.after.clone().unzip();
    let rows = sqlx::query_as!(
        Entry,
        r#"select effect_id, keying, identity, state, provider, account, method, url, digest, wire_key, run_id, on_unknown,
                source, status, doubled, first_sent_at, last_sent_at, settled_at, lookup is not null as "has_lookup!",
                looks
         from effects
         where tenant = $1
           and ($2::text is null or state = $2)
           and ($3::text is null or provider = $3)
           and ($4::timestamptz is null or (first_sent_at, effect_id) > ($4, $5::bytea))
         order by first_sent_at, effect_id limit $6"#,
        tenant,
        filter.state,
        filter.provider,
        after_time,
        after_id,
        filter.limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// The effects that a run sent, also those that another run claimed first; oldest first.
pub async fn list_of_run(store: &Store, tenant: &str, run_id: Uuid, filter: &Filter) -> Result<Vec<Entry>> {
    let (after_time, after_id) = filter.after.clone().unzip();
    let rows = sqlx::query_as!(
        Entry,
        r#"select effect_id, keying, identity, state, provider, account, method, url, digest, wire_key, run_id, on_unknown,
                source, status, doubled, first_sent_at, last_sent_at, settled_at, lookup is not null as "has_lookup!",
                looks
         from effects
         where tenant = $1
           and effect_id in (select s.effect_id from sends s where s.tenant = $1 and s.run_id = $2)
           and ($3::text is null or state = $3)
           and ($4::text is null or provider = $4)
           and ($5::timestamptz is null or (first_sent_at, effect_id) > ($5, $6::bytea))
         order by first_sent_at, effect_id limit $7"#,
        tenant,
        run_id,
        filter.state,
        filter.provider,
        after_time,
        after_id,
        filter.limit
    );
    bounded(rows.fetch_all(&store.pool)).await
}

/// The sends of several effects, by whichever run; those of one effect are in their order.
pub async fn list_sends(store: &Store, tenant: &str, effect_ids: &[Vec<u8>]) -> Result<Vec<Send>> {
    let rows = sqlx::query_as!(
        Send,
        r#"select s.effect_id, s.send, s.run_id, s.attempt, s.started_at, s.ended_at, s.result, s.status,
                  e.keying, e.wire_key, e.state, (s.send = e.holder_send) as "newest!"
           from sends s join effects e on e.tenant = s.tenant and e.effect_id = s.effect_id
           where s.tenant = $1 and s.effect_id = any($2) order by s.effect_id, s.send"#,
        tenant,
        effect_ids
    );
    bounded(rows.fetch_all(&store.pool)).await
}
