//! What owners do to their runs: cancel, pause, resume, retry; and the same for all runs of an activity.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::Path;
use super::keyed::{Answer, Failed, Keyed, Work};
use super::runs::{self, Run};
use super::{Api, activities, body, name};
use crate::policy::Policy;
use crate::store::control::{self, Bulk, Changed};
use crate::store::{Tx, activity, run};

/// The longest reason, in bytes.
const MAX_REASON_BYTES: usize = 1024;

/// Runs cancelled by one request where it says nothing, and at most.
const BULK: i64 = 1_000;

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelRun)]
pub struct Cancel {
    /// For whoever looks at the run later.
    reason: Option<String>,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CancelRuns)]
pub struct CancelMany {
    activity: Option<String>,
    state: Option<String>,
    /// `NAME:VALUE`.
    label: Option<String>,
    created_before: Option<DateTime<Utc>>,
    reason: Option<String>,
    limit: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CancelledRuns)]
pub struct CancelledMany {
    cancelled: usize,
    /// Workers have them, and stop their attempts.
    requested: usize,
    /// As many as allowed were caught: there may be more.
    more: bool,
}

/// Cancels a run.
#[utoipa::path(
    post, path = "/runs/{run}/cancel", operation_id = "cancel_run", tag = "runs",
    request_body = Option<Cancel>,
    responses(
        (status = 200, body = Run, description = "It is cancelled."),
        (status = 202, body = Run, description = "Its worker stops the attempt.")
    ),
    security(("bearer" = ["run"]))
)]
pub async fn cancel(
    State(api): State<Api>,
    Path(run): Path<String>,
    request: Keyed<scope::Run, body::Optional>,
) -> Result<Response> {
    let prepared = async {
        let body: Cancel = request.optional(&api)?;
        let reason = check_reason(body.reason)?;
        Change::new(&request.caller, &run, What::Cancel { reason })
    };
    request.carry_out(&api, prepared).await
}

/// Pauses a run until it is resumed.
#[utoipa::path(
    post, path = "/runs/{run}/pause", operation_id = "pause_run", tag = "runs",
    responses(
        (status = 200, body = Run, description = "It is paused."),
        (status = 202, body = Run, description = "Its worker stops the attempt.")
    ),
    security(("bearer" = ["run"]))
)]
pub async fn pause(
    State(api): State<Api>,
    Path(run): Path<String>,
    request: Keyed<scope::Run, body::Nothing>,
) -> Result<Response> {
    request.carry_out(&api, async { Change::new(&request.caller, &run, What::Pause) }).await
}

/// Resumes a paused run.
#[utoipa::path(
    post, path = "/runs/{run}/resume", operation_id = "resume_run", tag = "runs",
    responses((status = 200, body = Run)), security(("bearer" = ["run"]))
)]
pub async fn resume(
    State(api): State<Api>,
    Path(run): Path<String>,
    request: Keyed<scope::Run, body::Nothing>,
) -> Result<Response> {
    request.carry_out(&api, async { Change::new(&request.caller, &run, What::Resume) }).await
}

/// Begins a failed run again: same id, same keys.
#[utoipa::path(
    post, path = "/runs/{run}/retry", operation_id = "retry_run", tag = "runs",
    responses((status = 200, body = Run)), security(("bearer" = ["run"]))
)]
pub async fn retry(
    State(api): State<Api>,
    Path(run): Path<String>,
    request: Keyed<scope::Run, body::Nothing>,
) -> Result<Response> {
    let by = format!("token {}", request.caller.token_id);
    request.carry_out(&api, async { Change::new(&request.caller, &run, What::Retry { by }) }).await
}

/// One change of one run.
pub struct Change {
    tenant: String,
    run_id: Uuid,
    what: What,
}

pub enum What {
    Cancel { reason: Option<String> },
    Pause,
    Resume,
    Retry { by: String },
}

impl Change {
    pub fn new<S>(caller: &Caller<S>, run: &str, what: What) -> Result<Self> {
        let run_id = name::uuid(run).ok_or_else(runs::unknown)?;
        Ok(Self::of(&caller.tenant, run_id, what))
    }

    pub fn of(tenant: &str, run_id: Uuid, what: What) -> Self {
        Self { tenant: tenant.to_owned(), run_id, what }
    }

    /// Makes the change; gives the run as it is then, and whether its worker still has to stop the attempt.
    pub async fn make(&self, tx: &mut Tx) -> std::result::Result<(run::Run, bool), Failed> {
        let (tenant, run_id) = (self.tenant.as_str(), self.run_id);
        let changed = match &self.what {
            What::Cancel { reason } => control::cancel(tx, tenant, run_id, reason.as_deref()).await?,
            What::Pause => control::pause(tx, tenant, run_id).await?,
            What::Resume => control::resume(tx, tenant, run_id).await?,
            What::Retry { by } => begin_again(tx, tenant, run_id, by).await?,
        };
        tracing::info!(run.id = %run_id, what = self.what.word(), ?changed, "changing a run");
        let requested = match changed {
            Changed::Done => false,
            Changed::Requested => true,
            Changed::Refused { state } => return Err(Problem::run_terminal(&state).into()),
            Changed::Unknown => return Err(runs::unknown().into()),
        };
        let row = run::find(&mut *tx, tenant, run_id).await?.ok_or_else(runs::unknown)?;
        Ok((row, requested))
    }
}

