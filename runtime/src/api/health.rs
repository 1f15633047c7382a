//! Whether the node lives, and whether it can do its work. Both need no token.

use std::time::Duration;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::Api;
use super::error::{Problem, Result};
use super::extract::Json;

/// How long the database may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Serialize, ToSchema)]
pub struct Health {
    status: &'static str,
}

/// Whether the node lives.
#[utoipa::path(
    get, path = "/healthz", operation_id = "is_live", tag = "node",
    responses((status = 200, body = Health))
)]
pub async fn live() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether the node can do its work. It cannot while its database does not answer.
#[utoipa::path(
    get, path = "/readyz", operation_id = "is_ready", tag = "node",
    responses((status = 200, body = Health))
)]
pub async fn ready(State(api): State<Api>) -> Result<Json<Health>> {
    match tokio::time::timeout(PATIENCE, api.store.ping()).await {
        Ok(answer) => answer?,
        Err(_) => return Err(Problem::unavailable("the database did not answer in time")),
    }
    Ok(Json(Health { status: "ready" }))
}
