//! Whether the node lives, and whether it can do its work. Both need no token.

use std::time::Duration;

use axum::extract::State;
use serde::Serialize;

use super::Api;
use super::error::{Problem, Result};
use super::extract::Json;

/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Serialize)]
pub struct Health {
    status: &'static str,
}

pub async fn live() -> Json<Health> {
    Json(Health { status: "ok" })
}

pub async fn ready(State(api): State<Api>) -> Result<Json<Health>> {
    match tokio::time::timeout(PATIENCE, api.store.ping()).await {
        Ok(answer) => answer?,
        Err(_) => return Err(Problem::unavailable("the database did not answer in time")),
    }
    Ok(Json(Health { status: "ready" }))
}
