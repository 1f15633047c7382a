//! The stream itself (WHATWG HTML, section 9.2). The next page is read only when the client has taken the one before,
//! so that a slow client holds up nobody and fills nothing.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use tokio::time::Instant;

use super::mode::Modes;
use super::{AGAIN, Log, MAX_BUFFER_MS, longer, position};
use crate::api::auth::{Caller, scope};
use crate::api::error::Result;
use crate::api::events::Seat;
use crate::api::openwop::log::Event;
use crate::api::openwop::runs;
use crate::config::ms;
use crate::store::event::{Numbered, Position};

/// How long a token that was revoked can keep its stream.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// The specification allows 30 seconds of silence, and events are gathered in a part of them.
const LONGEST_SILENCE: Duration = Duration::from_millis(30_000 - MAX_BUFFER_MS);

/// One client's stream.
pub struct Stream {
    log: Log,
    /// The request's credential, which is looked at again and again.
    credential: HeaderMap,
    at: Position,
    modes: Modes,
    /// How long events are gathered before they are told together.
    buffer: Duration,
    _seat: Seat,
    opened: bool,
    pause: Duration,
    said: Instant,
    checked: Instant,
}

impl Stream {
    pub fn new(log: Log, credential: HeaderMap, at: Position, modes: Modes, buffer: Duration, seat: Seat) -> Self {
        let now = Instant::now();
        let (opened, pause) = (false, AGAIN);
        Self { log, credential, at, modes, buffer, _seat: seat, opened, pause, said: now, checked: now }
    }

    async fn next(&mut self) -> Option<Bytes> {
        if !self.opened {
            self.opened = true;
            return Some(Bytes::from_static(b"retry: 1000\n\n"));
        }
        match self.page().await {
            Ok(page) => page,
            Err(problem) => {
                tracing::warn!(?problem, "a stream of events ended early");
                None
            }
        }
    }

    /// What is told next; none when all was told, or the stream may not go on.
    async fn page(&mut self) -> Result<Option<Bytes>> {
        let api = self.log.api.clone();
        let beat = beat(api.config.api.heartbeat_ms);
        loop {
            let watch = api.gateway.wakes().ended.watch(self.log.run_id);
            let mut bell = pin!(watch.bell.notified());
            // From here on no ring is missed, so that the look below cannot come too early.
            bell.as_mut().enable();
            if !self.may_go_on(beat).await {
                return Ok(None);
            }
            let rows = self.log.page(self.at).await?;
            if !rows.is_empty() {
                self.pause = AGAIN;
                if let Some(told) = self.tell(rows).await? {
                    self.said = Instant::now();
                    return Ok(Some(told));
                }
                continue;
            }
            if self.log.is_over(self.at).await? {
                return Ok(None);
            }
            if self.said.elapsed() >= beat {
                self.said = Instant::now();
                return Ok(Some(Bytes::from_static(b": heartbeat\n\n")));
            }
            let next = (Instant::now() + self.pause).min(self.said + beat);
            tokio::select! {
                () = bell => self.pause = AGAIN,
                () = tokio::time::sleep_until(next) => self.pause = longer(self.pause, api.gateway.wakes().hears()),
                () = api.stop.cancelled() => return Ok(None),
            }
        }
    }

    /// False when the node shuts down, or the token opens this no more.
    async fn may_go_on(&mut self, beat: Duration) -> bool {
        if self.log.api.stop.is_cancelled() {
            return false;
        }
        if self.checked.elapsed() < beat.min(CHECK_EVERY) {
            return true;
        }
        self.checked = Instant::now();
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.headers = self.credential.clone();
        Caller::<scope::Read>::from_request_parts(&mut parts, &self.log.api).await.is_ok()
    }

    /// The frames of some events; none when the stream tells none of them.
    async fn tell(&mut self, rows: Vec<Numbered>) -> Result<Option<Bytes>> {
        let mut events = self.read(rows).await?;
        if self.buffer.is_zero() {
            let frames: String = events.iter().filter_map(|event| self.frame(event)).collect();
            return Ok((!frames.is_empty()).then(|| frames.into()));
        }
        // A run that has stopped, for good or for somebody's word, is told of at once.
        if !events.iter().any(|event| event.is_suspension()) && !self.log.is_over(self.at).await? {
            self.log.api.stop.run_until_cancelled(tokio::time::sleep(self.buffer)).await;
            let more = self.log.page(self.at).await?;
            events.extend(self.read(more).await?);
        }
        events.retain(|event| self.modes.name(event).is_some());
        Ok(events.last().map(|last| batch(last.sequence, &events).into()))
    }

    /// The events as they are told, with the run as it is now.
    async fn read(&mut self, rows: Vec<Numbered>) -> Result<Vec<Event>> {
        self.at = rows.last().map_or(self.at, position);
        let run = runs::find(&self.log.api, &self.log.tenant, self.log.run_id).await?;
        Ok(rows.into_iter().map(|row| Event::new(&self.log.tenant, &run, row)).collect())
    }

    fn frame(&self, event: &Event) -> Option<String> {
        let name = self.modes.name(event)?;
        let data = serde_json::to_string(event).unwrap_or_default();
        Some(format!("id: {}\nevent: {name}\ndata: {data}\n\n", event.sequence))
    }
}

/// The longest silence, of the setting.
fn beat(heartbeat_ms: u64) -> Duration {
    ms(heartbeat_ms).min(LONGEST_SILENCE)
}

/// JSON of this form has no line end.
fn batch(last: i64, events: &[Event]) -> String {
    format!("id: {last}\nevent: batch\ndata: {}\n\n", serde_json::to_string(events).unwrap_or_default())
}

impl IntoResponse for Stream {
    fn into_response(self) -> Response {
        let pages = futures_util::stream::unfold(self, |mut stream| async move {
            let page = stream.next().await?;
            Some((Ok::<_, Infallible>(page), stream))
        });
        // Some proxies gather answers unless they are told not to.
        let headers = [("content-type", "text/event-stream"), ("x-accel-buffering", "no")];
        (headers, Body::from_stream(pages)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_setting_makes_a_stream_silent_for_30_seconds() {
        assert_eq!((beat(50), beat(15_000)), (Duration::from_millis(50), Duration::from_secs(15)));
        assert!(beat(60_000) + ms(MAX_BUFFER_MS) <= Duration::from_secs(30));
    }
}
