//! `wasi:http/outgoing-handler`, for clients that know nothing of Deedbox: the same gateway, and no way past it. Only
//! translates; what a call is, and whether it may be sent, is decided there.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http_body::Frame;
use http_body_util::BodyExt;
use tokio::sync::Notify;
use wasmtime_wasi_http::{Error as Code, RequestOptions, WasiBody, WasiHttpHooks};

use super::stdio::Capture;
use super::untaken::Untaken;
use crate::gateway::{self, Attempt, Broken, Refusal, Request, Response, Stop, Written, is_host_header, is_reserved};

/// Headers that the host adds to every answer: the effect's id, for a call that was claimed, and where the answer is from.
pub const EFFECT_ID: &str = "deedbox-effect-id";
const SOURCE: &str = "deedbox-source";

type Io = Box<dyn Future<Output = Result<(), Code>> + Send>;
type Answered = Result<(http::Response<WasiBody>, Io), Code>;

/// Where a call leaves the reason why the attempt must end: the guest is not asked, but it is not in the call either.
#[derive(Clone, Debug, Default)]
pub struct Stops(Arc<(Mutex<Option<Stop>>, Notify)>);

impl Stops {
    fn put(&self, stop: Stop) {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(stop);
        self.0.1.notify_one();
    }

    /// Ends when a call says that the attempt must.
    pub async fn come(&self) -> Stop {
        loop {
            if let Some(stop) = self.0.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return stop;
            }
            self.0.1.notified().await;
        }
    }
}

/// The way out of one instance.
pub struct Outbound {
    /// None while the module is described.
    pub attempt: Option<Arc<Attempt>>,
    pub stops: Stops,
    /// Error codes of `wasi:http` have no text: what to do about one is said here.
    pub stderr: Capture,
    /// Bodies of answers that the guest has not taken.
    pub untaken: Untaken,
}

impl WasiHttpHooks for Outbound {
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _consumed: Io,
    ) -> Box<dyn Future<Output = Answered> + Send> {
        let Some(attempt) = self.attempt.clone() else {
            let why = super::guest::NoRun("wasi:http").to_string();
            return Box::new(async { Err(Code::InternalError(Some(why))) });
        };
        let (stops, stderr, untaken) = (self.stops.clone(), self.stderr.clone(), self.untaken.clone());
        let head = request.method() == http::Method::HEAD;
        let (request, body) = taken_apart(request, options.unwrap_or_default());
        // Now, in the order in which the guest calls; the rest goes on at its own pace.
        let turn = attempt.turn(&request.method, &request.url);
        Box::new(async move {
            match attempt.send_at(turn, request, body).await {
                Ok(response) => answered(response, head, &untaken)
                    .inspect_err(|code| stderr.say(&format!("wasi:http: {code}{}", advice(code)))),
                Err(gateway::Error::Refused(refusal)) => {
                    stderr.say(&format!("wasi:http: {refusal}"));
                    Err(code(refusal))
                }
                Err(gateway::Error::Stopped(stop)) => {
                    stops.put(stop);
                    std::future::pending().await
                }
            }
        })
    }
}

/// The guest's request without what belongs to the host: a client library sets it by itself.
fn taken_apart(request: http::Request<WasiBody>, options: RequestOptions) -> (Request, Written) {
    let (parts, body) = request.into_parts();
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let own = parts.headers.iter().filter(|(name, _)| !is_host_header(name.as_str()));
    let request = Request {
        headers: own.map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec())).collect(),
        connect: options.connect_timeout,
        timeout: whole(options),
        ..Request::new(parts.method.as_str(), parts.uri.to_string())
    };
    (request, Written { pieces: ToItsEnd(Some(body)).map_err(|_| Broken::Unfinished).boxed_unsync(), length })
}

/// A body that is taken to its end in any case. The guest's client writes it before it looks at the answer: if what it
/// writes to were closed, it would tell of that, and not of why the call was refused.
struct ToItsEnd(Option<WasiBody>);

impl http_body::Body for ToItsEnd {
    type Data = Bytes;
    type Error = Code;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Code>>> {
        let Some(body) = &mut self.0 else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        polled
    }
}

impl Drop for ToItsEnd {
    fn drop(&mut self) {
        // It ends with the guest at the latest.
        if let (Some(mut body), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { while let Some(Ok(_)) = body.frame().await {} });
        }
    }
}

/// The time for a whole send. The gateway hands out whole answers, so that the parts which the guest has set add up.
fn whole(options: RequestOptions) -> Option<Duration> {
    let waits = [options.first_byte_timeout, options.between_bytes_timeout];
    let after_connecting = waits.into_iter().flatten().reduce(Duration::saturating_add)?;
    Some(after_connecting.saturating_add(options.connect_timeout.unwrap_or_default()))
}

/// What to do about an answer that could not be handed over, where the code does not say it.
fn advice(code: &Code) -> &'static str {
    match code {
        Code::HttpResponseBodySize(_) => {
            "; the answers that are not taken yet fill host.max_untaken_bytes: read them, or drop them, before the next call"
        }
        _ => "",
    }
}

fn answered(response: Response, head: bool, untaken: &Untaken) -> Answered {
    let broken = |why: &str| Code::InternalError(Some(why.to_owned()));
    let Response { status, headers, body, source, effect_id } = response;
    let body = body.ok_or_else(|| broken("the recorded answer has no body: it was too large, or a stream"))?;
    let length = body.len();
    let body = untaken.place(body).ok_or_else(|| Code::HttpResponseBodySize(Some(untaken.most())))?;
    let body: WasiBody = body.map_err(|never| match never {}).boxed_unsync();
    let mut map = HeaderMap::new();
    // A provider does not speak for the host.
    for (name, value) in headers.into_iter().filter(|(name, _)| !is_reserved(name)) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(&value)) {
            map.append(name, value);
        }
    }
    // Masking may have changed it. That of an answer to HEAD is about a body that is not there.
    if !head && map.contains_key(CONTENT_LENGTH) {
        map.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if let Some(id) = effect_id.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
        map.insert(EFFECT_ID, id);
    }
    map.insert(SOURCE, HeaderValue::from_static(source.as_str()));
    let mut answer = http::Response::builder().status(status).body(body).map_err(|e| broken(&e.to_string()))?;
    *answer.headers_mut() = map;
    Ok((answer, Box::new(async { Ok(()) })))
}

/// The closest of the codes that `wasi:http` has; the text, where one can have it.
fn code(refusal: Refusal) -> Code {
    match refusal {
        Refusal::Denied(_) => Code::HttpRequestDenied,
        Refusal::Unreachable(_) => Code::DestinationUnavailable,
        Refusal::TimedOut => Code::ConnectionReadTimeout,
        Refusal::ResponseTooLarge(limit) => Code::HttpResponseBodySize(Some(limit)),
        Refusal::ConnectionLost(_) => Code::ConnectionTerminated,
        Refusal::EffectMismatch(_) | Refusal::InFlight | Refusal::OutcomeUnknown(_) | Refusal::InvalidRequest(_) => {
            Code::InternalError(Some(refusal.to_string()))
        }
    }
}
