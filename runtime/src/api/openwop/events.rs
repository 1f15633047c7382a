//! A run's log, followed: as server-sent events that end with the run, or by long polls. An event's number is where to
//! go on.

mod mode;
mod stream;

use std::pin::pin;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::log::Event;
use super::run::status;
use super::{ids, runs};
use crate::api::Api;
use crate::api::auth::{Caller, scope};
use crate::api::error::{Problem, Result};
use crate::api::extract::{Json, Path, Query};
use crate::config::ms;
use crate::store::event::{self, Numbered, Position};
use crate::store::run::Run;
use mode::Modes;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Events that are read at once.
const PAGE: i64 = 100;

/// How long a poll waits, in seconds.
const DEFAULT_WAIT: u64 = 30;
const MAX_WAIT: u64 = 60;

/// Events of one poll at most. A client goes on behind the last of them.
const MOST: usize = 1_000;

/// How soon those who wait look again: at first, since an event can be told a moment after what it tells of, and at last.
/// Without bells nothing else tells of the end.
const AGAIN: Duration = Duration::from_millis(200);
const SLOWEST: Duration = Duration::from_secs(2);
const SLOWEST_DEAF: Duration = Duration::from_millis(500);

const MAX_BUFFER_MS: u64 = 5_000;

/// Parameters that are not known here are passed over: clients send `resumable`, which every stream of ours is.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct Followed {
    stream_mode: Option<String>,
    buffer_ms: Option<u64>,
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct Polled {
    /// The number of the last event that the caller has; -1 is what an empty log answers.
    after_sequence: Option<i64>,
    timeout: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopPoll)]
pub struct Poll {
    run_id: String,
    events: Vec<Event>,
    /// Of the newest event in the log; -1 when there is none. Of the last one here where more are behind it.
    last_sequence: i64,
    status: &'static str,
    is_terminal: bool,
}

/// Follows a run as server-sent events, until it has ended and all was told.
#[utoipa::path(
    get, path = "/runs/{run}/events", operation_id = "openwop_follow_run", tag = "openwop",
    params(
        Followed,
        ("Last-Event-ID" = Option<u32>, Header, description = "The number of the last event that was seen.")
    ),
    responses((status = 200, body = Event, content_type = "text/event-stream"), (status = 429)),
    security(("bearer" = ["read"]))
)]
pub async fn stream(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(segment): Path<String>,
    Query(query): Query<Followed>,
    headers: HeaderMap,
) -> Result<Response> {
    let modes = Modes::read(query.stream_mode.as_deref())?;
    let buffer = query.buffer_ms.unwrap_or(0);
    if buffer > MAX_BUFFER_MS {
        return Err(Problem::validation(format!("bufferMs: must be 0 to {MAX_BUFFER_MS}")));
    }
    let at = Position::behind(last_seen(&headers)?.map_or(0, |sequence| sequence + 1));
    let run_id = ids::run(&segment, &caller.tenant)?;
    runs::find(&api, &caller.tenant, run_id).await?;
    let seat = api.seats.take(&caller.tenant, &api.config.api)?;
    let credential = headers.get(header::AUTHORIZATION).cloned().map(|mut value| {
        value.set_sensitive(true);
        (header::AUTHORIZATION, value)
    });
    let log = Log { api, tenant: caller.tenant, run_id };
    let credential = HeaderMap::from_iter(credential);
    Ok(stream::Stream::new(log, credential, at, modes, ms(buffer), seat).into_response())
}

/// Waits for the events behind a number. They are told once there are any, the run has ended, or the time is over.
#[utoipa::path(
    get, path = "/runs/{run}/events/poll", operation_id = "openwop_poll_run", tag = "openwop",
    params(Polled), responses((status = 200, body = Poll)), security(("bearer" = ["read"]))
)]
pub async fn poll(
    State(api): State<Api>,
    caller: Caller<scope::Read>,
    Path(segment): Path<String>,
    Query(query): Query<Polled>,
) -> Result<Json<Poll>> {
    let after = query.after_sequence.unwrap_or(-1);
    let seconds = query.timeout.unwrap_or(DEFAULT_WAIT);
    if after < -1 {
        return Err(Problem::validation("afterSequence: must be the number of an event"));
    }
    if !(1..=MAX_WAIT).contains(&seconds) {
        return Err(Problem::validation(format!("timeout: must be 1 to {MAX_WAIT} seconds")));
    }
    let wait = Duration::from_secs(seconds).min(ms(api.config.api.max_wait_ms));
    let run_id = ids::run(&segment, &caller.tenant)?;
    let log = Log { api, tenant: caller.tenant, run_id };
    Ok(Json(log.poll(after, Instant::now() + wait).await?))
}

