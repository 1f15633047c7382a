//! Server-sent events (WHATWG HTML, section 9.2). The next page is read only when the client has taken the one before, so
//! that a slow client holds up nobody and fills nothing.

use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::{HeaderMap, Request};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio::time::Instant;

use super::feed::{Batch, Event, Feed};
use super::seats::Seat;
use crate::api::Api;
use crate::api::auth::{Caller, scope};
use crate::api::error::Result;
use crate::config::ms;
use crate::store::turns::For;
use crate::wakes::Watch;

/// Events of one page.
const PAGE: usize = 100;
/// How soon is looked again: after a bell, which can ring before the event may be told; when something came; and at last.
const AFTER_A_BELL: Duration = Duration::from_millis(20);
const SOON: Duration = Duration::from_millis(250);
const SLOWEST: Duration = Duration::from_secs(2);
/// How long a token that was revoked can keep its stream.
const CHECK_EVERY: Duration = Duration::from_secs(5);
/// How soon a client should come back, in milliseconds.
const RETRY: &str = "retry: 1000\n";

/// One client's stream.
pub struct Stream {
    api: Api,
    tenant: String,
    /// The request's credential, which is looked at again and again.
    credential: HeaderMap,
    feed: Feed,
    _seat: Seat,
    opened: bool,
    /// What the client goes on behind, as far as it was told.
    told: String,
    pause: Duration,
    said: Instant,
    checked: Instant,
}

impl Stream {
    pub fn new(api: Api, tenant: String, credential: HeaderMap, feed: Feed, seat: Seat) -> Self {
        let (now, told) = (Instant::now(), feed.id());
        Self { api, tenant, credential, feed, _seat: seat, opened: false, told, pause: SOON, said: now, checked: now }
    }

    async fn next(&mut self) -> Option<Bytes> {
        if !self.opened {
            self.opened = true;
            return Some(self.opening());
        }
        let beat = ms(self.api.config.api.heartbeat_ms);
        loop {
            let wakes = self.api.gateway.wakes().clone();
            let bells = self.feed.run_id().map(|run| [wakes.ended.watch(run), wakes.signals.watch(run)]);
            // Fused: what was ready at once is waited for again below.
            let mut news = pin!(rung(bells.as_ref()).fuse());
            // From here on no ring is missed, so that the look below cannot come too early.
            if news.as_mut().now_or_never().is_some() {
                self.pause = AFTER_A_BELL;
            }
            if !self.may_go_on(beat).await {
                return None;
            }
            let batch = match self.batch().await {
                Ok(batch) => batch,
                Err(problem) => {
                    tracing::warn!(?problem, "a stream of events ended early");
                    return None;
                }
            };
            if !batch.events.is_empty() {
                return Some(self.page(&batch.events));
            }
            if batch.over {
                return None;
            }
            if self.said.elapsed() >= beat {
                return Some(self.heartbeat());
            }
            if batch.more {
                continue;
            }
            tokio::select! {
                () = news => self.pause = AFTER_A_BELL,
                () = tokio::time::sleep(self.pause) => self.pause = (self.pause * 2).min(SLOWEST),
                () = tokio::time::sleep_until(self.said + beat) => {}
                () = self.api.stop.cancelled() => return None,
            }
        }
    }

    async fn batch(&mut self) -> Result<Batch> {
        let (api, tenant, mut feed) = (self.api.clone(), self.tenant.clone(), self.feed.clone());
        let read = async move {
            let _turn = api.store.turn(&tenant, For::Reading).await?;
            let batch = feed.next(&api.store, &tenant, PAGE).await?;
            Result::Ok((feed, batch))
        };
        let read = self.api.gateway.threads().run(&self.tenant, read).await;
        // None: the node is gone, and with it whoever follows.
        let Some(read) = read else { return std::future::pending().await };
        let (feed, batch) = read?;
        self.feed = feed;
        Ok(batch)
    }

    /// False when the node shuts down, or the token opens this no more.
    async fn may_go_on(&mut self, beat: Duration) -> bool {
        if self.api.stop.is_cancelled() {
            return false;
        }
        if self.checked.elapsed() < beat.min(CHECK_EVERY) {
            return true;
        }
        self.checked = Instant::now();
        let (mut parts, ()) = Request::new(()).into_parts();
        parts.headers = self.credential.clone();
        Caller::<scope::Read>::from_request_parts(&mut parts, &self.api).await.is_ok()
    }

    /// Something at once, so that the client knows that it is heard; and where to come back to, which would otherwise be
    /// another "now".
    fn opening(&self) -> Bytes {
        match self.feed {
            Feed::Run { .. } => format!("{RETRY}\n").into(),
            Feed::Tenant { .. } => format!("{RETRY}id: {}\n\n", self.told).into(),
        }
    }

    /// A comment. What was read and not asked for needs not be read again: the place behind it goes with it.
    fn heartbeat(&mut self) -> Bytes {
        self.said = Instant::now();
        let id = self.feed.id();
        if id == self.told {
            return Bytes::from_static(b": heartbeat\n\n");
        }
        self.told = id;
        format!(": heartbeat\nid: {}\n\n", self.told).into()
    }

    fn page(&mut self, events: &[Event]) -> Bytes {
        (self.said, self.pause) = (Instant::now(), SOON);
        if let Some(last) = events.last() {
            self.told.clone_from(&last.id);
        }
        events.iter().map(frame).collect::<String>().into()
    }
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

/// Neither an id nor a kind nor JSON of this form has a line end.
fn frame(event: &Event) -> String {
    // Made of what can be written: it does not fail, and an event without data would be passed over.
    let data = serde_json::to_string(event).unwrap_or_default();
    format!("id: {}\nevent: {}\ndata: {data}\n\n", event.id, event.kind)
}

/// Waits until something may have happened to the run.
async fn rung(bells: Option<&[Watch<'_>; 2]>) {
    let Some([ended, signals]) = bells else { return std::future::pending().await };
    tokio::select! {
        () = ended.bell.notified() => {}
        () = signals.bell.notified() => {}
    }
}