impl What {
    fn word(&self) -> &'static str {
        match self {
            Self::Cancel { .. } => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry { .. } => "retry",
        }
    }
}

impl Work for Change {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let (row, requested) = self.make(tx).await?;
        let status = if requested { StatusCode::ACCEPTED } else { StatusCode::OK };
        Ok(Answer::json(status, &Run::new(row)?)?)
    }
}

async fn begin_again(tx: &mut Tx, tenant: &str, run_id: Uuid, by: &str) -> std::result::Result<Changed, Failed> {
    let policy = activity::policy_of_run(&mut *tx, tenant, run_id).await?.ok_or_else(runs::unknown)?;
    let policy = Policy::parse(&policy).map_err(Problem::internal)?;
    let close = policy.timeouts.schedule_to_close.map(|span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX));
    match control::retry(tx, tenant, run_id, by, close).await? {
        Changed::Refused { state } if state == "failed" => {
            Err(Problem::run_state(&state, "another run of its run_name has not ended").into())
        }
        Changed::Refused { state } => Err(Problem::run_state(&state, "only a failed run can be begun again").into()),
        changed => Ok(changed),
    }
}

/// Cancels the runs that fit all that is said, oldest first.
#[utoipa::path(
    post, path = "/runs/cancel", operation_id = "cancel_runs", tag = "runs",
    request_body = CancelMany, responses((status = 200, body = CancelledMany)),
    security(("bearer" = ["run"]))
)]
pub async fn cancel_many(State(api): State<Api>, request: Keyed<scope::Run>) -> Result<Response> {
    let prepared = async {
        let bulk = bulk(request.parse(&api)?)?;
        Ok(Many { tenant: request.caller.tenant.clone(), bulk })
    };
    request.carry_out(&api, prepared).await
}

struct Many {
    tenant: String,
    bulk: Bulk,
}

impl Work for Many {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let done = control::cancel_many(tx, &self.tenant, &self.bulk).await?;
        tracing::info!(runs.cancelled = done.cancelled, runs.requested = done.requested, "cancelled many");
        let more = i64::try_from(done.cancelled + done.requested).unwrap_or(i64::MAX) >= self.bulk.limit;
        let answer = CancelledMany { cancelled: done.cancelled, requested: done.requested, more };
        Ok(Answer::json(StatusCode::OK, &answer)?)
    }
}

fn bulk(body: CancelMany) -> Result<Bulk> {
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
    Ok(Bulk {
        activity: body.activity,
        state: body.state,
        label: body.label.as_deref().map(runs::label).transpose()?,
        created_before: body.created_before,
        reason: check_reason(body.reason)?,
        limit,
    })
}

/// Pauses an activity. No attempt of its runs begins until it is resumed.
#[utoipa::path(
    post, path = "/activities/{name}/pause", operation_id = "pause_activity", tag = "activities",
    responses((status = 204)), security(("bearer" = ["run"]))
)]
pub async fn pause_activity(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Keyed<scope::Run, body::Nothing>,
) -> Result<Response> {
    request.carry_out(&api, async { Paused::new(&request.caller, name, true) }).await
}

/// Resumes a paused activity.
#[utoipa::path(
    post, path = "/activities/{name}/resume", operation_id = "resume_activity", tag = "activities",
    responses((status = 204)), security(("bearer" = ["run"]))
)]
pub async fn resume_activity(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Keyed<scope::Run, body::Nothing>,
) -> Result<Response> {
    request.carry_out(&api, async { Paused::new(&request.caller, name, false) }).await
}

/// Pauses an activity, or lets it go on.
struct Paused {
    tenant: String,
    activity: String,
    paused: bool,
}

impl Paused {
    fn new<S>(caller: &Caller<S>, activity: String, paused: bool) -> Result<Self> {
        activities::known(&activity)?;
        Ok(Self { tenant: caller.tenant.clone(), activity, paused })
    }
}

impl Work for Paused {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match control::pause_activity(tx, &self.tenant, &self.activity, self.paused).await? {
            true => Ok(Answer::nothing()),
            false => Err(activities::unknown().into()),
        }
    }

    fn is_single(&self) -> bool {
        true
    }
}

pub fn check_reason(reason: Option<String>) -> Result<Option<String>> {
    match reason {
        Some(reason) if reason.len() > MAX_REASON_BYTES => {
            Err(Problem::validation(format!("reason: must be at most {MAX_REASON_BYTES} bytes")))
        }
        reason => Ok(reason.map(|reason| crate::store::storable(&reason))),
    }
}
