//! The HTTP surface: one file per resource. It checks what callers send, asks the modules below it, and turns what they
//! say into JSON; it decides nothing about runs or effects by itself.
//!
//! A tenant comes from the credential and from nowhere else. No token, body or secret may reach a log, a span or an error.

mod activities;
mod auth;
mod effects;
mod ended;
mod error;
mod extract;
mod frame;
mod health;
mod modules;
mod name;
mod page;
mod providers;
mod resolve;
mod runs;
mod secrets;
mod tenants;
mod time;
mod unread;
mod witness;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{delete, get, post, put};
use axum::serve::ListenerExt;
use tokio::net::TcpListener;

use self::ended::Ended;
use self::error::Problem;
use crate::config::Config;
use crate::gateway::Gateway;
use crate::registry::Registry;
use crate::store::Store;

/// How long open requests may go on after the shutdown began.
const DRAIN: Duration = Duration::from_secs(10);

/// What all requests of a node share.
#[derive(Clone)]
pub struct Api {
    store: Store,
    registry: Arc<Registry>,
    gateway: Arc<Gateway>,
    config: Arc<Config>,
    ended: Arc<Ended>,
}

impl Api {
    pub fn new(store: Store, registry: Arc<Registry>, gateway: Arc<Gateway>, config: Arc<Config>) -> Self {
        Self { store, registry, gateway, config, ended: Arc::default() }
    }
}

/// Answers requests until `shutdown` is done. Long polls end then; other requests under way have ten seconds to end.
pub async fn serve(
    listener: TcpListener,
    api: Api,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let ended = api.ended.clone();
    let ears = tokio::spawn({
        let (ended, store) = (ended.clone(), api.store.clone());
        async move { ended.listen(&store).await }
    });
    let stop = ended.stop.clone();
    let listener = listener.tap_io(|connection| {
        // Answers are small and written whole: waiting for more to send only delays them.
        if let Err(error) = connection.set_nodelay(true) {
            tracing::debug!(%error, "a connection keeps its delay");
        }
    });
    let signal = async move {
        shutdown.await;
        stop.cancel();
    };
    let server = axum::serve(listener, router(api)).with_graceful_shutdown(signal);
    let outcome = tokio::select! {
        outcome = server => outcome,
        () = overdue(&ended) => Ok(()),
    };
    ended.stop.cancel();
    if let Err(error) = ears.await {
        tracing::error!(%error, "the listener for ended runs failed");
    }
    outcome
}

async fn overdue(ended: &Ended) {
    ended.stop.cancelled().await;
    tokio::time::sleep(DRAIN).await;
    tracing::warn!("some requests were still under way at the end of the shutdown");
}

/// All routes. Without `serve`, long polls are answered by polling alone.
pub fn router(api: Api) -> Router {
    Router::new()
        .route("/healthz", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/runs/{run}/effects", get(witness::show))
        .nest("/v1", native())
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(axum::middleware::from_fn_with_state(api.clone(), frame::frame))
        .with_state(api)
}

fn native() -> Router<Api> {
    Router::new()
        .route("/modules", post(modules::upload).get(modules::list))
        .route("/modules/{digest}", get(modules::show).delete(modules::delete))
        .route("/activities", get(activities::list))
        .route("/activities/{name}", put(activities::deploy).get(activities::show).delete(activities::retire))
        .route("/activities/{name}/runs", post(runs::start))
        .route("/runs", get(runs::list))
        .route("/runs/{run}", get(runs::show))
        .route("/runs/{run}/attempts", get(runs::attempts))
        .route("/runs/{run}/effects", get(runs::effects))
        .route("/runs/{run}/log", get(runs::log))
        .route("/effects", get(effects::list))
        .route("/effects/{effect}", get(effects::show))
        .route("/effects/{effect}/resolve", post(resolve::resolve))
        .route("/secrets", get(secrets::list))
        .route("/secrets/{name}", put(secrets::put).delete(secrets::delete))
        .route("/providers", get(providers::list))
        .route("/providers/{name}", get(providers::show).put(providers::put).delete(providers::delete))
        .route("/tenants", post(tenants::create).get(tenants::list))
        .route("/tenants/{tenant}/tokens", post(tenants::mint).get(tenants::tokens))
        .route("/tenants/{tenant}/tokens/{token}", delete(tenants::revoke))
}

async fn unknown_route() -> Problem {
    Problem::not_found("route; the routes are under /v1")
}

async fn wrong_method() -> Problem {
    Problem::wrong_method()
}
