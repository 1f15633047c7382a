//! `/v1/providers`: the profiles that the caller's runs use: those that come with the program, and the tenant's own, which
//! go before them by name.

use std::sync::Arc;

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
use crate::gateway::Gateway;
use crate::gateway::provider::{Confidence, Profile};
use crate::store::{self, Tx};

#[derive(Serialize, ToSchema)]
pub struct Provider {
    name: String,
    version: String,
    /// Put by the tenant.
    own: bool,
    hosts: Vec<String>,
    source: String,
    confidence: Confidence,
    /// Facts that nobody has read anywhere; each is read on the safe side.
    guessed: Vec<String>,
}

/// A profile with the TOML text that it was read from.
#[derive(Serialize, ToSchema)]
#[schema(as = ProviderText)]
pub struct Shown {
    #[serde(flatten)]
    provider: Provider,
    profile: String,
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = PutProvider)]
pub struct Put {
    /// A TOML text.
    profile: String,
}

/// Lists the provider profiles by name.
#[utoipa::path(
    get, path = "/providers", operation_id = "list_providers", tag = "providers",
    params(Asked), responses((status = 200, body = Page<Provider>)), security(("bearer" = ["read"]))
)]
pub async fn list(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(asked): Query<Asked>,
) -> Result<Json<Page<Provider>>> {
    let limit = page::limit(asked.limit, &api.config.api)?;
    let after = page::name_place(asked.after.as_deref())?;
    let own = api.gateway.profiles_of(&caller.tenant).await?;
    let shipped = api.gateway.profiles().all().filter(|profile| own.get(&profile.name.0).is_none());
    let mut all: Vec<Provider> = own.all().map(|p| view(p, true)).chain(shipped.map(|p| view(p, false))).collect();
    all.retain(|provider| after.as_ref().is_none_or(|after| provider.name > *after));
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(Page::of(all, limit, |provider| page::name_cursor(&provider.name), Ok)?))
}

/// Shows a provider profile with its text.
#[utoipa::path(
    get, path = "/providers/{name}", operation_id = "show_provider", tag = "providers",
    responses((status = 200, body = Shown)), security(("bearer" = ["read"]))
)]
pub async fn show(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(name): Path<String>,
) -> Result<Json<Shown>> {
    let own = api.gateway.profiles_of(&caller.tenant).await?;
    let found = own.get(&name).map(|p| (p, true)).or_else(|| api.gateway.profiles().get(&name).map(|p| (p, false)));
    let (profile, own) = found.ok_or_else(|| Problem::not_found("provider"))?;
    Ok(Json(Shown { provider: view(profile, own), profile: profile.text.clone() }))
}

/// Puts a provider profile of your own.
#[utoipa::path(
    put, path = "/providers/{name}", operation_id = "put_provider", tag = "providers",
    request_body = Put,
    responses(
        (status = 201, body = Provider),
        (status = 200, body = Provider, description = "It replaces the one that was there.")
    ),
    security(("bearer" = ["deploy"]))
)]
pub async fn put(State(api): State<Api>, Path(name): Path<String>, request: Keyed<scope::Deploy>) -> Result<Response> {
    let prepared = async {
        let text = request.parse::<Put>(&api)?.profile;
        let profile = api.gateway.read_profile(&name, &text).map_err(|e| Problem::validation(e.to_string()))?;
        Ok(Replaced { gateway: api.gateway.clone(), tenant: request.caller.tenant.clone(), profile, text })
    };
    request.carry_out(&api, prepared).await
}

/// Puts a tenant's profile that has been read.
struct Replaced {
    gateway: Arc<Gateway>,
    tenant: String,
    profile: Profile,
    text: String,
}

impl Work for Replaced {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let fresh = store::provider::put(tx, &self.tenant, &self.profile.name.0, &self.text).await?;
        let status = if fresh { StatusCode::CREATED } else { StatusCode::OK };
        Ok(Answer::json(status, &view(&self.profile, true))?)
    }

    fn is_single(&self) -> bool {
        true
    }

    fn done(&self) {
        self.gateway.forget_profiles(&self.tenant);
    }
}

/// Takes a profile of your own away. One that comes with the program is in its place again.
#[utoipa::path(
    delete, path = "/providers/{name}", operation_id = "delete_provider", tag = "providers",
    responses((status = 204)), security(("bearer" = ["deploy"]))
)]
pub async fn delete(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Keyed<scope::Deploy, body::Nothing>,
) -> Result<Response> {
    let prepared = async {
        name::check("provider", &name).map_err(|_| unknown())?;
        Ok(Removed { gateway: api.gateway.clone(), tenant: request.caller.tenant.clone(), name })
    };
    request.carry_out(&api, prepared).await
}

struct Removed {
    gateway: Arc<Gateway>,
    tenant: String,
    name: String,
}

impl Work for Removed {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        match store::provider::delete(tx, &self.tenant, &self.name).await? {
            true => Ok(Answer::nothing()),
            false => Err(unknown().into()),
        }
    }

    fn is_single(&self) -> bool {
        true
    }

    fn done(&self) {
        self.gateway.forget_profiles(&self.tenant);
    }
}

fn unknown() -> Problem {
    Problem::not_found("provider of your own")
}

fn view(profile: &Profile, own: bool) -> Provider {
    Provider {
        name: profile.name.to_string(),
        version: profile.version.clone(),
        own,
        hosts: profile.hosts.iter().map(|host| host.as_str().to_owned()).collect(),
        source: profile.source.clone(),
        confidence: profile.confidence,
        guessed: profile.guessed.clone(),
    }
}
