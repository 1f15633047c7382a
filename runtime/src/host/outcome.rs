//! How an attempt ended, and the reading of traps.

use std::time::Duration;

use chrono::{DateTime, Utc};
use wasmtime::Trap;

use super::bindings::exports::deedbox::activity::activities as wit;
use crate::gateway::Stop;
use crate::key::EffectId;
use crate::store;

/// The longest failure code and message that are kept; the rest is cut.
const MAX_CODE_BYTES: usize = 128;
const MAX_MESSAGE_BYTES: usize = 8 << 10;
const MAX_DETAILS_BYTES: usize = 64 << 10;

/// How one attempt ended.
#[derive(Debug)]
pub enum Outcome {
    /// The guest returned a value: a JSON text.
    Completed(String),
    /// The guest, or the host about its result, reports a failure.
    Failed(Failure),
    /// The host ended the guest; `code` is `trap`, `stack-overflow`, `out-of-memory`, `timed-out`,
    /// `module-unavailable` or `internal-error`.
    Ended { code: &'static str, message: String },
    /// The run waits for the outcome of an effect.
    Suspended(EffectId),
    /// The run waits for a signal.
    AwaitsSignal { name: String, seen: i64, until: Option<DateTime<Utc>> },
    /// A provider takes no more for a while.
    Deferred(Duration),
    /// The lease is over, the worker drains, or the run's owner wants it: no attempt is spent.
    Stopped,
    /// The database failed in the middle: the run is given back, and no attempt is spent.
    Interrupted,
}

impl Outcome {
    /// The outcome of an attempt that a failure of the database ended. The cause is for the log, not for the tenant.
    pub fn of_store(error: &store::Error) -> Self {
        tracing::warn!(error = %error, "the attempt ends because of the database");
        if error.is_transient() {
            return Self::Interrupted;
        }
        let message = "the host met an internal error; its log has the cause".to_owned();
        Self::Ended { code: "internal-error", message }
    }
}

#[derive(Clone, Debug)]
pub struct Failure {
    pub code: String,
    pub message: String,
    pub kind: FailureKind,
    pub retry_after: Option<Duration>,
    /// A JSON text.
    pub details: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    Retryable,
    Permanent,
}

/// Reads what the guest returned.
pub fn returned(result: Result<String, wit::Failure>, max_output_bytes: usize) -> Outcome {
    match result {
        Err(failure) => Outcome::Failed(failure_in(failure)),
        Ok(output) if output.len() > max_output_bytes => permanent(
            "result-too-large",
            format!(
                "the result has {} bytes, the limit is {max_output_bytes}: return an identifier instead",
                output.len()
            ),
        ),
        Ok(output) => match serde_json::from_str::<serde_json::Value>(&output) {
            Ok(_) => Outcome::Completed(output),
            Err(error) => permanent("invalid-output", format!("the result is not a JSON text: {error}")),
        },
    }
}

fn permanent(code: &str, message: String) -> Outcome {
    let kind = FailureKind::Permanent;
    Outcome::Failed(Failure { code: code.to_owned(), message, kind, retry_after: None, details: None })
}

fn failure_in(failure: wit::Failure) -> Failure {
    let json = |text: String| {
        let valid = text.len() <= MAX_DETAILS_BYTES && serde_json::from_str::<serde_json::Value>(&text).is_ok();
        valid.then_some(text)
    };
    Failure {
        code: cut(&failure.code, MAX_CODE_BYTES),
        message: cut(&failure.message, MAX_MESSAGE_BYTES),
        kind: match failure.kind {
            wit::FailureKind::Retryable => FailureKind::Retryable,
            wit::FailureKind::Permanent => FailureKind::Permanent,
        },
        retry_after: failure.retry_after_ms.map(Duration::from_millis),
        details: failure.details.and_then(json),
    }
}

/// The outcome of an attempt that a call had to end.
pub fn stopped(stop: Stop) -> Outcome {
    match stop {
        Stop::Suspended(effect) => Outcome::Suspended(effect),
        Stop::AwaitsSignal { name, seen, until } => Outcome::AwaitsSignal { name, seen, until },
        Stop::Deferred { after } => Outcome::Deferred(after),
        Stop::LeaseOver => Outcome::Stopped,
        Stop::Ledger(error) => Outcome::of_store(&error),
    }
}

/// Reads an error that came out of wasmtime. `denied`: the guest was refused memory before.
pub fn ended(error: wasmtime::Error, denied: bool, stderr: &str) -> Outcome {
    let error = match error.downcast::<Stop>() {
        Ok(stop) => return stopped(stop),
        Err(error) => error,
    };
    let code = match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => "timed-out",
        Some(Trap::StackOverflow) => "stack-overflow",
        _ if denied => "out-of-memory",
        _ => "trap",
    };
    let reason = error.root_cause().to_string();
    let tail = last(stderr.trim_end(), MAX_MESSAGE_BYTES / 2);
    let message = if tail.is_empty() { reason } else { format!("{reason}; stderr ends with: {tail}") };
    Outcome::Ended { code, message: cut(&message, MAX_MESSAGE_BYTES) }
}

fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

fn last(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}
