//! `/v1/runs/{id}/events` and `/v1/events`: what happened to runs, as a stream of server-sent events that can be taken up
//! again where it broke off, or as a page of JSON. Never what a guest, a caller or a provider said.

pub(crate) mod cursor;
mod feed;
mod seats;
mod stream;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::auth::{Caller, scope};
use super::error::{Problem, Result};
use super::extract::{Json, Path, Query};
use super::page::{self, Page};
use super::{Api, name, runs};
use crate::store::event::{self, Place, Position};
use feed::{Feed, Only};
use stream::Stream;

pub use seats::{Seat, Seats};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

const KINDS: [&str; 13] = [
    "run.queued",
    "run.started",
    "run.waiting",
    "run.completed",
    "run.failed",
    "run.cancelled",
    "run.cancelling",
    "run.paused",
    "run.resumed",
    "signal.received",
    "effect.escaped",
    "effect.resolved",
    "effect.doubled",
];

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OfRun {
    /// For clients that cannot set `Last-Event-ID`. The header goes before it.
    after: Option<String>,
    limit: Option<u32>,
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OfTenant {
    after: Option<String>,
    /// Where to begin without `after`; now if absent.
    #[param(inline)]
    from: Option<Beginning>,
    activity: Option<String>,
    kind: Option<String>,
    limit: Option<u32>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Beginning {
    Oldest,
    Now,
}

/// Follows a run from its first event, until it has ended and all was told. As server-sent events, or with `Accept:
/// application/json` as a page.
#[utoipa::path(
    get, path = "/runs/{run}/events", operation_id = "follow_run", tag = "events",
    params(
        OfRun,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen.")
    ),
    responses(
        (status = 200, content((feed::Event = "text/event-stream"), (Page<feed::Event> = "application/json"))),
        (status = 204, description = "Nothing will follow."),
        (status = 429)
    ),
    security(("bearer" = ["read"]))
)]
pub async fn of_run(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(run): Path<String>,
    Query(query): Query<OfRun>,
    headers: HeaderMap,
) -> Result<Response> {
    let row = runs::find(&api, &caller.tenant, &run).await?;
    let last = last_seen(&headers, query.after)?;
    let at = last.as_deref().map(cursor::position).transpose()?;
    check_known(&api, at.and_then(|at| at.place)).await?;
    let feed = Feed::Run { run_id: row.run_id, at: at.unwrap_or(Position::behind(0)) };
    // A client that has all is told not to come back.
    if at.is_some() && !wants_page(&headers) && feed.is_over(&api.store, &caller.tenant).await? {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    answer(api, caller, &headers, feed, query.limit).await
}

/// Follows all runs of the tenant, from now on unless it is said otherwise. As server-sent events, or with `Accept:
/// application/json` as a page.
#[utoipa::path(
    get, path = "/events", operation_id = "follow_runs", tag = "events",
    params(
        OfTenant,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was seen.")
    ),
    responses(
        (status = 200, content((feed::Event = "text/event-stream"), (Page<feed::Event> = "application/json"))),
        (status = 429)
    ),
    security(("bearer" = ["read"]))
)]
pub async fn of_tenant(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Query(query): Query<OfTenant>,
    headers: HeaderMap,
) -> Result<Response> {
    query.activity.as_deref().map_or(Ok(()), |activity| name::check("activity", activity))?;
    if query.kind.as_deref().is_some_and(|kind| !KINDS.contains(&kind)) {
        return Err(Problem::validation(format!("kind: must be one of {}", KINDS.join(", "))));
    }
    let at = match (last_seen(&headers, query.after)?, query.from) {
        (Some(last), _) => {
            let at = cursor::place(&last)?;
            check_known(&api, Some(at)).await?;
            at
        }
        (None, Some(Beginning::Oldest)) => Place::START,
        (None, Some(Beginning::Now) | None) => event::now(&api.store).await?,
    };
    let feed = Feed::Tenant { only: Only { activity: query.activity, kind: query.kind }, at };
    answer(api, caller, &headers, feed, query.limit).await
}

