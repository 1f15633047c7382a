//! `/openapi.json`: what the routes are, made from the types that they take and give. Each handler says what is its own; what
//! many have in common is added here by what an operation is, so that none can forget it.
//!
//! Nothing here may decide what a route does: it only describes.

mod operation;
mod parameters;
mod refusals;
mod schemas;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use utoipa::OpenApi;

use super::error::{Problem, Result};
use super::openwop;

pub use schemas::Failure;

/// The document for everyone: that of a node without the routes of test machines.
static DOCUMENT: LazyLock<std::result::Result<Bytes, String>> = LazyLock::new(|| {
    let (_, described) = super::described(false).split_for_parts();
    let document = serde_json::to_value(described).map(complete).and_then(|document| serde_json::to_vec(&document));
    document.map(Bytes::from).map_err(|e| format!("the description of the API cannot be written: {e}"))
});

/// Shows this document.
#[utoipa::path(
    get, path = "/openapi.json", operation_id = "show_openapi", tag = "node",
    responses((status = 200, body = std::collections::BTreeMap<String, Value>))
)]
pub async fn show() -> Result<Response> {
    match &*DOCUMENT {
        Ok(text) => Ok(([(header::CONTENT_TYPE, "application/json")], text.clone()).into_response()),
        Err(cause) => Err(Problem::internal(cause.clone())),
    }
}

/// The document before any route is in it.
pub fn head() -> utoipa::openapi::OpenApi {
    Head::openapi()
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Deedbox",
        description = "WebAssembly activities whose side effects happen once. The rules that hold for all routes are in docs/api.md.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
    ),
    servers((url = "/")),
    // What one route of the router stands for, as the router cannot tell them apart.
    paths(openwop::pause_run, openwop::resume_run),
    tags(
        (name = "modules", description = "Uploaded components, by the digest of their bytes."),
        (name = "activities", description = "Deployments of modules under a name and a policy."),
        (name = "runs", description = "Starting runs, looking at them, and what their owner does to them."),
        (name = "signals", description = "Messages to a run."),
        (name = "callbacks", description = "Messages that tell of the ends of runs."),
        (name = "events", description = "What happened to runs, as a stream or in pages."),
        (name = "effects", description = "The ledger: each outbound effect with its sends, and open questions."),
        (name = "secrets", description = "Credentials for providers, which are never shown."),
        (name = "providers", description = "The profiles that say how providers are called."),
        (name = "hooks", description = "Webhooks of others that start or signal runs."),
        (name = "tenants", description = "Tenants, their limits and their tokens, for administrators."),
        (name = "openwop", description = "The OpenWOP v2 host profile: the same runs in the words of that specification."),
        (name = "node", description = "The node itself.")
    )
)]
struct Head;

/// Adds what operations have in common.
fn complete(mut document: Value) -> Value {
    schemas::complete(&mut document["components"]["schemas"]);
    schemas::name_pages(&mut document);
    if let Some(paths) = document["paths"].as_object_mut() {
        for (path, item) in paths {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                operation::complete(path, method, operation);
            }
        }
    }
    let components = &mut document["components"];
    components["responses"] = refusals::all();
    components["headers"] = refusals::headers();
    components["parameters"] = parameters::all();
    let words = "A token of the tenant, or of an administrator, as `deedbox token create` makes it. What a route needs is \
                 written as its scope.";
    components["securitySchemes"] = json!({ "bearer": { "type": "http", "scheme": "bearer", "description": words } });
    document
}
