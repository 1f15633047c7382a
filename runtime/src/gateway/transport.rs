//! One request on one connection of its own. Nothing is pooled and nothing is resent, so that a send is a send; and
//! whether the first byte of the request was written is known exactly.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::resolver::Target;
use super::trust::Trust;
use super::upload::{Broken, Upload};
use crate::clock::Clock;

/// A request with everything in it, ready for the wire.
pub struct Outgoing {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Payload,
}

/// What is sent after the headers.
pub enum Payload {
    Buffered(Bytes),
    /// Read once: a request with it can be sent once.
    Streamed(Upload),
}

/// The bounds of one send.
pub struct Bounds {
    pub connect: Duration,
    pub whole: Duration,
    /// By the clock: no first byte is written after it.
    pub not_after: Duration,
    pub max_response_bytes: usize,
    pub cancel: CancellationToken,
}

/// What came of a send.
#[derive(Debug)]
pub enum Sent {
    Answer {
        status: u16,
        headers: HeaderMap,
        body: Body,
    },
    /// No byte of the request was written.
    Nothing(String),
    /// No byte of the request was written, because its time had passed.
    TooLate,
    /// A byte was written and no status came back.
    TimedOut,
    Lost(String),
}

/// How much of an answer's body came.
#[derive(Debug)]
pub enum Body {
    Whole(Bytes),
    /// It did not end within the limit.
    TooLarge,
    /// It broke off, or did not end in time.
    Cut,
    /// The answer that had it is gone for good.
    Gone,
}

impl Sent {
    /// The body of an answer, as far as it came.
    pub fn body(&self) -> &[u8] {
        match self {
            Self::Answer { body: Body::Whole(bytes), .. } => bytes,
            _ => &[],
        }
    }
}

#[derive(Debug)]
pub struct Transport {
    clock: Arc<dyn Clock>,
    trust: Trust,
}

impl Transport {
    /// Trusts the platform's certificate authorities, and those that a target adds.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, trust: Trust::load() }
    }

    /// The platform's certificate authorities.
    pub fn roots(&self) -> Arc<RootCertStore> {
        self.trust.platform()
    }

    /// Sends once. Never fails: every way it can go is a [`Sent`].
    pub async fn send(&self, outgoing: Outgoing, target: &Target, bounds: Bounds) -> Sent {
        let first = FirstByte::default();
        let cancel = bounds.cancel.clone();
        let deadline = tokio::time::Instant::now() + bounds.whole;
        let why = tokio::select! {
            biased;
            sent = self.exchange(outgoing, target, bounds, deadline, first.clone()) => return sent,
            () = cancel.cancelled() => Sent::Lost("the attempt was stopped".to_owned()),
            () = tokio::time::sleep_until(deadline) => Sent::TimedOut,
        };
        if first.forbid() { Sent::Nothing("it was stopped before it was sent".to_owned()) } else { why }
    }

    async fn exchange(
        &self,
        outgoing: Outgoing,
        target: &Target,
        bounds: Bounds,
        deadline: tokio::time::Instant,
        first: FirstByte,
    ) -> Sent {
        let connected = tokio::time::timeout(bounds.connect, self.connect(target, bounds.connect)).await;
        let stream = match connected {
            Ok(Ok(stream)) => stream,
            Ok(Err(why)) => return Sent::Nothing(why),
            Err(_) => return Sent::Nothing(format!("{} did not accept a connection in time", target.origin)),
        };
        let gate = Gate { inner: stream, clock: self.clock.clone(), not_after: bounds.not_after, first: first.clone() };
        match request_once(gate, outgoing, &bounds, deadline).await {
            Ok(answer) => answer,
            Err(_) if first.is_late() => Sent::TooLate,
            Err(why) if first.forbid() => Sent::Nothing(why),
            Err(why) => Sent::Lost(why),
        }
    }

    /// Tries one address after another, so that a provider never sees two connections. One that does not answer leaves the
    /// others their share of the time.
    async fn connect(&self, target: &Target, limit: Duration) -> Result<Stream, String> {
        let addresses = target.addresses.as_ref().map_err(Clone::clone)?;
        let mut last = format!("{} has no address", target.origin);
        for (address, share) in addresses.iter().zip(shares(limit, addresses.len())) {
            match tokio::time::timeout_at(share, TcpStream::connect(address)).await {
                Ok(Ok(tcp)) => return self.secure(tcp, target).await,
                Ok(Err(e)) => last = format!("{} cannot be reached: {}", target.origin, e.kind()),
                Err(_) => last = format!("{} did not accept a connection in time", target.origin),
            }
        }
        Err(last)
    }

    async fn secure(&self, tcp: TcpStream, target: &Target) -> Result<Stream, String> {
        // Small requests go out at once; a failure to set it costs only time.
        let _ = tcp.set_nodelay(true);
        if target.stand_in || target.origin.scheme == "http" {
            return Ok(Stream::Plain(tcp));
        }
        let host = target.origin.host.to_string();
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(bare).map_err(|_| format!("{} has no name for TLS", target.origin))?;
        let config = self.trust.with(target.ca.as_deref()).map_err(|why| format!("policy.egress.ca {why}"))?;
        let tls = TlsConnector::from(config).connect(name, tcp).await;
        tls.map(|s| Stream::Tls(Box::new(s))).map_err(|e| format!("TLS with {} failed: {e}", target.origin))
    }
}

