//! `/v1/runs` and `/v1/activities/{name}/runs`: starting runs, looking at them, waiting for their end.

mod view;

use std::pin::pin;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderName, StatusCode, header};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::Instant;
use uuid::Uuid;

use super::auth::Caller;
use super::effects::{self, Effect};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query, stored};
use super::page::{self, Page};
use super::{Api, activities, name};
use crate::policy::{Policy, Retry};
use crate::store::{self, activity, run};

pub use view::{Attempt, Log, Run, Started, Summary};

const STATES: [&str; 6] = ["queued", "running", "waiting", "completed", "failed", "cancelled"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Any JSON value, kept as the text that was sent.
    input: Option<Box<RawValue>>,
    /// Fields that replace those of the policy's retry.
    retry: Option<serde_json::Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Seconds.
    wait: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    activity: Option<String>,
    state: Option<String>,
    after: Option<String>,
    limit: Option<u32>,
}

type Location = [(HeaderName, String); 1];

pub async fn start(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    Json(body): Json<Start>,
) -> Result<(StatusCode, Location, Json<Started>)> {
    activities::known(&name)?;
    let version = activity::find_latest(&api.store, &caller.tenant, &name).await?;
    let version = version.ok_or_else(activities::unknown)?;
    let policy: Policy = stored(&version.policy)?;
    let retry = merge(policy.retry, body.retry.unwrap_or_default()).map_err(Problem::validation)?;
    let run = run::NewRun {
        run_id: Uuid::now_v7(),
        activity: version.activity,
        version: version.version,
        input: body.input.map_or_else(|| "null".to_owned(), |input| input.get().to_owned()),
        retry: serde_json::to_string(&retry).map_err(|e| Problem::internal(e.to_string()))?,
        // Checked to be at most 1000.
        max_attempts: retry.max_attempts as i32,
    };
    let created_at = run::start(&api.store, &caller.tenant, &run).await?;
    tracing::info!(run.id = %run.run_id, activity.name = run.activity, "started");
    let location = [(header::LOCATION, format!("/v1/runs/{}", run.run_id))];
    Ok((StatusCode::CREATED, location, Json(Started::new(run, created_at))))
}

/// The snapshot; with `wait`, once the run has ended or the time is over.
pub async fn show(
    State(api): State<Api>,
    caller: Caller,
    Path(run): Path<String>,
    Query(query): Query<Wait>,
) -> Result<Json<Run>> {
    let run_id = name::uuid(&run).ok_or_else(unknown)?;
    let most = Duration::from_millis(api.config.api.max_wait_ms);
    let wait = Duration::from_secs(query.wait.unwrap_or(0)).min(most);
    let row = await_end(&api, &caller.tenant, run_id, wait).await?;
    Ok(Json(Run::new(row.ok_or_else(unknown)?)?))
}

pub async fn list(State(api): State<Api>, caller: Caller, Query(query): Query<List>) -> Result<Json<Page<Summary>>> {
    check_state(query.state.as_deref(), &STATES)?;
    query.activity.as_deref().map_or(Ok(()), |activity| name::check("activity", activity))?;
    let limit = page::limit(query.limit, &api.config.api)?;
    let filter = run::Filter {
        activity: query.activity,
        state: query.state,
        after: page::place(query.after.as_deref())?,
        limit: page::rows(limit),
    };
    let mut rows = run::list(&api.store, &caller.tenant, &filter).await?;
    let more = page::cut(&mut rows, limit);
    let after = rows.last().filter(|_| more).map(|row| page::cursor(row.created_at, &row.run_id));
    Ok(Json(Page { items: rows.into_iter().map(Summary::new).collect::<Result<_>>()?, after }))
}

pub async fn attempts(State(api): State<Api>, caller: Caller, Path(run): Path<String>) -> Result<Json<Page<Attempt>>> {
    let row = find(&api, &caller.tenant, &run).await?;
    let rows = run::list_attempts(&api.store, &caller.tenant, row.run_id).await?;
    Ok(Json(Page::whole(rows.into_iter().map(Attempt::new).collect::<Result<_>>()?)))
}

