//! Cancel, pause and resume of one run, with the specification's own refusals: nothing is done twice in silence.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{ids, run as view};
use crate::api::auth::scope;
use crate::api::control::{Change, What, check_reason};
use crate::api::error::{Problem, Result};
use crate::api::extract::Path;
use crate::api::keyed::{Answer, Failed, Keyed, Work};
use crate::api::time::Time;
use crate::api::{Api, body};
use crate::store::{Tx, run};

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OpenwopReason)]
struct Reason {
    reason: Option<String>,
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = OpenwopPause)]
struct Pause {
    reason: Option<String>,
    drain_policy: Option<Drain>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = OpenwopDrain)]
enum Drain {
    Immediate,
    DrainCurrentNode,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopChanged)]
struct Changed {
    run_id: String,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused_at: Option<Time>,
}

/// Cancels a run. Its worker stops the attempt as well.
#[utoipa::path(
    post, path = "/runs/{run}/cancel", operation_id = "openwop_cancel_run", tag = "openwop",
    request_body = Option<Reason>, responses((status = 200, body = Changed)), security(("bearer" = ["run"]))
)]
pub async fn cancel(
    State(api): State<Api>,
    Path(segment): Path<String>,
    request: Keyed<scope::Run, body::Optional>,
) -> Result<Response> {
    let (request, run_id) = named(request, "POST /runs/{run}/cancel", &segment);
    let prepared = async {
        let run_id = run_id?;
        let body: Reason = request.optional(&api)?;
        let what = Wish::Cancel { reason: check_reason(body.reason)? };
        Ok(Control { tenant: request.caller.tenant.clone(), run_id, what })
    };
    request.carry_out(&api, prepared).await
}

/// Pauses a run. The attempt that is under way is stopped: its effects replay when the run goes on.
#[utoipa::path(
    post, path = "/runs/{run}:pause", operation_id = "openwop_pause_run", tag = "openwop",
    request_body = Option<Pause>, responses((status = 202, body = Changed), (status = 422)), security(("bearer" = ["run"]))
)]
#[expect(dead_code, reason = "it describes a part of what `act` does")]
fn pause_run() {}

/// Resumes a paused run.
#[utoipa::path(
    post, path = "/runs/{run}:resume", operation_id = "openwop_resume_run", tag = "openwop",
    request_body = Option<Reason>, responses((status = 202, body = Changed)), security(("bearer" = ["run"]))
)]
#[expect(dead_code, reason = "it describes a part of what `act` does")]
fn resume_run() {}

/// `POST /runs/{runId}:pause` and `:resume`.
pub async fn act(
    State(api): State<Api>,
    Path(segment): Path<String>,
    request: Keyed<scope::Run, body::Optional>,
) -> Result<Response> {
    let (segment, word) = segment.rsplit_once(':').ok_or_else(no_route)?;
    let operation = match word {
        "pause" => "POST /runs/{run}:pause",
        "resume" => "POST /runs/{run}:resume",
        _ => return Err(no_route()),
    };
    let (request, run_id) = named(request, operation, segment);
    let prepared = async {
        let run_id = run_id?;
        let what = match word {
            "pause" => pause(request.optional(&api)?)?,
            _ => {
                let body: Reason = request.optional(&api)?;
                check_reason(body.reason)?;
                Wish::Resume
            }
        };
        Ok(Control { tenant: request.caller.tenant.clone(), run_id, what })
    };
    request.carry_out(&api, prepared).await
}

/// A request and the run that its path names. However that was spelled, it is the same request.
fn named<B: body::Kind>(
    request: Keyed<scope::Run, B>,
    operation: &str,
    segment: &str,
) -> (Keyed<scope::Run, B>, Result<Uuid>) {
    let run_id = ids::run(segment, &request.caller.tenant);
    let spelled = run_id.as_ref().map_or_else(|_| segment.to_owned(), Uuid::to_string);
    (request.operation(operation, &[("run", &spelled)]), run_id)
}

fn no_route() -> Problem {
    Problem::not_found("route; a run can be paused with {runId}:pause and resumed with {runId}:resume")
}

