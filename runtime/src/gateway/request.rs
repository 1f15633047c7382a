//! What a guest asks of the gateway and what it gets: the shapes, and the checks that need nothing but the request.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

use super::reserved;
use super::upload::Upload;
use crate::config::GatewayConfig;
use crate::effect::OnUnknown;
use crate::key::{self, EffectId};
use crate::store;

/// One outbound request, as the guest wrote it.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Bytes,
    /// The body, where it is too large to be kept in memory; `body` is empty then.
    pub upload: Option<Upload>,
    /// Time to reach the provider; the host's own limit holds as well.
    pub connect: Option<Duration>,
    /// Time for the whole send.
    pub timeout: Option<Duration>,
}

impl Request {
    /// A request with nothing but these.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Self {
        let (method, url) = (method.into(), url.into());
        Self { method, url, headers: Vec::new(), body: Bytes::new(), upload: None, connect: None, timeout: None }
    }
}

/// How the guest tells this effect from all others.
#[derive(Clone, Debug, Default)]
pub enum Identity {
    #[default]
    Positional,
    Named(String),
    Business {
        operation: String,
        key: String,
    },
}

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub identity: Identity,
    /// The call's own choice for an unknown outcome.
    pub on_unknown: Option<OnUnknown>,
    /// How to ask the provider whether it happened.
    pub lookup: Option<Lookup>,
}

/// A read that tells whether an effect happened.
#[derive(Clone, Debug)]
pub struct Lookup {
    pub request: Request,
    pub found: LookupCondition,
    pub absent: LookupCondition,
    /// How long after the send `absent` may still be wrong.
    pub settle: Duration,
}

/// True for these statuses and, if a pointer is given, when the JSON value there equals the text, or is there at all.
#[derive(Clone, Debug)]
pub struct LookupCondition {
    pub statuses: Vec<u16>,
    pub pointer: Option<String>,
    pub equals: Option<String>,
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    /// None when the answer was recorded without its body.
    pub body: Option<Bytes>,
    pub source: Source,
    pub effect_id: Option<EffectId>,
}

impl Response {
    /// A header's value as text.
    pub fn header(&self, name: &str) -> Option<String> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Sent,
    Replayed,
    LookedUp,
    Supplied,
}

impl Source {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Replayed => "replayed",
            Self::LookedUp => "looked-up",
            Self::Supplied => "supplied",
        }
    }
}

/// Why a call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The guest is told.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The attempt ends: the guest is not asked.
    #[error(transparent)]
    Stopped(#[from] Stop),
}

/// What a guest is told, as the WIT interface words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("denied: {0}")]
    Denied(String),
    #[error("effect mismatch: {0}")]
    EffectMismatch(String),
    #[error("another attempt or run holds this effect right now")]
    InFlight,
    #[error("outcome unknown: {0}")]
    OutcomeUnknown(String),
    #[error("unreachable: {0}")]
    Unreachable(String),
    #[error("no whole answer came in time")]
    TimedOut,
    #[error("the answer is larger than {0} bytes")]
    ResponseTooLarge(u64),
    #[error("invalid request: {0}")]
    InvalidRequest(String),
    #[error("connection lost: {0}")]
    ConnectionLost(String),
}

/// Why an attempt must end in the middle of a call.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    #[error("the run waits until the outcome of effect {0} is settled")]
    Suspended(EffectId),
    #[error("the run waits for the signal `{name}`")]
    AwaitsSignal {
        name: String,
        /// The signals of the run that were known when it was last looked.
        seen: i64,
        until: Option<DateTime<Utc>>,
    },
    #[error("the provider takes no more for {} ms", after.as_millis())]
    Deferred { after: Duration },
    #[error("the lease of this run is over")]
    LeaseOver,
    #[error("the ledger cannot be reached: {0}")]
    Ledger(#[from] store::Error),
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Self {
        Self::Stopped(Stop::Ledger(error))
    }
}

/// A request that can be sent.
#[derive(Clone, Debug)]
pub struct Checked {
    pub method: Method,
    pub url: Url,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub upload: Option<Upload>,
    pub connect: Option<Duration>,
    pub timeout: Option<Duration>,
}

impl Checked {
    /// GET, HEAD and OPTIONS change nothing outside: they are not claimed.
    pub fn is_read(&self) -> bool {
        matches!(self.method, Method::GET | Method::HEAD | Method::OPTIONS)
    }

