//! The HTTP surface: one file per resource. It checks what callers send, asks the modules below it, and turns what they
//! say into JSON; it decides nothing about runs or effects by itself.
//!
//! A tenant comes from the credential and from nowhere else. No token, body or secret may reach a log, a span or an error.

mod activities;
mod actor;
mod auth;
mod body;
mod callbacks;
pub(crate) mod canonical;
mod ceilings;
mod control;
pub(crate) mod depth;
mod effects;
mod error;
pub(crate) mod events;
mod extract;
mod frame;
mod health;
pub(crate) mod hooks;
pub(crate) mod input;
mod keyed;
mod limits;
mod modules;
pub(crate) mod name;
mod openapi;
pub mod openwop;
pub(crate) mod page;
mod patience;
mod providers;
pub(crate) mod request_key;
mod resolve;
mod runs;
mod secrets;
mod server;
mod signals;
mod signatures;
mod start;
mod tenants;
mod time;
mod tls;
mod unread;

use std::sync::Arc;

use axum::Router;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::error::Problem;
use crate::config::Config;
use crate::gateway::Gateway;
use crate::registry::Registry;
use crate::store::Store;

pub use self::server::serve;
pub use self::tls::{TlsError, scheme};

/// What all requests of a node share.
#[derive(Clone)]
pub struct Api {
    store: Store,
    registry: Arc<Registry>,
    gateway: Arc<Gateway>,
    config: Arc<Config>,
    /// The open streams of events.
    seats: Arc<events::Seats>,
    /// Requests that the conformance suite wants to be held.
    holds: Arc<openwop::Holds>,
    /// Places for the bodies of senders who have proved nothing yet.
    hook_bodies: Arc<Semaphore>,
    /// Cancelled when the node shuts down: every wait ends then.
    stop: CancellationToken,
}

impl Api {
    pub fn new(store: Store, registry: Arc<Registry>, gateway: Arc<Gateway>, config: Arc<Config>) -> Self {
        let (seats, holds) = (Arc::default(), Arc::default());
        let hook_bodies = Arc::new(Semaphore::new(hooks::MAX_ARRIVING));
        Self { store, registry, gateway, config, seats, holds, hook_bodies, stop: CancellationToken::new() }
    }
}

/// All routes. Without `serve`, long polls are answered by polling alone.
pub fn router(api: Api) -> Router {
    let (routes, _) = described(api.config.api.openwop_seams).split_for_parts();
    routes
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(axum::middleware::from_fn_with_state(api.clone(), frame::frame))
        .layer(axum::middleware::from_fn(openwop::mark))
        .with_state(api)
}

/// The routes, each with its description.
fn described(seams: bool) -> OpenApiRouter<Api> {
    OpenApiRouter::with_openapi(openapi::head())
        .routes(routes!(health::live))
        .routes(routes!(health::ready))
        .routes(routes!(openapi::show))
        .merge(openwop::routes(seams))
        .nest("/v1", native())
}

fn native() -> OpenApiRouter<Api> {
    OpenApiRouter::default()
        .routes(routes!(modules::upload, modules::list))
        .routes(routes!(modules::show, modules::delete))
        .routes(routes!(signatures::attach))
        .routes(routes!(activities::list))
        .routes(routes!(activities::deploy, activities::show, activities::retire))
        .routes(routes!(control::pause_activity))
        .routes(routes!(control::resume_activity))
        .routes(routes!(start::start))
        .routes(routes!(runs::list))
        .routes(routes!(control::cancel_many))
        .routes(routes!(runs::show))
        .routes(routes!(control::cancel))
        .routes(routes!(control::pause))
        .routes(routes!(control::resume))
        .routes(routes!(control::retry))
        .routes(routes!(signals::list))
        .routes(routes!(signals::deliver))
        .routes(routes!(runs::attempts))
        .routes(routes!(runs::effects))
        .routes(routes!(runs::log))
        .routes(routes!(events::of_run))
        .routes(routes!(events::of_tenant))
        .routes(routes!(callbacks::show))
        .routes(routes!(callbacks::redeliver))
        .routes(routes!(callbacks::list))
        .routes(routes!(effects::list))
        .routes(routes!(effects::show))
        .routes(routes!(resolve::resolve))
        .routes(routes!(secrets::list))
        .routes(routes!(secrets::put, secrets::delete))
        .routes(routes!(providers::list))
        .routes(routes!(providers::show, providers::put, providers::delete))
        .routes(routes!(hooks::list))
        .routes(routes!(hooks::deliver, hooks::put, hooks::show, hooks::delete))
        .routes(routes!(hooks::deliveries))
        .routes(routes!(tenants::create, tenants::list))
        .routes(routes!(tenants::limits::set, tenants::limits::show))
        .routes(routes!(tenants::signers::list))
        .routes(routes!(tenants::signers::put, tenants::signers::delete))
        .routes(routes!(tenants::pause))
        .routes(routes!(tenants::resume))
        .routes(routes!(tenants::tokens::mint, tenants::tokens::list))
        .routes(routes!(tenants::tokens::revoke))
}

async fn unknown_route() -> Problem {
    Problem::not_found("route; the routes are under /v1")
}

async fn wrong_method() -> Problem {
    Problem::wrong_method()
}