/// A pause stops the attempt that is under way: its effects replay when the run goes on.
fn pause(body: Pause) -> Result<Wish> {
    check_reason(body.reason)?;
    match body.drain_policy {
        Some(Drain::DrainCurrentNode) => Err(Problem::not_provided("drainPolicy `drain-current-node`")),
        Some(Drain::Immediate) | None => Ok(Wish::Pause),
    }
}

/// One change of one run, if the run is in a state for it.
pub struct Control {
    pub tenant: String,
    pub run_id: Uuid,
    pub what: Wish,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    Cancel { reason: Option<String> },
    Pause,
    Resume,
}

impl Control {
    /// Makes the change; gives the run as it is then.
    pub async fn make(&self, tx: &mut Tx) -> std::result::Result<run::Run, Failed> {
        let now = run::find(&mut *tx, &self.tenant, self.run_id).await?.ok_or_else(ids::unknown)?;
        self.what.check(view::status(&now))?;
        let what = match &self.what {
            Wish::Cancel { reason } => What::Cancel { reason: reason.clone() },
            Wish::Pause => What::Pause,
            Wish::Resume => What::Resume,
        };
        Ok(Change::of(&self.tenant, self.run_id, what).make(tx).await?.0)
    }
}

impl Wish {
    /// Whether a run of this status can be changed so.
    fn check(&self, status: &str) -> Result<()> {
        if matches!(status, "completed" | "failed" | "cancelled") {
            return Err(Problem::run_terminal(status));
        }
        match self {
            Self::Cancel { .. } => Ok(()),
            Self::Pause if !matches!(status, "paused" | "cancelling") => Ok(()),
            Self::Pause => Err(Problem::run_state(status, "it cannot be paused now")),
            Self::Resume if status == "paused" => Ok(()),
            Self::Resume => Err(Problem::run_state(status, "only a paused run can be resumed")),
        }
    }
}

impl Work for Control {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let row = self.make(tx).await?;
        let (code, status) = match self.what {
            Wish::Cancel { .. } => (StatusCode::OK, view::status(&row)),
            Wish::Pause => (StatusCode::ACCEPTED, "paused"),
            Wish::Resume => (StatusCode::ACCEPTED, "running"),
        };
        let run_id = ids::bound(&self.tenant, self.run_id);
        let answer =
            Changed { run_id, status, paused_at: row.paused_at.map(Time::from).filter(|_| status == "paused") };
        Ok(Answer::json(code, &answer)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(what: &Wish, status: &str) -> &'static str {
        match what.check(status).map_err(|problem| format!("{problem:?}")) {
            Ok(()) => "",
            Err(words) if words.contains("RunTerminal") => "terminal",
            Err(_) => "state",
        }
    }

    #[test]
    fn every_wish_has_the_statuses_that_allow_it() {
        let cancel = Wish::Cancel { reason: None };
        for status in ["completed", "failed", "cancelled"] {
            for what in [&cancel, &Wish::Pause, &Wish::Resume] {
                assert_eq!(refused(what, status), "terminal", "{what:?} {status}");
            }
        }
        for status in ["pending", "running", "waiting-approval", "waiting-external"] {
            let all = [&cancel, &Wish::Pause, &Wish::Resume].map(|what| refused(what, status));
            assert_eq!(all, ["", "", "state"], "{status}");
        }
        assert_eq!([&cancel, &Wish::Pause, &Wish::Resume].map(|what| refused(what, "paused")), ["", "state", ""]);
        assert_eq!(
            [&cancel, &Wish::Pause, &Wish::Resume].map(|what| refused(what, "cancelling")),
            ["", "state", "state"]
        );
    }

    #[test]
    fn a_pause_that_waits_for_the_attempt_is_not_offered() {
        let read = |text: &str| pause(serde_json::from_str(text).unwrap());
        assert!(read("{}").is_ok() && read(r#"{"drainPolicy":"immediate","reason":"lunch"}"#).is_ok());
        assert!(read(r#"{"drainPolicy":"drain-current-node"}"#).is_err());
        assert!(serde_json::from_str::<Pause>(r#"{"drainPolicy":"soon"}"#).is_err());
    }
}
