//! `/v1/runs` and `/v1/activities/{name}/runs`: starting runs, looking at them, waiting for their end.

mod view;

use std::pin::pin;
use std::time::Duration;

use axum::extract::State;
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;
use uuid::Uuid;

use super::auth::{Caller, scope};
use super::effects::{self, Effect};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query};
use super::page::{self, Asked, Page};
use super::{Api, name};
use crate::store::{self, run};

pub use view::{Attempt, Log, Run, Started, Summary};

/// How often those who wait look again while nothing is heard of ended runs, and while it is: a connection can die without
/// saying so.
const POLL_DEAF: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_secs(5);

pub const STATES: [&str; 6] = ["queued", "running", "waiting", "completed", "failed", "cancelled"];

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Wait {
    /// Seconds.
    wait: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct List {
    activity: Option<String>,
    state: Option<String>,
    run_name: Option<String>,
    /// `NAME:VALUE`.
    label: Option<String>,
    paused: Option<bool>,
    after: Option<String>,
    limit: Option<u32>,
}

/// Shows a run. With `wait`, once it has ended or the time is over.
#[utoipa::path(
    get, path = "/runs/{run}", operation_id = "show_run", tag = "runs",
    params(Wait), responses((status = 200, body = Run)), security(("bearer" = ["read"]))
)]
pub async fn show(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(run): Path<String>,
    Query(query): Query<Wait>,
) -> Result<Json<Run>> {
    let run_id = name::uuid(&run).ok_or_else(unknown)?;
    let most = Duration::from_millis(api.config.api.max_wait_ms);
    let wait = Duration::from_secs(query.wait.unwrap_or(0)).min(most);
    let row = await_end(&api, &caller.tenant, run_id, wait).await?;
    Ok(Json(Run::new(row.ok_or_else(unknown)?)?))
}

/// Lists the runs, newest first.
#[utoipa::path(
    get, path = "/runs", operation_id = "list_runs", tag = "runs",
    params(List), responses((status = 200, body = Page<Summary>)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(query): Query<List>,
) -> Result<Json<Page<Summary>>> {
    check_state(query.state.as_deref(), &STATES)?;
    query.activity.as_deref().map_or(Ok(()), |activity| name::check("activity", activity))?;
    query.run_name.as_deref().map_or(Ok(()), |run_name| no_control("run_name", run_name))?;
    let limit = page::limit(query.limit, &api.config.api)?;
    let filter = run::Filter {
        activity: query.activity,
        state: query.state,
        run_name: query.run_name,
        label: query.label.as_deref().map(label).transpose()?,
        paused: query.paused,
        after: page::place(query.after.as_deref())?,
        limit: page::rows(limit),
    };
    let mut rows = run::list(&api.store, &caller.tenant, &filter).await?;
    let more = page::cut(&mut rows, limit);
    let after = rows.last().filter(|_| more).map(|row| page::cursor(row.created_at, &row.run_id));
    Ok(Json(Page { items: rows.into_iter().map(Summary::new).collect::<Result<_>>()?, after }))
}

/// Lists the attempts of a run, in their order.
#[utoipa::path(
    get, path = "/runs/{run}/attempts", operation_id = "list_attempts", tag = "runs",
    params(Asked), responses((status = 200, body = Page<Attempt>)), security(("bearer" = ["read"]))
)]
pub async fn attempts(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(run): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Attempt>>> {
    let row = find(&api, &caller.tenant, &run).await?;
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::number_place(asked.after.as_deref())?;
    let rows = run::list_attempts(&api.store, &caller.tenant, row.run_id, after, page::rows(limit)).await?;
    Ok(Json(Page::of(rows, limit, |row| page::number_cursor(row.attempt), Attempt::new)?))
}

/// Lists the effects of a run, oldest first.
#[utoipa::path(
    get, path = "/runs/{run}/effects", operation_id = "list_effects_of_run", tag = "effects",
    params(effects::OfRun), responses((status = 200, body = Page<Effect>)), security(("bearer" = ["read"]))
)]
pub async fn effects(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(run): Path<String>,
    Query(query): Query<effects::OfRun>,
) -> Result<Json<Page<Effect>>> {
    let row = find(&api, &caller.tenant, &run).await?;
    Ok(Json(effects::page(&api, &caller.tenant, effects::List::of_run(row.run_id, query)).await?))
}

/// Shows what the attempts of a run have written, in the order of the attempts.
#[utoipa::path(
    get, path = "/runs/{run}/log", operation_id = "list_log", tag = "runs",
    params(Asked), responses((status = 200, body = Page<Log>)), security(("bearer" = ["read"]))
)]
pub async fn log(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(run): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Log>>> {
    let row = find(&api, &caller.tenant, &run).await?;
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::number_and_name_place(asked.after.as_deref())?;
    let rows = store::log::list(&api.store, &caller.tenant, row.run_id, after, page::rows(limit)).await?;
    let cursor = |row: &store::log::Log| page::number_and_name_cursor(row.attempt, &row.stream);
    Ok(Json(Page::of(rows, limit, cursor, |row| Ok(Log::from(row)))?))
}

/// Checks a state that a list is filtered by.
pub fn check_state(state: Option<&str>, states: &[&str]) -> Result<()> {
    if state.is_none_or(|state| states.contains(&state)) {
        return Ok(());
    }
    Err(Problem::validation(format!("state: must be one of {}", states.join(", "))))
}

/// What no text of a run can hold is not looked for.
fn no_control(field: &str, text: &str) -> Result<()> {
    match text.chars().any(char::is_control) {
        true => Err(Problem::validation(format!("{field}: must not have control characters"))),
        false => Ok(()),
    }
}

/// A label as lists are filtered by it: `NAME:VALUE`.
pub fn label(text: &str) -> Result<(String, String)> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| Problem::validation("label: must be a label's NAME:VALUE"))?;
    name::check("label", name)?;
    no_control("label", value)?;
    Ok((name.to_owned(), value.to_owned()))
}

pub async fn find(api: &Api, tenant: &str, run: &str) -> Result<run::Run> {
    let run_id = name::uuid(run).ok_or_else(unknown)?;
    run::find(&api.store, tenant, run_id).await?.ok_or_else(unknown)
}

pub fn unknown() -> Problem {
    Problem::not_found("run")
}

/// The run once it has ended, or as it is when the time is over or the node shuts down.
pub async fn await_end(api: &Api, tenant: &str, run_id: Uuid, wait: Duration) -> Result<Option<run::Run>> {
    let deadline = Instant::now() + wait;
    let wakes = api.gateway.wakes();
    let watch = wakes.ended.watch(run_id);
    loop {
        let mut bell = pin!(watch.bell.notified());
        // From here on no ring is missed, so that the look below cannot come too early.
        bell.as_mut().enable();
        let row = run::find(&api.store, tenant, run_id).await?;
        let open = row.as_ref().is_some_and(|row| row.ended_at.is_none());
        if !open || Instant::now() >= deadline || api.stop.is_cancelled() {
            return Ok(row);
        }
        let poll = if wakes.hears() { POLL } else { POLL_DEAF };
        tokio::select! {
            () = bell => {}
            () = tokio::time::sleep_until(deadline.min(Instant::now() + poll)) => {}
            () = api.stop.cancelled() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_must_be_one_that_there_is() {
        assert!(check_state(None, &STATES).is_ok() && check_state(Some("failed"), &STATES).is_ok());
        assert!(check_state(Some("done"), &STATES).is_err());
    }
}