    /// Idempotent by the method's own meaning (RFC 9110 section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        matches!(self.method, Method::PUT | Method::DELETE)
    }

    /// Scheme, authority and path: what the ledger and people may see of a URL.
    pub fn url_without_query(&self) -> String {
        without_query(&self.url)
    }
}

pub fn without_query(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

/// Longer ones are refused.
const MAX_METHOD_BYTES: usize = 32;
const MAX_URL_BYTES: usize = 8 << 10;

/// Headers that belong to the connection, the framing or the host, and those by which a proxy says for whom it asks.
const HOST_HEADERS: [&str; 17] = [
    "host",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "content-length",
    "expect",
    "http2-settings",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

/// True for a header that a guest must leave to the host. The name is in lower case.
pub fn is_host_header(name: &str) -> bool {
    HOST_HEADERS.contains(&name)
}

/// Checks a request and the names in its identity.
pub fn check(request: Request, options: &Options, config: &GatewayConfig) -> Result<Checked, Refusal> {
    let invalid = |why: String| Refusal::InvalidRequest(why);
    check_identity(&options.identity)?;
    if request.method.len() > MAX_METHOD_BYTES || request.url.len() > MAX_URL_BYTES {
        return Err(invalid(format!("a method has at most {MAX_METHOD_BYTES} bytes, a URL at most {MAX_URL_BYTES}")));
    }
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| invalid(format!("`{}` is not an HTTP method", request.method.escape_debug())))?;
    if matches!(method, Method::CONNECT | Method::TRACE) {
        return Err(invalid(format!("the method {method} is not allowed")));
    }
    let url = parse_url(&request.url).map_err(|why| invalid(format!("the URL cannot be read: {why}")))?;
    if request.body.len() > config.max_request_bytes {
        return Err(invalid(format!(
            "the body has {} bytes, the limit is {}",
            request.body.len(),
            config.max_request_bytes
        )));
    }
    check_upload(request.upload.as_ref(), config)?;
    let headers = check_headers(request.headers, config)?;
    let Request { body, upload, connect, timeout, .. } = request;
    Ok(Checked { method, url, headers, body, upload, connect, timeout })
}

/// Reads a URL, without the repairs that make another host or path of it than a guest's own check has seen.
fn parse_url(text: &str) -> Result<Url, String> {
    let before_query = text.split(['?', '#']).next().unwrap_or_default();
    if before_query.contains('\\') || text.contains(char::is_control) {
        return Err("it has a backslash or a control character".to_owned());
    }
    Url::parse(text).map_err(|e| e.to_string())
}

/// A body of known size is refused before anything is sent; one of unknown size is cut on its way.
fn check_upload(upload: Option<&Upload>, config: &GatewayConfig) -> Result<(), Refusal> {
    match upload.and_then(|upload| upload.length) {
        Some(length) if length > config.max_streamed_request_bytes => Err(Refusal::InvalidRequest(format!(
            "the body has {length} bytes, the limit (gateway.max_streamed_request_bytes) is {}",
            config.max_streamed_request_bytes
        ))),
        _ => Ok(()),
    }
}

pub fn check_identity(identity: &Identity) -> Result<(), Refusal> {
    let checked = match identity {
        Identity::Positional => Ok(()),
        Identity::Named(name) => key::check_name(name),
        Identity::Business { operation, key } => key::check_name(operation).and_then(|()| key::check_name(key)),
    };
    checked.map_err(|e| Refusal::InvalidRequest(e.to_string()))
}

fn check_headers(headers: Vec<(String, Vec<u8>)>, config: &GatewayConfig) -> Result<HeaderMap, Refusal> {
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > config.max_header_bytes {
        return Err(Refusal::InvalidRequest(format!(
            "the headers have {bytes} bytes, the limit is {}",
            config.max_header_bytes
        )));
    }
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let shown = name.escape_debug().to_string();
        let invalid = |why: &str| Refusal::InvalidRequest(format!("header `{shown}`: {why}"));
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("this is not a header name"))?;
        if reserved::is_reserved(name.as_str()) {
            return Err(reserved::refused(name.as_str()));
        }
        if is_host_header(name.as_str()) {
            return Err(invalid("it belongs to the host; leave it out"));
        }
        let value =
            HeaderValue::from_bytes(&value).map_err(|_| invalid("its value has bytes that no header may have"))?;
        map.try_append(name, value).map_err(|_| invalid("there are too many headers"))?;
    }
    Ok(map)
}