/// The least time for one address, as long as there is so much: a provider that is far away needs some.
const LEAST_SHARE: Duration = Duration::from_secs(1);

/// When to give up each of so many addresses: what is left of the time is divided among those that are left.
pub fn shares(limit: Duration, addresses: usize) -> impl Iterator<Item = tokio::time::Instant> {
    let give_up = tokio::time::Instant::now() + limit;
    (1..=addresses).rev().map(move |behind| {
        let now = tokio::time::Instant::now();
        let left = give_up.saturating_duration_since(now);
        let share = left / u32::try_from(behind).unwrap_or(u32::MAX);
        now + share.max(LEAST_SHARE).min(left)
    })
}

async fn request_once(
    gate: Gate,
    outgoing: Outgoing,
    bounds: &Bounds,
    deadline: tokio::time::Instant,
) -> Result<Sent, String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(gate)).await.map_err(plain)?;
    let request = on_the_wire(outgoing)?;
    let mut exchange = std::pin::pin!(async {
        let response = sender.send_request(request).await.map_err(plain)?;
        let (parts, body) = response.into_parts();
        let body = collect(body, bounds.max_response_bytes, deadline, &bounds.cancel).await;
        Ok(Sent::Answer { status: parts.status.as_u16(), headers: parts.headers, body })
    });
    // In one task, so that the connection ends with its request.
    tokio::select! {
        biased;
        answer = &mut exchange => return answer,
        // Why it has ended is told by the exchange.
        _ = connection => {}
    }
    exchange.await
}

/// hyper's own message names no address and no part of the request, unlike those of higher layers.
fn plain(error: hyper::Error) -> String {
    let broken = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Broken>());
    if let Some(broken) = broken {
        broken.to_string()
    } else if error.is_incomplete_message() || error.is_canceled() {
        "the connection was closed before an answer came".to_owned()
    } else {
        format!("the exchange failed: {error}")
    }
}

pub(crate) fn on_the_wire(outgoing: Outgoing) -> Result<http::Request<UnsyncBoxBody<Bytes, Broken>>, String> {
    let Outgoing { method, url, mut headers, body } = outgoing;
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    let invalid = |_| "the request cannot be written".to_owned();
    let authority = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str().unwrap_or_default()),
        None => url.host_str().unwrap_or_default().to_owned(),
    };
    let host = http::HeaderValue::from_str(&authority).map_err(|_| "the host is no header value".to_owned())?;
    headers.insert(http::header::HOST, host);
    headers.insert(http::header::CONNECTION, http::HeaderValue::from_static("close"));
    let body = match body {
        Payload::Buffered(bytes) => Full::new(bytes).map_err(|never| match never {}).boxed_unsync(),
        Payload::Streamed(upload) => upload.take().map_err(|broken| broken.to_string())?.boxed_unsync(),
    };
    let mut request = http::Request::builder().method(method).uri(path).body(body).map_err(invalid)?;
    *request.headers_mut() = headers;
    Ok(request)
}