/// The number of the last event that the client has seen.
fn last_seen(headers: &HeaderMap) -> Result<Option<i64>> {
    let wrong = || Problem::validation("Last-Event-ID: must be the number of an event");
    let mut all = headers.get_all(LAST_EVENT_ID).iter();
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => {
            let text = one.to_str().map_err(|_| wrong())?;
            let number: u32 = text.parse().map_err(|_| wrong())?;
            Ok(Some(number.into()))
        }
        (Some(_), Some(_)) => Err(wrong()),
    }
}

/// The log of one run.
struct Log {
    api: Api,
    tenant: String,
    run_id: Uuid,
}

impl Log {
    async fn poll(&self, after: i64, deadline: Instant) -> Result<Poll> {
        let mut pause = AGAIN;
        loop {
            let bells = self.api.gateway.wakes().ended.watch(self.run_id);
            let mut bell = pin!(bells.bell.notified());
            // From here on no ring is missed, so that the look below cannot come too early.
            bell.as_mut().enable();
            let (rows, over) = self.behind(Position::behind(after.saturating_add(1))).await?;
            let run = runs::find(&self.api, &self.tenant, self.run_id).await?;
            // The end is told with the event that tells of it, so that nobody stops before that.
            let news = rows.len() >= MOST || (!rows.is_empty() && run.ended_at.is_none());
            if over || news || Instant::now() >= deadline || self.api.stop.is_cancelled() {
                return self.answer(after, run, rows, over).await;
            }
            if !rows.is_empty() {
                pause = AGAIN;
            }
            tokio::select! {
                () = bell => pause = AGAIN,
                () = tokio::time::sleep_until(deadline.min(Instant::now() + pause)) => {
                    pause = longer(pause, self.api.gateway.wakes().hears());
                }
                () = self.api.stop.cancelled() => {}
            }
        }
    }

    async fn answer(&self, after: i64, run: Run, rows: Vec<Numbered>, over: bool) -> Result<Poll> {
        let last = match rows.last() {
            Some(last) => last.sequence - 1,
            None => self.last(after).await?,
        };
        let status = status(&run);
        let events = rows.into_iter().map(|row| Event::new(&self.tenant, &run, row)).collect();
        let run_id = ids::bound(&self.tenant, self.run_id);
        Ok(Poll { run_id, events, last_sequence: last, status, is_terminal: over })
    }

    /// The events behind a position, up to the most that a poll tells, and whether there will be no more.
    async fn behind(&self, at: Position) -> Result<(Vec<Numbered>, bool)> {
        let (mut rows, mut at) = (Vec::new(), at);
        loop {
            let page = self.page(at).await?;
            let (whole, end) = (page.len() < PAGE as usize, page.last().map(position));
            at = end.unwrap_or(at);
            rows.extend(page);
            if rows.len() >= MOST {
                return Ok((rows, false));
            }
            if whole {
                return Ok((rows, self.is_over(at).await?));
            }
        }
    }

    async fn page(&self, at: Position) -> Result<Vec<Numbered>> {
        Ok(event::list_of_run(&self.api.store, &self.tenant, self.run_id, at, PAGE).await?)
    }

    async fn is_over(&self, at: Position) -> Result<bool> {
        event::is_over(&self.api.store, &self.tenant, self.run_id, at).await?.ok_or_else(ids::unknown)
    }

    /// The newest event's number, where none was behind `after`: a caller can ask beyond the end.
    async fn last(&self, after: i64) -> Result<i64> {
        let count = event::count_of_run(&self.api.store, &self.tenant, self.run_id).await?;
        // What came since the look is news for the next poll, which must not go on behind it.
        Ok(after.min(count - 1))
    }
}

/// The pause after one in which nothing came.
fn longer(pause: Duration, hears: bool) -> Duration {
    (pause * 2).min(if hears { SLOWEST } else { SLOWEST_DEAF })
}

/// Where to go on behind an event.
fn position(row: &Numbered) -> Position {
    Position { sequence: row.sequence, place: Some(row.event.place) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn who_waits_in_vain_looks_less_often_and_more_often_when_nothing_is_heard() {
        let pauses = |hears: bool| {
            let all = std::iter::successors(Some(AGAIN), |pause| Some(longer(*pause, hears)));
            all.take(6).map(|pause| pause.as_millis()).collect::<Vec<_>>()
        };
        assert_eq!(pauses(true), [200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(pauses(false), [200, 400, 500, 500, 500, 500]);
    }

    #[test]
    fn a_stream_goes_on_behind_a_number_and_nothing_else() {
        let seen = |values: &[&'static str]| {
            let pairs = values.iter().map(|value| (LAST_EVENT_ID, HeaderValue::from_static(value)));
            let mut headers = HeaderMap::new();
            pairs.for_each(|(name, value)| {
                headers.append(name, value);
            });
            last_seen(&headers).ok()
        };
        assert_eq!((seen(&[]), seen(&["0"]), seen(&["41"])), (Some(None), Some(Some(0)), Some(Some(41))));
        for wrong in [&["-1"][..], &["x"], &[""], &["1", "2"], &["99999999999"]] {
            assert_eq!(seen(wrong), None, "{wrong:?}");
        }
    }
}