async fn answer(
    api: Api,
    caller: Caller<scope::Read>,
    headers: &HeaderMap,
    mut feed: Feed,
    limit: Option<u32>,
) -> Result<Response> {
    if wants_page(headers) {
        let limit = page::limit(limit, &api.config.api)?;
        let items = feed.next(&api.store, &caller.tenant, limit).await?.events;
        // Also at the end: whoever asks again gets what has come since.
        return Ok(Json(Page { items, after: Some(feed.id()) }).into_response());
    }
    if limit.is_some() {
        return Err(Problem::validation("limit: a stream has none; ask with `Accept: application/json` for a page"));
    }
    let seat = api.seats.take(&caller.tenant, &api.config.api)?;
    let credential = headers.get(header::AUTHORIZATION).cloned();
    let credential = credential.map(|mut value| {
        value.set_sensitive(true);
        (header::AUTHORIZATION, value)
    });
    let credential = HeaderMap::from_iter(credential);
    Ok(Stream::new(api, caller.tenant, credential, feed, seat).into_response())
}

/// Refuses a place that was not told yet: the database is another one than that which gave it, or was restored to an earlier
/// time. Whoever went on from there would miss what happens until then.
async fn check_known(api: &Api, place: Option<Place>) -> Result<()> {
    let Some(place) = place else { return Ok(()) };
    match place.turn <= event::now(&api.store).await?.turn {
        true => Ok(()),
        false => Err(cursor::unknown()),
    }
}

/// The id of the last event that the client has seen.
fn last_seen(headers: &HeaderMap, query: Option<String>) -> Result<Option<String>> {
    let mut all = headers.get_all(LAST_EVENT_ID).iter();
    let given = match (all.next(), all.next()) {
        (None, _) => query,
        (Some(one), None) => {
            let text = one.to_str().map_err(|_| Problem::validation("Last-Event-ID: must be visible ASCII"))?;
            // Browsers leave it out, others send it empty when they have seen none.
            if text.is_empty() { query } else { Some(text.to_owned()) }
        }
        (Some(_), Some(_)) => return Err(Problem::validation("Last-Event-ID: must be there once")),
    };
    Ok(given)
}

fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let kinds: Vec<&str> =
        accepted.flat_map(|value| value.split(',')).filter_map(|kind| kind.split(';').next()).collect();
    let has = |wanted: &str| kinds.iter().any(|kind| kind.trim().eq_ignore_ascii_case(wanted));
    has("application/json") && !has("text/event-stream")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(all: &[(HeaderName, &'static str)]) -> HeaderMap {
        let each = all.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value)));
        each.collect()
    }

    #[test]
    fn the_header_goes_before_the_query() {
        let seen = |all: &[&'static str], query: &str| {
            let all: Vec<_> = all.iter().map(|value| (LAST_EVENT_ID, *value)).collect();
            last_seen(&headers(&all), (!query.is_empty()).then(|| query.to_owned()))
        };
        assert_eq!(seen(&["a"], "b").unwrap().as_deref(), Some("a"));
        assert_eq!(seen(&[""], "b").unwrap().as_deref(), Some("b"));
        assert_eq!((seen(&[], "b").unwrap().as_deref(), seen(&[], "").unwrap()), (Some("b"), None));
        assert!(seen(&["a", "b"], "").is_err());
    }

    #[test]
    fn a_page_is_given_to_those_who_ask_for_json_alone() {
        let asked = |value: &'static str| wants_page(&headers(&[(header::ACCEPT, value)]));
        assert!(asked("application/json") && asked("text/html, Application/JSON;q=0.9"));
        assert!(!asked("*/*") && !asked("text/event-stream, application/json") && !wants_page(&HeaderMap::new()));
    }
}