async fn collect(
    mut body: hyper::body::Incoming,
    limit: usize,
    deadline: tokio::time::Instant,
    cancel: &CancellationToken,
) -> Body {
    let mut collected = BytesMut::new();
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = tokio::time::sleep_until(deadline) => return Body::Cut,
            () = cancel.cancelled() => return Body::Cut,
        };
        match frame {
            None => return Body::Whole(collected.freeze()),
            Some(Err(_)) => return Body::Cut,
            Some(Ok(frame)) => {
                let Ok(data) = frame.into_data() else { continue };
                if collected.len() + data.len() > limit {
                    return Body::TooLarge;
                }
                collected.extend_from_slice(&data);
            }
        }
    }
}

/// A connection to a provider.
enum Stream {
    Plain(TcpStream),
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

const OPEN: u8 = 0;
const BEGUN: u8 = 1;
const FORBIDDEN: u8 = 2;
const LATE: u8 = 3;

/// Whether the request's first byte may be, or may have been, written, or a file put in place. Decided once: whoever gives a send up and whoever
/// writes run on different threads, and both must know the same.
#[derive(Clone, Debug, Default)]
pub struct FirstByte(Arc<AtomicU8>);

impl FirstByte {
    /// Before every write: false when none may begin any more.
    pub fn begin(&self) -> bool {
        let was = self.0.compare_exchange(OPEN, BEGUN, Ordering::AcqRel, Ordering::Acquire);
        matches!(was, Ok(_) | Err(BEGUN))
    }

    fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire) == BEGUN
    }

    /// True when nothing was written, and then nothing will be.
    pub fn forbid(&self) -> bool {
        let was = self.0.compare_exchange(OPEN, FORBIDDEN, Ordering::AcqRel, Ordering::Acquire);
        matches!(was, Ok(_) | Err(FORBIDDEN | LATE))
    }

    /// The time for the first byte has passed: none will be written.
    fn close(&self) {
        // Whoever has given the send up before has said why.
        let _ = self.0.compare_exchange(OPEN, LATE, Ordering::AcqRel, Ordering::Acquire);
    }

    fn is_late(&self) -> bool {
        self.0.load(Ordering::Acquire) == LATE
    }
}

/// Stands between HTTP and the connection: refuses the first byte after the deadline, and remembers that one was begun.
struct Gate {
    inner: Stream,
    clock: Arc<dyn Clock>,
    not_after: Duration,
    first: FirstByte,
}

impl AsyncRead for Gate {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Stream::Plain(s) => Pin::new(s).poll_read(cx, buf),
            Stream::Tls(s) => Pin::new(s).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Gate {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if !self.first.has_begun() && self.clock.elapsed() >= self.not_after {
            self.first.close();
            return Poll::Ready(Err(io::Error::other("the lease or the provider's memory of the key is over")));
        }
        if !self.first.begin() {
            return Poll::Ready(Err(io::Error::other("the send was given up")));
        }
        match &mut self.inner {
            Stream::Plain(s) => Pin::new(s).poll_write(cx, buf),
            Stream::Tls(s) => Pin::new(s).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Stream::Plain(s) => Pin::new(s).poll_flush(cx),
            Stream::Tls(s) => Pin::new(s).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.inner {
            Stream::Plain(s) => Pin::new(s).poll_shutdown(cx),
            Stream::Tls(s) => Pin::new(s).poll_shutdown(cx),
        }
    }
}
