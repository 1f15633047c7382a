//! `POST /runs:bulk-cancel`: cancels up to a hundred runs, each by itself. What is wrong with one stands in its own
//! entry.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::control::{Control, Wish};
use super::{ids, run as view};
use crate::api::Api;
use crate::api::auth::scope;
use crate::api::control::check_reason;
use crate::api::error::{Problem, Result};
use crate::api::keyed::{Answer, Failed, Keyed, Work};
use crate::store::Tx;

const MAX_RUNS: usize = 100;

#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = OpenwopCancelRuns)]
struct Body {
    run_ids: Vec<String>,
    reason: Option<String>,
}

struct Cancel {
    tenant: String,
    run_ids: Vec<String>,
    reason: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OpenwopCancelledRuns)]
struct Results {
    results: Vec<Entry>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopCancelledRun)]
struct Entry {
    run_id: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    error: Option<Value>,
}

/// Cancels up to a hundred runs, each by itself. What is wrong with one stands in its own entry.
#[utoipa::path(
    post, path = "/runs:bulk-cancel", operation_id = "openwop_cancel_runs", tag = "openwop",
    request_body = Body, responses((status = 200, body = Results)), security(("bearer" = ["run"]))
)]
pub async fn cancel(State(api): State<Api>, request: Keyed<scope::Run>) -> Result<Response> {
    let prepared = async {
        let body: Body = request.parse(&api)?;
        if !(1..=MAX_RUNS).contains(&body.run_ids.len()) {
            return Err(Problem::too_many_runs(MAX_RUNS));
        }
        let reason = check_reason(body.reason)?;
        Ok(Cancel { tenant: request.caller.tenant.clone(), run_ids: body.run_ids, reason })
    };
    request.carry_out(&api, prepared).await
}

impl Cancel {
    async fn one(&self, tx: &mut Tx, id: &str) -> std::result::Result<&'static str, Failed> {
        let run_id = ids::of_tenant(id, &self.tenant)?;
        let what = Wish::Cancel { reason: self.reason.clone() };
        let row = Control { tenant: self.tenant.clone(), run_id, what }.make(tx).await?;
        Ok(view::status(&row))
    }
}

impl Work for Cancel {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let mut results = Vec::with_capacity(self.run_ids.len());
        for id in &self.run_ids {
            let entry = |status, error: Option<Value>| Entry { run_id: id.clone(), ok: error.is_none(), status, error };
            results.push(match self.one(tx, id).await {
                Ok(status) => entry(Some(status), None),
                Err(Failed::Problem(problem)) => entry(None, Some(problem.envelope())),
                // The database did not do as it was told: then nothing of all this is kept.
                Err(Failed::Store(error)) => return Err(error.into()),
            });
        }
        Ok(Answer::json(StatusCode::OK, &Results { results })?)
    }
}
