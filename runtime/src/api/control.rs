//! What owners do to their runs: cancel, pause, resume, retry; and the same for all runs of an activity.

use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::auth::Caller;
use super::error::{Problem, Result};
use super::extract::{Json, OptionalJson, Path};
use super::runs::{self, Run};
use super::{Api, activities, name};
use crate::policy::Policy;
use crate::store::activity;
use crate::store::control::{self, Bulk, Changed};

/// The longest reason, in bytes.
const MAX_REASON_BYTES: usize = 1024;

/// Runs cancelled by one request where it says nothing, and at most.
const BULK: i64 = 1_000;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    /// For whoever looks at the run later.
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelMany {
    activity: Option<String>,
    state: Option<String>,
    /// `NAME:VALUE`.
    label: Option<String>,
    created_before: Option<DateTime<Utc>>,
    reason: Option<String>,
    limit: Option<i64>,
}

#[derive(Serialize)]
pub struct CancelledMany {
    cancelled: usize,
    /// Workers have them, and stop their attempts.
    requested: usize,
    /// As many as allowed were caught: there may be more.
    more: bool,
}

type Answer = Result<(StatusCode, Json<Run>)>;

/// 200 when the run is cancelled, 202 while its worker stops the attempt.
pub async fn cancel(
    State(api): State<Api>,
    caller: Caller,
    Path(run): Path<String>,
    OptionalJson(body): OptionalJson<Cancel>,
) -> Answer {
    let run_id = name::uuid(&run).ok_or_else(runs::unknown)?;
    let reason = check_reason(body.reason)?;
    let changed = control::cancel(&api.store, &caller.tenant, run_id, reason.as_deref()).await?;
    tracing::info!(run.id = %run_id, ?changed, "cancelling");
    answer(&api, &caller, &run, changed).await
}

/// Cancels the runs that fit all that is said, oldest first.
pub async fn cancel_many(
    State(api): State<Api>,
    caller: Caller,
    Json(body): Json<CancelMany>,
) -> Result<Json<CancelledMany>> {
    runs::check_state(body.state.as_deref(), &["queued", "running", "waiting"])?;
    body.activity.as_deref().map_or(Ok(()), |activity| name::check("activity", activity))?;
    if body.activity.is_none() && body.state.is_none() && body.label.is_none() && body.created_before.is_none() {
        return Err(Problem::validation(
            "say which runs: activity, state, label or created_before; for all of them, a created_before of now",
        ));
    }
    let limit = body.limit.unwrap_or(BULK);
    if !(1..=BULK).contains(&limit) {
        return Err(Problem::validation(format!("limit: must be 1 to {BULK}")));
    }
    let bulk = Bulk {
        activity: body.activity,
        state: body.state,
        label: body.label.as_deref().map(runs::label).transpose()?,
        created_before: body.created_before,
        reason: check_reason(body.reason)?,
        limit,
    };
    let done = control::cancel_many(&api.store, &caller.tenant, &bulk).await?;
    tracing::info!(runs.cancelled = done.cancelled, runs.requested = done.requested, "cancelled many");
    let more = i64::try_from(done.cancelled + done.requested).unwrap_or(i64::MAX) >= limit;
    Ok(Json(CancelledMany { cancelled: done.cancelled, requested: done.requested, more }))
}

/// 200 when no attempt is under way, 202 while its worker stops it.
pub async fn pause(State(api): State<Api>, caller: Caller, Path(run): Path<String>) -> Answer {
    let run_id = name::uuid(&run).ok_or_else(runs::unknown)?;
    let changed = control::pause(&api.store, &caller.tenant, run_id).await?;
    answer(&api, &caller, &run, changed).await
}

pub async fn resume(State(api): State<Api>, caller: Caller, Path(run): Path<String>) -> Answer {
    let run_id = name::uuid(&run).ok_or_else(runs::unknown)?;
    let changed = control::resume(&api.store, &caller.tenant, run_id).await?;
    answer(&api, &caller, &run, changed).await
}

/// Begins a failed run again: same id, same keys.
pub async fn retry(State(api): State<Api>, caller: Caller, Path(run): Path<String>) -> Answer {
    let run_id = name::uuid(&run).ok_or_else(runs::unknown)?;
    let policy = activity::policy_of_run(&api.store, &caller.tenant, run_id).await?.ok_or_else(runs::unknown)?;
    let policy = Policy::parse(&policy).map_err(Problem::internal)?;
    let close = policy.timeouts.schedule_to_close.map(|span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX));
    let by = format!("token {}", caller.token_id);
    match control::retry(&api.store, &caller.tenant, run_id, &by, close).await? {
        Changed::Refused { state } if state == "failed" => {
            Err(Problem::run_state(&state, "another run of its run_name has not ended"))
        }
        Changed::Refused { state } => Err(Problem::run_state(&state, "only a failed run can be begun again")),
        changed => answer(&api, &caller, &run, changed).await,
    }
}

pub async fn pause_activity(State(api): State<Api>, caller: Caller, Path(name): Path<String>) -> Result<StatusCode> {
    set_paused(&api, &caller, &name, true).await
}

pub async fn resume_activity(State(api): State<Api>, caller: Caller, Path(name): Path<String>) -> Result<StatusCode> {
    set_paused(&api, &caller, &name, false).await
}

async fn set_paused(api: &Api, caller: &Caller, name: &str, paused: bool) -> Result<StatusCode> {
    activities::known(name)?;
    match control::pause_activity(&api.store, &caller.tenant, name, paused).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(activities::unknown()),
    }
}

async fn answer(api: &Api, caller: &Caller, run: &str, changed: Changed) -> Answer {
    let status = match changed {
        Changed::Done => StatusCode::OK,
        Changed::Requested => StatusCode::ACCEPTED,
        Changed::Refused { state } => return Err(Problem::run_terminal(&state)),
        Changed::Unknown => return Err(runs::unknown()),
    };
    let row = runs::find(api, &caller.tenant, run).await?;
    Ok((status, Json(Run::new(row)?)))
}

fn check_reason(reason: Option<String>) -> Result<Option<String>> {
    match reason {
        Some(reason) if reason.len() > MAX_REASON_BYTES => {
            Err(Problem::validation(format!("reason: must be at most {MAX_REASON_BYTES} bytes")))
        }
        reason => Ok(reason.map(|reason| crate::store::storable(&reason))),
    }
}
