//! `/v1/tenants`: tenants and their tokens, for administrators. A token's text is in one answer, the one that mints it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path};
use super::keyed::{Answer, Failed, Keyed, Work};
use super::page::Page;
use super::time::Time;
use super::{Api, body, name};
use crate::store::Tx;
use crate::store::token::NewToken;
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

pub async fn create(State(api): State<Api>, request: Keyed<scope::Admin>) -> Result<Response> {
    let prepared = async {
        let body: Tenant = request.parse(&api)?;
        name::check_tenant("tenant", &body.tenant)?;
        Ok(Create(body))
    };
    request.carry_out(&api, prepared).await
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

pub async fn list(State(api): State<Api>, _: Caller<scope::Admin>) -> Result<Json<Page<Tenant>>> {
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

pub async fn limits(
    State(api): State<Api>,
    _: Caller<scope::Admin>,
    Path(tenant): Path<String>,
) -> Result<Json<Bounds>> {
    known(&tenant)?;
    let limits = store::tenant::limits(&api.store, &tenant).await?.ok_or_else(unknown)?;
    Ok(Json(limits.into()))
}

impl From<store::tenant::Limits> for Bounds {
    fn from(limits: store::tenant::Limits) -> Self {
        let max_running = limits.max_running.and_then(|most| u32::try_from(most).ok());
        Self { limits: Limits { max_running }, paused: limits.paused }
    }
}

/// Replaces all limits of the tenant.
pub async fn set_limits(
    State(api): State<Api>,
    Path(tenant): Path<String>,
    request: Keyed<scope::Admin>,
) -> Result<Response> {
    let prepared = async {
        known(&tenant)?;
        let max_running = request.parse::<Limits>(&api)?.max_running.map(i32::try_from).transpose();
        let words = || Problem::validation(format!("max_running: must be at most {}", i32::MAX));
        Ok(SetLimits { tenant, max_running: max_running.map_err(|_| words())? })
    };
    request.carry_out(&api, prepared).await
}

struct SetLimits {
    tenant: String,
    max_running: Option<i32>,
}

impl Work for SetLimits {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        if !store::tenant::set_limits(&mut *tx, &self.tenant, self.max_running).await? {
            return Err(unknown().into());
        }
        let limits = store::tenant::limits(&mut *tx, &self.tenant).await?.ok_or_else(unknown)?;
        Ok(Answer::json(StatusCode::OK, &Bounds::from(limits))?)
    }
}

/// No attempt of the tenant begins until it is resumed; those under way end by themselves.
pub async fn pause(
    State(api): State<Api>,
    Path(tenant): Path<String>,
    request: Keyed<scope::Admin, body::Nothing>,
) -> Result<Response> {
    request.carry_out(&api, async { Paused::new(tenant, true) }).await
}

pub async fn resume(
    State(api): State<Api>,
    Path(tenant): Path<String>,
    request: Keyed<scope::Admin, body::Nothing>,
) -> Result<Response> {
    request.carry_out(&api, async { Paused::new(tenant, false) }).await
}

struct Paused {
    tenant: String,
    paused: bool,
}

impl Paused {
    fn new(tenant: String, paused: bool) -> Result<Self> {
        known(&tenant)?;
        Ok(Self { tenant, paused })
    }
}

impl Work for Paused {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::control::pause_tenant(tx, &self.tenant, self.paused).await? {
            true => Ok(Answer::nothing()),
            false => Err(unknown().into()),
        }
    }
}

pub async fn mint(
    State(api): State<Api>,
    Path(tenant): Path<String>,
    request: Keyed<scope::Admin>,
) -> Result<Response> {
    let prepared = async {
        known(&tenant)?;
        let body: Mint = request.parse(&api)?;
        name::check_label("label", &body.label)?;
        let (token_id, token, secret_hash) = token::mint(&tenant);
        let scopes = scope::OF_TENANTS.map(str::to_owned).to_vec();
        let new = NewToken { token_id, secret_hash, label: body.label.clone(), scopes, expires_at: None };
        Ok(MintToken { tenant, new, minted: Minted { token_id: text(token_id), token, label: body.label } })
    };
    request.carry_out(&api, prepared).await
}

struct MintToken {
    tenant: String,
    new: NewToken,
    minted: Minted,
}

impl Work for MintToken {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::token::create(tx, &self.tenant, &self.new).await {
            Ok(()) => Ok(Answer::json(StatusCode::CREATED, &self.minted)?.secret()),
            Err(error) if error.violates("tokens_tenant") => Err(unknown().into()),
            Err(error) => Err(error.into()),
        }
    }
}

pub async fn tokens(
    State(api): State<Api>,
    _: Caller<scope::Admin>,
    Path(tenant): Path<String>,
) -> Result<Json<Page<Token>>> {
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
    Path((tenant, token)): Path<(String, String)>,
    request: Keyed<scope::Admin, body::Nothing>,
) -> Result<Response> {
    let prepared = async {
        known(&tenant)?;
        let token_id = Uuid::try_parse(&token).ok().filter(|id| text(*id) == token || id.to_string() == token);
        Ok(Revoke { tenant, token_id: token_id.ok_or_else(no_token)? })
    };
    request.carry_out(&api, prepared).await
}

struct Revoke {
    tenant: String,
    token_id: Uuid,
}

impl Work for Revoke {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::token::delete(tx, &self.tenant, self.token_id).await? {
            true => Ok(Answer::nothing()),
            false => Err(no_token().into()),
        }
    }
}

fn no_token() -> Problem {
    Problem::not_found("token")
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
