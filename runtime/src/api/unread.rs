//! What is left of a request's body when its answer is ready. A connection that is closed over bytes nobody read can take the
//! answer with it, and breaks the sender's next request; so a small rest is read and dropped, and after a large one the answer
//! says that the connection ends.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::http::header;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::time::Instant;

/// The most that is read for nothing, and the longest time.
const MOST: usize = 4 << 20;
const LONGEST: Duration = Duration::from_secs(1);

/// A body that two can hold: who answers the request, and `drain` after that.
#[derive(Clone)]
struct Shared(Arc<Mutex<Arriving>>);

struct Arriving {
    body: Body,
    /// When a part of it came last.
    heard: Instant,
}

/// The body of a request that is being answered.
pub struct Rest {
    body: Option<Shared>,
    begun: Instant,
    /// The sender waits to be told to send: reading would tell it to.
    waits: bool,
}

/// Splits the rest of the body from a request. A request without a body is left as it is.
pub fn split(request: Request) -> (Request, Rest) {
    let begun = Instant::now();
    if request.body().is_end_stream() {
        return (request, Rest { body: None, begun, waits: false });
    }
    let waits = request.headers().contains_key(header::EXPECT);
    let (parts, body) = request.into_parts();
    let shared = Shared(Arc::new(Mutex::new(Arriving { body, heard: begun })));
    (Request::from_parts(parts, Body::new(shared.clone())), Rest { body: Some(shared), begun, waits })
}

impl Rest {
    /// What comes of answering the request, unless it takes longer than `limit` from the last part of the body that was read:
    /// how long the sender takes has limits of its own.
    pub async fn within<T>(&self, limit: Duration, answering: impl Future<Output = T>) -> Option<T> {
        let overdue = async {
            loop {
                let end = self.body.as_ref().map_or(self.begun, |body| body.arriving().heard) + limit;
                if Instant::now() >= end {
                    return;
                }
                tokio::time::sleep_until(end).await;
            }
        };
        tokio::select! {
            biased;
            answer = answering => Some(answer),
            () = overdue => None,
        }
    }

    /// Reads what is left; false when that is too much, and the connection has to end.
    pub async fn drain(self) -> bool {
        let Some(mut body) = self.body.filter(|body| !body.is_end_stream()) else { return true };
        let reading = async {
            let mut read = 0;
            while let Some(frame) = body.frame().await {
                read += frame.ok().and_then(|frame| frame.into_data().ok()).map_or(MOST, |data| data.len());
                if read >= MOST {
                    return false;
                }
            }
            true
        };
        !self.waits && tokio::time::timeout(LONGEST, reading).await.unwrap_or(false)
    }
}

impl Shared {
    fn arriving(&self) -> MutexGuard<'_, Arriving> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for Shared {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let mut arriving = self.arriving();
        let frame = Pin::new(&mut arriving.body).poll_frame(cx);
        if frame.is_ready() {
            arriving.heard = Instant::now();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.arriving().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.arriving().body.size_hint()
    }
}
