//! `/v1/providers`: the profiles that this node knows.

use axum::extract::State;
use serde::Serialize;

use super::Api;
use super::auth::Caller;
use super::extract::Json;
use super::page::Page;
use crate::gateway::provider::Profile;

#[derive(Serialize)]
pub struct Provider {
    name: String,
    version: String,
    hosts: Vec<String>,
    source: String,
}

pub async fn list(State(api): State<Api>, _: Caller) -> Json<Page<Provider>> {
    let profiles = api.gateway.profiles();
    let names = profiles.names();
    Json(Page::whole(names.iter().filter_map(|name| profiles.get(name)).map(view).collect()))
}

fn view(profile: &Profile) -> Provider {
    Provider {
        name: profile.name.clone(),
        version: profile.version.clone(),
        hosts: profile.hosts.clone(),
        source: profile.source.clone(),
    }
}
