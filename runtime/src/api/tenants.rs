//! `/v1/tenants`: tenants, for administrators. What bounds them, whose signatures count for them, and their tokens have
//! files of their own.

pub mod limits;
pub mod signers;
pub mod tokens;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query};
use super::keyed::{Answer, Failed, Keyed, Work};
use super::page::{self, Asked, Page};
use super::{Api, body, name};
use crate::store::{self, Tx};

#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    tenant: String,
}

/// Makes a tenant.
#[utoipa::path(
    post, path = "/tenants", operation_id = "create_tenant", tag = "tenants",
    request_body = Tenant, responses((status = 201, body = Tenant)), security(("bearer" = ["admin"]))
)]
pub async fn create(State(api): State<Api>, request: Keyed<scope::Admin>) -> Result<Response> {
    request
        .carry_out(&api, async {
            let body: Tenant = request.parse(&api)?;
            name::check_tenant("tenant", &body.tenant)?;
            Ok(Create(body))
        })
        .await
}

/// Lists the tenants by name.
#[utoipa::path(
    get, path = "/tenants", operation_id = "list_tenants", tag = "tenants",
    params(Asked), responses((status = 200, body = Page<Tenant>)), security(("bearer" = ["admin"]))
)]
pub async fn list(
    State(api): State<Api>,
    _: Caller<scope::Admin>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Tenant>>> {
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::name_place(asked.after.as_deref())?;
    let tenants = store::tenant::list(&api.store, after.as_deref(), page::rows(limit)).await?;
    let view = |tenant| Ok(Tenant { tenant });
    Ok(Json(Page::of(tenants, limit, |tenant: &String| page::name_cursor(tenant), view)?))
}

/// Pauses a tenant. None of its attempts begins until it is resumed; those under way end by themselves.
#[utoipa::path(
    post, path = "/tenants/{tenant}/pause", operation_id = "pause_tenant", tag = "tenants",
    responses((status = 204)), security(("bearer" = ["admin"]))
)]
pub async fn pause(
    State(api): State<Api>,
    Path(tenant): Path<String>,
    request: Keyed<scope::Admin, body::Nothing>,
) -> Result<Response> {
    set_paused(&api, tenant, &request, true).await
}

/// Resumes a paused tenant.
#[utoipa::path(
    post, path = "/tenants/{tenant}/resume", operation_id = "resume_tenant", tag = "tenants",
    responses((status = 204)), security(("bearer" = ["admin"]))
)]
pub async fn resume(
    State(api): State<Api>,
    Path(tenant): Path<String>,
    request: Keyed<scope::Admin, body::Nothing>,
) -> Result<Response> {
    set_paused(&api, tenant, &request, false).await
}

async fn set_paused(
    api: &Api,
    tenant: String,
    request: &Keyed<scope::Admin, body::Nothing>,
    paused: bool,
) -> Result<Response> {
    request
        .carry_out(api, async {
            known(&tenant)?;
            Ok(SetPaused { tenant, paused })
        })
        .await
}

struct Create(Tenant);

impl Work for Create {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::tenant::create(tx, &self.0.tenant).await? {
            true => Ok(Answer::json(StatusCode::CREATED, &self.0)?),
            false => Err(Problem::conflict("there is such a tenant already").into()),
        }
    }
}

struct SetPaused {
    tenant: String,
    paused: bool,
}

impl Work for SetPaused {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::control::pause_tenant(tx, &self.tenant, self.paused).await? {
            true => Ok(Answer::nothing()),
            false => Err(unknown().into()),
        }
    }
}

/// A name that no tenant can have names none.
fn known(tenant: &str) -> Result<()> {
    if name::is_tenant(tenant) { Ok(()) } else { Err(unknown()) }
}

fn unknown() -> Problem {
    Problem::not_found("tenant")
}
