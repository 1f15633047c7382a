//! What surrounds every request: its id, its span, its end if it panics or takes too long, and the rendering of problems.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tracing::{Instrument, field};
use uuid::Uuid;

use super::error::Problem;
use super::{Api, limits, unread};
use crate::config::{ApiConfig, ms};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Answers a request inside its span. The span has the route's template, never the path or the query.
pub async fn frame(State(api): State<Api>, request: Request, next: Next) -> Response {
    let request_id = Uuid::new_v4();
    let route = request.extensions().get::<MatchedPath>().map_or("unknown", MatchedPath::as_str);
    let span = tracing::info_span!(
        "http.request",
        request.id = %request_id,
        http.method = %request.method(),
        http.route = route,
        tenant.id = field::Empty,
    );
    let (mut request, rest) = unread::split(request);
    hide(request.headers_mut());
    let answer = async move {
        let clock = api.gateway.clock();
        let start = clock.elapsed();
        let limit = api.config.api.max_request_ms;
        let answer = rest.within(ms(limit), handle(&api.config.api, request, next)).await;
        let in_time = answer.is_some();
        let response = answer.unwrap_or_else(|| Problem::too_slow(limit).into_response());
        let mut response = finish(response, request_id);
        // After a late one somebody may still be reading the body, and must not miss a part of it.
        if !in_time || !rest.drain().await {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let duration_ms = clock.elapsed().saturating_sub(start).as_millis() as u64;
        tracing::debug!(http.status = response.status().as_u16(), duration_ms, "answered");
        response
    };
    answer.instrument(span).await
}

/// Marks tokens, request keys and signatures, so that no library that shows headers shows them.
fn hide(headers: &mut HeaderMap) {
    const SECRET: [&str; 5] =
        ["authorization", "idempotency-key", "webhook-signature", "stripe-signature", "x-hub-signature-256"];
    headers
        .iter_mut()
        .filter(|(name, _)| SECRET.contains(&name.as_str()))
        .for_each(|(_, value)| value.set_sensitive(true));
}

/// What changes something goes on in a task of its own: a client that hangs up, or that has waited too long, does not stop it.
async fn handle(config: &ApiConfig, request: Request, next: Next) -> Response {
    if let Err(problem) = limits::check(&request, config) {
        return problem.into_response();
    }
    let only_reads = request.method().is_safe();
    let answer = AssertUnwindSafe(next.run(request)).catch_unwind();
    let answer = match only_reads {
        true => answer.await,
        false => tokio::spawn(answer.in_current_span()).await.unwrap_or_else(|lost| Err(Box::new(lost.to_string()))),
    };
    answer.unwrap_or_else(|panic| Problem::internal(words(&*panic)).into_response())
}

fn finish(mut response: Response, request_id: Uuid) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        let mut rendered = problem.render(request_id);
        if let Some(allowed) = response.headers_mut().remove(header::ALLOW) {
            rendered.headers_mut().insert(header::ALLOW, allowed);
        }
        response = rendered;
    }
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(&request_id.to_string()) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panic: {}", text.as_deref().unwrap_or("without words"))
}
