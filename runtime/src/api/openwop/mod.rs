//! The OpenWOP v2 host profile: the same runs as under `/v1`, in the words and forms of that specification, so that a
//! client that knows nothing of Deedbox can drive them. A workflow is an activity, and its one node.
//!
//! It must never decide anything about runs or effects by itself: it translates, and what it cannot translate it
//! refuses.

mod bulk;
mod control;
mod discovery;
mod effects;
mod events;
pub mod fixtures;
mod ids;
mod log;
mod run;
mod runs;
mod seams;
mod version;

use axum::Router;
use axum::middleware::from_fn;
use axum::routing::{get, post};

use super::Api;

pub use seams::Holds;
pub use version::mark;

/// The routes of the profile; with `api.openwop_seams`, those of the conformance suite as well.
pub fn routes(seams: bool) -> Router<Api> {
    let routes = Router::new()
        .route("/.well-known/openwop", get(discovery::show))
        .route("/runs", post(runs::create).get(runs::list))
        .route("/runs:bulk-cancel", post(bulk::cancel))
        // The router cannot tell `{run}:pause` from `{run}`.
        .route("/runs/{run}", get(runs::show).post(control::act))
        .route("/runs/{run}/cancel", post(control::cancel))
        .route("/runs/{run}/events", get(events::stream))
        .route("/runs/{run}/events/poll", get(events::poll))
        .route("/runs/{run}/effects", get(effects::show));
    let routes = if seams { routes.merge(seams::routes()) } else { routes };
    routes.layer(from_fn(version::negotiate))
}
