//! What callers read when something is wrong: one closed envelope, `{ "error", "message", "details"? }`, with one status for
//! each code. What only the log may know travels beside it and never reaches the answer.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::keyed::Answer;
use crate::gateway::vault;
use crate::{registry, store};

pub type Result<T> = std::result::Result<T, Problem>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    Validation,
    Unauthenticated,
    Forbidden,
    TenantMismatch,
    NotFound,
    HookUnmapped,
    WrongMethod,
    RequestTimeout,
    TargetTooLong,
    HeadersTooLarge,
    VersionConflict,
    RunActive,
    RunTerminal,
    RunState,
    RunNameTaken,
    KeyInvalid,
    KeyMismatch,
    InFlight,
    NotYet,
    RateLimited,
    LimitReached,
    SignatureRequired,
    SignatureInvalid,
    TooLarge,
    MediaType,
    ScopeActive,
    VersionUnsupported,
    StreamMode,
    ForcedVersion,
    NotProvided,
    Internal,
    Unavailable,
    TooSlow,
}

impl Code {
    const fn of(self) -> (StatusCode, &'static str) {
        match self {
            Self::Validation => (StatusCode::BAD_REQUEST, "validation_error"),
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden"),
            Self::TenantMismatch => (StatusCode::FORBIDDEN, "id_tenant_mismatch"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found"),
            Self::HookUnmapped => (StatusCode::UNPROCESSABLE_ENTITY, "deedbox.hook_unmapped"),
            Self::WrongMethod => (StatusCode::METHOD_NOT_ALLOWED, "deedbox.method_not_allowed"),
            Self::RequestTimeout => (StatusCode::REQUEST_TIMEOUT, "deedbox.request_timeout"),
            Self::TargetTooLong => (StatusCode::URI_TOO_LONG, "deedbox.target_too_long"),
            Self::HeadersTooLarge => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "deedbox.headers_too_large"),
            Self::VersionConflict => (StatusCode::CONFLICT, "version_conflict"),
            Self::RunActive => (StatusCode::CONFLICT, "run_already_active"),
            Self::RunTerminal => (StatusCode::CONFLICT, "run_terminal"),
            Self::RunState => (StatusCode::CONFLICT, "run_state_conflict"),
            Self::RunNameTaken => (StatusCode::CONFLICT, "deedbox.run_name_taken"),
            Self::KeyInvalid => (StatusCode::BAD_REQUEST, "idempotency_key_invalid"),
            Self::KeyMismatch => (StatusCode::CONFLICT, "idempotency_key_mismatch"),
            Self::NotYet => (StatusCode::CONFLICT, "version_conflict"),
            Self::InFlight => (StatusCode::CONFLICT, "idempotency_in_flight"),
            Self::RateLimited => (StatusCode::TOO_MANY_REQUESTS, "rate_limited"),
            Self::LimitReached => (StatusCode::FORBIDDEN, "deedbox.limit_reached"),
            Self::SignatureRequired => (StatusCode::FORBIDDEN, "deedbox.signature_required"),
            Self::SignatureInvalid => (StatusCode::BAD_REQUEST, "deedbox.signature_invalid"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large"),
            Self::MediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type"),
            Self::ScopeActive => (StatusCode::CONFLICT, "run_already_active"),
            Self::VersionUnsupported => (StatusCode::NOT_ACCEPTABLE, "protocol_version_unsupported"),
            Self::StreamMode => (StatusCode::BAD_REQUEST, "unsupported_stream_mode"),
            Self::ForcedVersion => (StatusCode::FORBIDDEN, "force_engine_version_forbidden"),
            Self::NotProvided => (StatusCode::UNPROCESSABLE_ENTITY, "capability_not_provided"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal_error"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "runner_unavailable"),
            Self::TooSlow => (StatusCode::SERVICE_UNAVAILABLE, "deedbox.request_too_slow"),
        }
    }
}

/// A request that cannot be answered as it was asked.
#[derive(Clone, Debug)]
pub struct Problem {
    code: Code,
    message: String,
    details: Option<Value>,
    /// For the log alone.
    cause: Option<String>,
}

#[derive(Serialize)]
struct Envelope<'a> {
    error: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Value>,
}

impl Problem {
    pub fn validation(message: impl Into<String>) -> Self {
        Self::new(Code::Validation, message)
    }

    pub fn unauthenticated(message: &str) -> Self {
        Self::new(Code::Unauthenticated, message)
    }

    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::new(Code::Forbidden, message)
    }

    pub fn tenant_mismatch() -> Self {
        Self::new(Code::TenantMismatch, "the id belongs to another tenant than the token")
    }

    /// `what` completes "there is no such …".
    pub fn not_found(what: &str) -> Self {
        Self::new(Code::NotFound, format!("there is no such {what}"))
    }

    /// A signed delivery of which the hook cannot make what it should. `what` says which part, and never what was delivered.
    pub fn hook_unmapped(what: impl Into<String>) -> Self {
        Self::new(Code::HookUnmapped, what)
    }

    pub fn wrong_method() -> Self {
        Self::new(Code::WrongMethod, "this route has no such method; the Allow header names those it has")
    }

