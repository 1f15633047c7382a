//! `/v1/providers`: the profiles that the caller's runs use: those that come with the program, and the tenant's own, which
//! go before them by name.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::Api;
use super::auth::Caller;
use super::error::{Problem, Result};
use super::extract::{Json, Path};
use super::page::Page;
use crate::gateway::provider::{Confidence, Profile};

#[derive(Serialize)]
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
#[derive(Serialize)]
pub struct Shown {
    #[serde(flatten)]
    provider: Provider,
    profile: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Put {
    /// A TOML text.
    profile: String,
}

pub async fn list(State(api): State<Api>, caller: Caller) -> Result<Json<Page<Provider>>> {
    let own = api.gateway.profiles_of(&caller.tenant).await?;
    let shipped = api.gateway.profiles().all().filter(|profile| own.get(&profile.name.0).is_none());
    let mut all: Vec<Provider> = own.all().map(|p| view(p, true)).chain(shipped.map(|p| view(p, false))).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(Page::whole(all)))
}

pub async fn show(State(api): State<Api>, caller: Caller, Path(name): Path<String>) -> Result<Json<Shown>> {
    let own = api.gateway.profiles_of(&caller.tenant).await?;
    let found = own.get(&name).map(|p| (p, true)).or_else(|| api.gateway.profiles().get(&name).map(|p| (p, false)));
    let (profile, own) = found.ok_or_else(|| Problem::not_found("provider"))?;
    Ok(Json(Shown { provider: view(profile, own), profile: profile.text.clone() }))
}

pub async fn put(
    State(api): State<Api>,
    caller: Caller,
    Path(name): Path<String>,
    Json(body): Json<Put>,
) -> Result<(StatusCode, Json<Provider>)> {
    let profile = api.gateway.read_profile(&name, &body.profile).map_err(|e| Problem::validation(e.to_string()))?;
    let fresh = api.gateway.put_profile(&caller.tenant, &profile, &body.profile).await?;
    let status = if fresh { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(view(&profile, true))))
}

/// Takes the tenant's own profile away; one that comes with the program is in its place again.
pub async fn delete(State(api): State<Api>, caller: Caller, Path(name): Path<String>) -> Result<StatusCode> {
    match api.gateway.delete_profile(&caller.tenant, &name).await? {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(Problem::not_found("provider of your own")),
    }
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
