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
pub(crate) mod ids;
mod log;
mod run;
mod runs;
mod seams;
mod version;

use axum::middleware::from_fn;
use axum::routing::post;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Api;

pub use control::{__path_pause_run, __path_resume_run};
pub use seams::Holds;
pub use version::mark;

/// The routes of the profile; with `api.openwop_seams`, those of the conformance suite as well, which are not described.
pub fn routes(seams: bool) -> OpenApiRouter<Api> {
    let routes = OpenApiRouter::default()
        .routes(routes!(discovery::show))
        .routes(routes!(runs::create, runs::list))
        .routes(routes!(bulk::cancel))
        .routes(routes!(runs::show))
        // The router cannot tell `{run}:pause` from `{run}`.
        .route("/runs/{run}", post(control::act))
        .routes(routes!(control::cancel))
        .routes(routes!(events::stream))
        .routes(routes!(events::poll))
        .routes(routes!(effects::show));
    let routes = if seams { routes.merge(seams::routes().into()) } else { routes };
    routes.layer(from_fn(version::negotiate))
}