    pub fn request_timeout() -> Self {
        Self::new(Code::RequestTimeout, "the body did not arrive in time")
    }

    pub fn head_timeout() -> Self {
        Self::new(Code::RequestTimeout, "the head of the request did not arrive in time")
    }

    pub fn target_too_long(limit: usize) -> Self {
        Self::new(Code::TargetTooLong, format!("the path and the query are longer than {limit} bytes together"))
    }

    pub fn headers_too_large(bytes: usize, fields: usize) -> Self {
        let message = format!(
            "the headers have more than {bytes} bytes, names and values together, or more than {fields} fields"
        );
        Self::new(Code::HeadersTooLarge, message)
    }

    /// What was asked for may go on.
    pub fn too_slow(limit_ms: u64) -> Self {
        let message = format!(
            "this took longer than {limit_ms} ms and may still be done: ask again under the same Idempotency-Key, or look first"
        );
        Self::new(Code::TooSlow, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::new(Code::VersionConflict, message)
    }

    /// The same request may be answered otherwise soon.
    pub fn not_yet(message: impl Into<String>) -> Self {
        Self::new(Code::NotYet, message)
    }

    /// The run of that name has not ended.
    pub fn run_active(run_id: Uuid) -> Self {
        let details = Some(json!({ "runId": run_id }));
        let message = format!("run {run_id} has this run_name and has not ended");
        Self { details, ..Self::new(Code::RunActive, message) }
    }

    /// The run of that name has ended, and the reuse policy lets no other follow it.
    pub fn run_name_taken(run_id: Uuid) -> Self {
        let details = Some(json!({ "runId": run_id }));
        let message =
            format!("run {run_id} had this run_name: choose another, or say `reuse`: `allow` or `reject_alive`");
        Self { details, ..Self::new(Code::RunNameTaken, message) }
    }

    pub fn run_terminal(state: &str) -> Self {
        Self {
            details: Some(json!({ "runStatus": state })),
            ..Self::new(Code::RunTerminal, format!("the run is {state}"))
        }
    }

    /// `rule` completes "the run is …: ".
    pub fn run_state(state: &str, rule: &str) -> Self {
        let message = format!("the run is {state}: {rule}");
        Self { details: Some(json!({ "runStatus": state })), ..Self::new(Code::RunState, message) }
    }

    pub fn key_invalid(message: impl Into<String>) -> Self {
        Self::new(Code::KeyInvalid, message)
    }

    pub fn key_mismatch() -> Self {
        Self::new(
            Code::KeyMismatch,
            "this Idempotency-Key came with another request before: use a new key for a new request",
        )
    }

    pub fn in_flight() -> Self {
        Self::new(
            Code::InFlight,
            "the first request with this Idempotency-Key is still being worked on: send it again later",
        )
    }

    pub fn rate_limited(message: impl Into<String>) -> Self {
        Self::new(Code::RateLimited, message)
    }

    /// Under no request key: the same request may succeed once there is room again.
    pub fn limit_reached(limit: &str) -> Self {
        let message = format!(
            "the tenant's limit `{limit}` is reached: take away what is no longer needed, or let an administrator raise it"
        );
        Self { details: Some(json!({ "limit": limit })), ..Self::new(Code::LimitReached, message) }
    }

    /// Under no request key: a signature may be attached, or the limit lifted.
    pub fn signature_required() -> Self {
        let message = "module: it has no signature that counts, and the tenant's limit `require_signature` asks for one: sign the \
                       module with a key of the tenant's signers, attach that with PUT /v1/modules/{digest}/signature, and \
                       deploy again";
        Self { details: Some(json!({ "limit": "require_signature" })), ..Self::new(Code::SignatureRequired, message) }
    }

    pub fn signature_invalid(why: &str) -> Self {
        let message = format!(
            "signature: {why}; what is to be signed is what `deedbox module digest FILE --message` prints, to the byte"
        );
        Self::new(Code::SignatureInvalid, message)
    }

    /// The tenant's `max_queued` is reached.
    pub fn queue_full() -> Self {
        let message = "as many runs are queued or wait as the tenant's limit `max_queued` allows: try again when some have \
                       begun or ended, or let an administrator raise it";
        Self { details: Some(json!({ "limit": "max_queued" })), ..Self::new(Code::RateLimited, message) }
    }

    pub fn too_large(limit: usize) -> Self {
        Self::new(Code::TooLarge, format!("the body is larger than {limit} bytes, the most that this route takes"))
    }

    pub fn media_type(expected: &str) -> Self {
        Self::new(Code::MediaType, format!("the body must come with `Content-Type: {expected}`"))
    }

    /// A run of the scope has not ended; `run_id` is its whole id.
    pub fn scope_active(run_id: String) -> Self {
        let message = format!("run {run_id} is of this scopeId and has not ended");
        Self { details: Some(json!({ "runId": run_id })), ..Self::new(Code::ScopeActive, message) }
    }

    pub fn version_unsupported(spoken: &[&str]) -> Self {
        let message = format!("OpenWOP-Version: this host speaks {}", spoken.join(", "));
        let details = Some(json!({ "protocolVersions": spoken }));
        Self { details, ..Self::new(Code::VersionUnsupported, message) }
    }

    pub fn stream_mode(supported: &[&str]) -> Self {
        let message = format!("streamMode: this host has {}, alone or joined by commas", supported.join(", "));
        Self { details: Some(json!({ "supported": supported })), ..Self::new(Code::StreamMode, message) }
    }

    pub fn forced_version() -> Self {
        Self::new(Code::ForcedVersion, "OpenWOP-Force-Engine-Version: this host has no keys for tests; leave it out")
    }

    /// `what` names a part of the specification.
    pub fn not_provided(what: &str) -> Self {
        Self::new(Code::NotProvided, format!("{what}: this host does not offer it; leave it out"))
    }

    /// A value that is refused for what it says, with the name of its member.
    pub fn field(name: &str, rule: &str) -> Self {
        Self { details: Some(json!({ "field": name })), ..Self::validation(format!("{name}: {rule}")) }
    }

    pub fn too_many_runs(most: usize) -> Self {
        let details = Some(json!({ "maxRunIds": most }));
        Self { details, ..Self::validation(format!("runIds: must be 1 to {most} ids")) }
    }

    pub fn internal(cause: impl Into<String>) -> Self {
        Self {
            cause: Some(cause.into()),
            ..Self::new(Code::Internal, "something went wrong here, not with the request")
        }
    }

    pub fn unavailable(cause: impl Into<String>) -> Self {
        Self {
            cause: Some(cause.into()),
            ..Self::new(Code::Unavailable, "the database does not answer: try again soon")
        }
    }

    /// The words of a refusal; none where something failed here.
    pub fn refusal(&self) -> Option<&str> {
        self.cause.is_none().then_some(self.message.as_str())
    }

    /// There is too much to do on this node.
    pub fn busy(message: &str) -> Self {
        Self::new(Code::Unavailable, message)
    }

    fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, cause: None }
    }

    /// Asking again would be answered the same: it may be stored under the request's key.
    pub fn is_final(&self) -> bool {
        let never = [
            StatusCode::BAD_REQUEST,
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::TOO_MANY_REQUESTS,
        ];
        let status = self.code.of().0;
        // What a hook cannot map, it may map once it is put right; what stands in the way of the others goes by itself.
        let later = [Code::KeyMismatch, Code::InFlight, Code::HookUnmapped, Code::NotYet, Code::ScopeActive];
        status.is_client_error() && !never.contains(&status) && !later.contains(&self.code)
    }

    /// What its caller reads of it, where it is one of several answers.
    pub fn envelope(&self) -> Value {
        json!(Envelope { error: self.code.of().1, message: &self.message, details: self.details.clone() })
    }

    /// The answer that is stored for a final problem.
    pub fn answer(&self) -> Answer {
        let (status, error) = self.code.of();
        let envelope = Envelope { error, message: &self.message, details: self.details.clone() };
        Answer::json(status, &envelope).unwrap_or_else(|_| Answer::empty(status))
    }

    /// The whole answer, for a connection on which no request came to be.
    pub fn to_bytes(&self, request_id: Uuid) -> Vec<u8> {
        let (status, error) = self.code.of();
        let body = json!({ "error": error, "message": self.message }).to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
             x-request-id: {request_id}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        (head + &body).into_bytes()
    }

    /// Logs what only the log may know and makes the answer. `request_id` ties the two together.
    pub fn render(&self, request_id: Uuid) -> Response {
        let (status, error) = self.code.of();
        let details = self.cause.as_deref().map(|cause| {
            tracing::error!(error.code = error, error.cause = cause, "a request failed");
            json!({ "correlationId": request_id })
        });
        let details = details.or_else(|| self.details.clone());
        let envelope = Envelope { error, message: &self.message, details };
        let mut response = (status, axum::Json(envelope)).into_response();
        let extra = match self.code {
            Code::Unauthenticated => Some((header::WWW_AUTHENTICATE, "Bearer")),
            Code::Unavailable | Code::InFlight => Some((header::RETRY_AFTER, "1")),
            Code::RateLimited | Code::TooSlow | Code::ScopeActive => Some((header::RETRY_AFTER, "5")),
            _ => None,
        };
        if let Some((name, value)) = extra {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// An empty answer that carries the problem: `frame`, which knows the request's id, renders it.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.code.of().0.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        match error.is_transient() {
            true => Self::unavailable(error.to_string()),
            false => Self::internal(error.to_string()),
        }
    }
}

impl From<vault::Error> for Problem {
    fn from(error: vault::Error) -> Self {
        match error {
            vault::Error::Store(error) => error.into(),
            error => Self::internal(error.to_string()),
        }
    }
}

impl From<registry::Error> for Problem {
    fn from(error: registry::Error) -> Self {
        match error {
            registry::Error::Invalid(message) => Self::validation(message),
            registry::Error::Limit(limit) => Self::limit_reached(&limit),
            registry::Error::Store(error) => error.into(),
            registry::Error::Internal(cause) => Self::internal(cause),
        }
    }
}
