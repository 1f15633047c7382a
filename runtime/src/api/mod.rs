//! The HTTP surface: one file per resource. It checks what callers send, asks the modules below it, and turns what they
//! say into JSON; it decides nothing about runs or effects by itself.
//!
//! A tenant comes from the credential and from nowhere else. No token, body or secret may reach a log, a span or an error.

mod activities;
mod auth;
mod body;
mod callbacks;
mod canonical;
mod ceilings;
mod control;
mod depth;
mod effects;
mod error;
mod events;
mod extract;
mod frame;
mod health;
mod hooks;
mod input;
mod keyed;
mod limits;
mod modules;
mod name;
pub mod openwop;
mod page;
mod patience;
mod providers;
mod request_key;
mod resolve;
mod runs;
mod secrets;
mod server;
mod signals;
mod start;
mod tenants;
mod time;
mod tls;
mod unread;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post, put};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

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
    let seams = api.config.api.openwop_seams;
    Router::new()
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .merge(openwop::routes(seams))
        .nest("/v1", native())
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(axum::middleware::from_fn_with_state(api.clone(), frame::frame))
        .layer(axum::middleware::from_fn(openwop::mark))
        .with_state(api)
}

fn native() -> Router<Api> {
    Router::new()
        .route("/modules", post(modules::upload).get(modules::list))
        .route("/modules/{digest}", get(modules::show).delete(modules::delete))
        .route("/activities", get(activities::list))
        .route("/activities/{name}", put(activities::deploy).get(activities::show).delete(activities::retire))
        .route("/activities/{name}/pause", post(control::pause_activity))
        .route("/activities/{name}/resume", post(control::resume_activity))
        .route("/activities/{name}/runs", post(start::start))
        .route("/runs", get(runs::list))
        .route("/runs/cancel", post(control::cancel_many))
        .route("/runs/{run}", get(runs::show))
        .route("/runs/{run}/cancel", post(control::cancel))
        .route("/runs/{run}/pause", post(control::pause))
        .route("/runs/{run}/resume", post(control::resume))
        .route("/runs/{run}/retry", post(control::retry))
        .route("/runs/{run}/signals", get(signals::list))
        .route("/runs/{run}/signals/{name}", post(signals::deliver))
        .route("/runs/{run}/attempts", get(runs::attempts))
        .route("/runs/{run}/effects", get(runs::effects))
        .route("/runs/{run}/log", get(runs::log))
        .route("/runs/{run}/events", get(events::of_run))
        .route("/events", get(events::of_tenant))
        .route("/runs/{run}/callback", get(callbacks::show))
        .route("/runs/{run}/callback/redeliver", post(callbacks::redeliver))
        .route("/callbacks", get(callbacks::list))
        .route("/effects", get(effects::list))
        .route("/effects/{effect}", get(effects::show))
        .route("/effects/{effect}/resolve", post(resolve::resolve))
        .route("/secrets", get(secrets::list))
        .route("/secrets/{name}", put(secrets::put).delete(secrets::delete))
        .route("/providers", get(providers::list))
        .route("/providers/{name}", get(providers::show).put(providers::put).delete(providers::delete))
        .route("/hooks", get(hooks::list))
        .route("/hooks/{name}", post(hooks::deliver).put(hooks::put).get(hooks::show).delete(hooks::delete))
        .route("/hooks/{name}/deliveries", get(hooks::deliveries))
        .route("/tenants", post(tenants::create).get(tenants::list))
        .route("/tenants/{tenant}/limits", put(tenants::limits::set).get(tenants::limits::show))
        .route("/tenants/{tenant}/pause", post(tenants::pause))
        .route("/tenants/{tenant}/resume", post(tenants::resume))
        .route("/tenants/{tenant}/tokens", post(tenants::tokens::mint).get(tenants::tokens::list))
        .route("/tenants/{tenant}/tokens/{token}", delete(tenants::tokens::revoke))
}

async fn unknown_route() -> Problem {
    Problem::not_found("route; the routes are under /v1")
}

async fn wrong_method() -> Problem {
    Problem::wrong_method()
}
