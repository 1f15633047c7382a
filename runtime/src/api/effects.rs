//! `/v1/effects`: the ledger for its owner, each effect with its sends. Never a recorded header or body.

use std::collections::HashMap;

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query};
use super::page::{self, Page};
use super::time::Time;
use super::{Api, name, runs};
use crate::store::ledger::{self, Entry};
use crate::store::{Tx, resolution, send};

const STATES: [&str; 4] = ["claimed", "completed", "released", "escaped"];

#[derive(Serialize, ToSchema)]
pub struct Effect {
    effect_id: String,
    keying: String,
    identity: String,
    state: String,
    provider: String,
    account: String,
    method: String,
    url: String,
    wire_key: Option<String>,
    run_id: Uuid,
    on_unknown: String,
    source: Option<String>,
    status: Option<i32>,
    doubled: bool,
    first_sent_at: Time,
    last_sent_at: Time,
    settled_at: Option<Time>,
    /// The provider is asked whether it happened, while that is not known.
    asks_provider: bool,
    /// How often it was asked.
    looks: i32,
    sends: Vec<Send>,
    /// Who settled an open question. Only where one effect is shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resolutions: Vec<Resolution>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = EffectResolution)]
struct Resolution {
    outcome: String,
    by: String,
    note: String,
    status: Option<i32>,
    at: Time,
}

#[derive(Serialize, ToSchema)]
#[schema(as = EffectSend)]
struct Send {
    send: i32,
    run_id: Uuid,
    attempt: i32,
    started_at: Time,
    ended_at: Option<Time>,
    result: Option<String>,
    status: Option<i32>,
}

#[derive(Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct List {
    state: Option<String>,
    provider: Option<String>,
    run: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

/// What may be asked of one run's effects.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OfRun {
    state: Option<String>,
    provider: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

impl List {
    pub fn of_run(run_id: Uuid, query: OfRun) -> Self {
        let OfRun { state, provider, after, limit } = query;
        Self { state, provider, run: Some(run_id.to_string()), after, limit }
    }
}

/// Lists the effects, oldest first.
#[utoipa::path(
    get, path = "/effects", operation_id = "list_effects", tag = "effects",
    params(List), responses((status = 200, body = Page<Effect>)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(query): Query<List>,
) -> Result<Json<Page<Effect>>> {
    Ok(Json(page(&api, &caller.tenant, query).await?))
}

/// Shows an effect with its sends, and who settled its questions.
#[utoipa::path(
    get, path = "/effects/{effect}", operation_id = "show_effect", tag = "effects",
    responses((status = 200, body = Effect)), security(("bearer" = ["read"]))
)]
pub async fn show(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(effect): Path<String>,
) -> Result<Json<Effect>> {
    let unknown = || Problem::not_found("effect");
    let effect_id = name::hash(&effect).ok_or_else(unknown)?;
    let mut connection = api.store.statement().await?;
    Ok(Json(find(&mut connection, &caller.tenant, &effect_id).await?))
}

/// One effect with its sends and with who settled its questions.
pub async fn find(tx: &mut Tx, tenant: &str, effect_id: &[u8; 32]) -> Result<Effect> {
    let row = ledger::find(&mut *tx, tenant, effect_id).await?.ok_or_else(|| Problem::not_found("effect"))?;
    let sends = send::list_of_effect(&mut *tx, tenant, effect_id).await?;
    let resolutions = resolution::list(&mut *tx, tenant, effect_id).await?;
    let mut effect = view(row, sends.into_iter().map(Send::from).collect());
    effect.resolutions = resolutions.into_iter().map(Resolution::from).collect();
    Ok(effect)
}

/// One page of a tenant's effects, oldest first.
pub async fn page(api: &Api, tenant: &str, query: List) -> Result<Page<Effect>> {
    runs::check_state(query.state.as_deref(), &STATES)?;
    query.provider.as_deref().map_or(Ok(()), |provider| name::check("provider", provider))?;
    let limit = page::limit(query.limit, &api.config.api)?;
    let filter = ledger::Filter {
        state: query.state,
        provider: query.provider,
        after: page::place(query.after.as_deref())?,
        limit: page::rows(limit),
    };
    let mut rows = match query.run {
        None => ledger::list(&api.store, tenant, &filter).await?,
        Some(run) => {
            let run_id = name::uuid(&run).ok_or_else(|| Problem::validation("run: must be a run's id, a UUID"))?;
            ledger::list_of_run(&api.store, tenant, run_id, &filter).await?
        }
    };
    let more = page::cut(&mut rows, limit);
    let after = rows.last().filter(|_| more).map(|row| page::cursor(row.first_sent_at, &row.effect_id));
    Ok(Page { items: with_sends(api, tenant, rows).await?, after })
}

async fn with_sends(api: &Api, tenant: &str, rows: Vec<Entry>) -> Result<Vec<Effect>> {
    let ids: Vec<_> = rows.iter().map(|row| row.effect_id.clone()).collect();
    let mut sends: HashMap<Vec<u8>, Vec<Send>> = HashMap::new();
    for mut send in ledger::list_sends(&api.store, tenant, &ids).await? {
        let effect_id = std::mem::take(&mut send.effect_id);
        sends.entry(effect_id).or_default().push(send.into());
    }
    let with = |row: Entry| {
        let sends = sends.remove(&row.effect_id).unwrap_or_default();
        view(row, sends)
    };
    Ok(rows.into_iter().map(with).collect())
}

impl From<resolution::Recorded> for Resolution {
    fn from(row: resolution::Recorded) -> Self {
        let resolution::Recorded { resolved_at, resolved_by, outcome, note, status } = row;
        Self { outcome, by: resolved_by, note, status, at: resolved_at.into() }
    }
}

impl From<send::Send> for Send {
    fn from(row: send::Send) -> Self {
        Self {
            send: row.send,
            run_id: row.run_id,
            attempt: row.attempt,
            started_at: row.started_at.into(),
            ended_at: row.ended_at.map(Time::from),
            result: row.result,
            status: row.status,
        }
    }
}

fn view(row: Entry, sends: Vec<Send>) -> Effect {
    Effect {
        effect_id: name::hex(&row.effect_id),
        keying: row.keying,
        identity: row.identity,
        state: row.state,
        provider: row.provider,
        account: row.account,
        method: row.method,
        url: row.url,
        wire_key: row.wire_key,
        run_id: row.run_id,
        on_unknown: row.on_unknown,
        source: row.source,
        status: row.status,
        doubled: row.doubled,
        first_sent_at: row.first_sent_at.into(),
        last_sent_at: row.last_sent_at.into(),
        settled_at: row.settled_at.map(Time::from),
        asks_provider: row.has_lookup,
        looks: row.looks,
        sends,
        resolutions: Vec::new(),
    }
}
