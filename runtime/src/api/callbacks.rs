//! `/v1/runs/{run}/callback` and `/v1/callbacks`: what became of the messages that tell of the ends of runs, and sending one
//! once more. Who may be told is said at the start of a run.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query};
use super::keyed::{Answer, Failed, Keyed, Work};
use super::page::{self, Page};
use super::time::Time;
use super::{Api, body, name, runs};
use crate::store::callback::{self, Filter, Redelivered};
use crate::store::{Tx, run};

const STATES: [&str; 4] = ["pending", "due", "delivered", "failed"];

/// A callback. `state` is `pending` until the run has ended, then `due`, `delivered` or `failed`.
#[derive(Serialize, ToSchema)]
pub struct Callback {
    run_id: Uuid,
    url: String,
    /// The name of the secret that signs.
    secret: String,
    state: String,
    /// The id of the message, the same in every try; null until the run has ended.
    webhook_id: Option<String>,
    /// Begun since the message became due.
    tries: i32,
    /// The next try; null while one is under way, and when there will be none.
    next_at: Option<Time>,
    /// Of the last answer; null when the last try had none.
    last_status: Option<i32>,
    last_error: Option<String>,
    delivered_at: Option<Time>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct List {
    state: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

/// Shows what became of the message that tells of the end of a run.
#[utoipa::path(
    get, path = "/runs/{run}/callback", operation_id = "show_callback", tag = "callbacks",
    responses((status = 200, body = Callback)), security(("bearer" = ["read"]))
)]
pub async fn show(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(run): Path<String>,
) -> Result<Json<Callback>> {
    let run_id = name::uuid(&run).ok_or_else(runs::unknown)?;
    if let Some(row) = callback::find(&api.store, &caller.tenant, run_id).await? {
        return Ok(Json(row.into()));
    }
    match run::find(&api.store, &caller.tenant, run_id).await? {
        Some(_) => Err(none()),
        None => Err(runs::unknown()),
    }
}

/// Lists the callbacks, those of the newest runs first.
#[utoipa::path(
    get, path = "/callbacks", operation_id = "list_callbacks", tag = "callbacks",
    params(List), responses((status = 200, body = Page<Callback>)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(query): Query<List>,
) -> Result<Json<Page<Callback>>> {
    runs::check_state(query.state.as_deref(), &STATES)?;
    let limit = page::limit(query.limit, &api.config.api)?;
    let filter = Filter { state: query.state, after: page::place(query.after.as_deref())?, limit: page::rows(limit) };
    let mut rows = callback::list(&api.store, &caller.tenant, &filter).await?;
    let more = page::cut(&mut rows, limit);
    let after = rows.last().filter(|_| more).map(|row| page::cursor(row.created_at, &row.run_id));
    Ok(Json(Page { items: rows.into_iter().map(Callback::from).collect(), after }))
}

/// Sends the message of the run's last end again, under the same id.
#[utoipa::path(
    post, path = "/runs/{run}/callback/redeliver", operation_id = "redeliver_callback", tag = "callbacks",
    responses((status = 202, body = Callback)), security(("bearer" = ["run"]))
)]
pub async fn redeliver(
    State(api): State<Api>,
    Path(run): Path<String>,
    request: Keyed<scope::Run, body::Nothing>,
) -> Result<Response> {
    let prepared = async {
        let run_id = name::uuid(&run).ok_or_else(runs::unknown)?;
        Ok(Redeliver { tenant: request.caller.tenant.clone(), run_id })
    };
    request.carry_out(&api, prepared).await
}

struct Redeliver {
    tenant: String,
    run_id: Uuid,
}

impl Work for Redeliver {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match callback::redeliver(tx, &self.tenant, self.run_id).await? {
            Redelivered::Due(row) => Ok(Answer::json(StatusCode::ACCEPTED, &Callback::from(row))?),
            Redelivered::NotEnded { state } => {
                Err(Problem::run_state(&state, "there is nothing to tell before it has ended").into())
            }
            Redelivered::UnderWay => Err(Problem::not_yet(
                "the callback is being sent just now: look what becomes of it, and ask again if it does not arrive",
            )
            .into()),
            Redelivered::NoCallback => Err(none().into()),
            Redelivered::UnknownRun => Err(runs::unknown().into()),
        }
    }
}

fn none() -> Problem {
    Problem::not_found("callback: the run was started without one")
}

impl From<callback::Callback> for Callback {
    fn from(row: callback::Callback) -> Self {
        Self {
            run_id: row.run_id,
            url: row.url,
            secret: row.secret,
            state: row.state,
            webhook_id: row.webhook_id,
            tries: row.tries,
            next_at: row.next_at.map(Time::from),
            last_status: row.last_status,
            last_error: row.last_error,
            delivered_at: row.delivered_at.map(Time::from),
        }
    }
}
