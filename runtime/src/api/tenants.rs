//! `/v1/tenants`: tenants and their tokens, for administrators. A token's text is in one answer, the one that mints it.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Api;
use super::auth::Admin;
use super::error::{Problem, Result};
use super::extract::{Json, Path};
use super::name;
use super::page::Page;
use super::time::Time;
use crate::{store, token};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tenant {
    tenant: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mint {
    #[serde(default)]
    label: String,
}

#[derive(Serialize)]
pub struct Minted {
    token_id: String,
    token: String,
    label: String,
}

#[derive(Serialize)]
pub struct Token {
    token_id: String,
    label: String,
    created_at: Time,
}

pub async fn create(State(api): State<Api>, _: Admin, Json(body): Json<Tenant>) -> Result<(StatusCode, Json<Tenant>)> {
    name::check_tenant("tenant", &body.tenant)?;
    match store::tenant::create(&api.store, &body.tenant).await? {
        true => Ok((StatusCode::CREATED, Json(body))),
        false => Err(Problem::conflict("there is such a tenant already")),
    }
}

pub async fn list(State(api): State<Api>, _: Admin) -> Result<Json<Page<Tenant>>> {
    let tenants = store::tenant::list(&api.store).await?;
    Ok(Json(Page::whole(tenants.into_iter().map(|tenant| Tenant { tenant }).collect())))
}

/// What bounds a tenant. Absent: no limit.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Runs at once, on all nodes together; more stay queued.
    max_running: Option<u32>,
}

#[derive(Serialize)]
pub struct Bounds {
    #[serde(flatten)]
    limits: Limits,
    paused: bool,
}

pub async fn limits(State(api): State<Api>, _: Admin, Path(tenant): Path<String>) -> Result<Json<Bounds>> {
    known(&tenant)?;
    let limits = store::tenant::limits(&api.store, &tenant).await?.ok_or_else(unknown)?;
    let max_running = limits.max_running.and_then(|most| u32::try_from(most).ok());
    Ok(Json(Bounds { limits: Limits { max_running }, paused: limits.paused }))
}

/// Replaces all limits of the tenant.
pub async fn set_limits(
    state: State<Api>,
    admin: Admin,
    Path(tenant): Path<String>,
    Json(body): Json<Limits>,
) -> Result<Json<Bounds>> {
    known(&tenant)?;
    let max_running = body.max_running.map(i32::try_from).transpose();
    let max_running =
        max_running.map_err(|_| Problem::validation(format!("max_running: must be at most {}", i32::MAX)))?;
    if !store::tenant::set_limits(&state.store, &tenant, max_running).await? {
        return Err(unknown());
    }
    limits(state, admin, Path(tenant)).await
}

/// No attempt of the tenant begins until it is resumed; those under way end by themselves.
pub async fn pause(State(api): State<Api>, _: Admin, Path(tenant): Path<String>) -> Result<StatusCode> {
    set_paused(&api, &tenant, true).await
}

pub async fn resume(State(api): State<Api>, _: Admin, Path(tenant): Path<String>) -> Result<StatusCode> {
    set_paused(&api, &tenant, false).await
}

async fn set_paused(api: &Api, tenant: &str, paused: bool) -> Result<StatusCode> {
    known(tenant)?;
    match store::control::pause_tenant(&api.store, tenant, paused).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(unknown()),
    }
}

pub async fn mint(
    State(api): State<Api>,
    _: Admin,
    Path(tenant): Path<String>,
    Json(body): Json<Mint>,
) -> Result<(StatusCode, Json<Minted>)> {
    known(&tenant)?;
    name::check_label("label", &body.label)?;
    let (token_id, token, hash) = token::mint(&tenant);
    match store::token::create(&api.store, &tenant, token_id, &hash, &body.label).await {
        Ok(()) => {}
        Err(error) if error.violates("tokens_tenant") => return Err(unknown()),
        Err(error) => return Err(error.into()),
    }
    Ok((StatusCode::CREATED, Json(Minted { token_id: text(token_id), token, label: body.label })))
}

pub async fn tokens(State(api): State<Api>, _: Admin, Path(tenant): Path<String>) -> Result<Json<Page<Token>>> {
    known(&tenant)?;
    let rows = store::token::list(&api.store, &tenant).await?;
    if rows.is_empty() && !store::tenant::list(&api.store).await?.contains(&tenant) {
        return Err(unknown());
    }
    let view = |row: store::token::Token| Token {
        token_id: text(row.token_id),
        label: row.label,
        created_at: row.created_at.into(),
    };
    Ok(Json(Page::whole(rows.into_iter().map(view).collect())))
}

pub async fn revoke(
    State(api): State<Api>,
    _: Admin,
    Path((tenant, token)): Path<(String, String)>,
) -> Result<StatusCode> {
    known(&tenant)?;
    let no_token = || Problem::not_found("token");
    let token_id = Uuid::try_parse(&token).ok().filter(|id| text(*id) == token || id.to_string() == token);
    match store::token::delete(&api.store, &tenant, token_id.ok_or_else(no_token)?).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(no_token()),
    }
}

/// A token's id as the token's text shows it.
fn text(token_id: Uuid) -> String {
    token_id.simple().to_string()
}

/// A name that no tenant can have names none.
fn known(tenant: &str) -> Result<()> {
    if name::is_tenant(tenant) { Ok(()) } else { Err(unknown()) }
}

fn unknown() -> Problem {
    Problem::not_found("tenant")
}