pub async fn effects(
    State(api): State<Api>,
    caller: Caller,
    Path(run): Path<String>,
    Query(query): Query<effects::OfRun>,
) -> Result<Json<Page<Effect>>> {
    let row = find(&api, &caller.tenant, &run).await?;
    Ok(Json(effects::page(&api, &caller.tenant, effects::List::of_run(row.run_id, query)).await?))
}

pub async fn log(State(api): State<Api>, caller: Caller, Path(run): Path<String>) -> Result<Json<Page<Log>>> {
    let row = find(&api, &caller.tenant, &run).await?;
    let rows = store::log::list(&api.store, &caller.tenant, row.run_id).await?;
    Ok(Json(Page::whole(rows.into_iter().map(Log::from).collect())))
}

/// Checks a state that a list is filtered by.
pub fn check_state(state: Option<&str>, states: &[&str]) -> Result<()> {
    if state.is_none_or(|state| states.contains(&state)) {
        return Ok(());
    }
    Err(Problem::validation(format!("state: must be one of {}", states.join(", "))))
}

async fn find(api: &Api, tenant: &str, run: &str) -> Result<run::Run> {
    let run_id = name::uuid(run).ok_or_else(unknown)?;
    run::find(&api.store, tenant, run_id).await?.ok_or_else(unknown)
}

fn unknown() -> Problem {
    Problem::not_found("run")
}

/// The run once it has ended, or as it is when the time is over or the node shuts down.
async fn await_end(api: &Api, tenant: &str, run_id: Uuid, wait: Duration) -> Result<Option<run::Run>> {
    let deadline = Instant::now() + wait;
    let watch = api.ended.watch(run_id);
    loop {
        let mut bell = pin!(watch.bell.notified());
        // From here on no ring is missed, so that the look below cannot come too early.
        bell.as_mut().enable();
        let row = run::find(&api.store, tenant, run_id).await?;
        let open = row.as_ref().is_some_and(|row| row.ended_at.is_none());
        if !open || Instant::now() >= deadline || api.ended.stop.is_cancelled() {
            return Ok(row);
        }
        tokio::select! {
            () = bell => {}
            () = tokio::time::sleep_until(deadline.min(Instant::now() + api.ended.poll())) => {}
            () = api.ended.stop.cancelled() => {}
        }
    }
}

/// The policy's retry with some fields replaced.
fn merge(policy: Retry, fields: serde_json::Map<String, Value>) -> std::result::Result<Retry, String> {
    let Ok(Value::Object(mut merged)) = serde_json::to_value(policy) else {
        return Err("retry: the policy's own cannot be read".to_owned());
    };
    merged.extend(fields);
    let retry: Retry = serde_json::from_value(Value::Object(merged)).map_err(|e| format!("retry: {e}"))?;
    // The rules speak of the policy; here the caller wrote the field.
    retry.check().map_err(|message| message.trim_start_matches("policy.").to_owned())?;
    Ok(retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(fields: &str) -> std::result::Result<Retry, String> {
        merge(Retry::default(), serde_json::from_str(fields).unwrap())
    }

    #[test]
    fn only_the_given_fields_of_the_retry_are_replaced() {
        assert_eq!(merged("{}").unwrap(), Retry::default());
        let one = merged(r#"{"max_attempts": 1, "jitter": "none"}"#).unwrap();
        assert_eq!((one.max_attempts, one.backoff_coefficient), (1, 2.0));
        assert_eq!(one.initial_interval, Retry::default().initial_interval);
    }

    #[test]
    fn a_wrong_retry_is_refused_with_its_field() {
        assert!(merged(r#"{"max_attempts": 0}"#).unwrap_err().starts_with("retry.max_attempts"));
        assert!(merged(r#"{"max_attemps": 1}"#).unwrap_err().contains("max_attemps"));
        assert!(merged(r#"{"initial_interval": "soon"}"#).unwrap_err().contains("soon"));
        assert!(merged(r#"{"max_attempts": null}"#).is_err());
    }

    #[test]
    fn a_state_must_be_one_that_there_is() {
        assert!(check_state(None, &STATES).is_ok() && check_state(Some("failed"), &STATES).is_ok());
        assert!(check_state(Some("done"), &STATES).is_err());
    }
}
