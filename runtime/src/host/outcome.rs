//! How an attempt ended, and the reading of traps.

use std::time::Duration;

use chrono::{DateTime, Utc};
use wasmtime::Trap;
use wasmtime::component::ResourceTableError;

use super::bindings::exports::deedbox::activity::activities as wit;
use super::limits::Denied;
use super::meter::Exceeded;
use crate::gateway::Stop;
use crate::key::EffectId;
use crate::store;

/// The longest failure code and message that are kept; the rest is cut.
const MAX_CODE_BYTES: usize = 128;
const MAX_MESSAGE_BYTES: usize = 8 << 10;
const MAX_DETAILS_BYTES: usize = 64 << 10;

/// How wasmtime words these two, for which it has no types.
const HANDLES_EXCEEDED: &str = "handle limit exceeded";
const CALL_EXCEEDED: &str = "fuel allocated for hostcalls has been exhausted";

/// How one attempt ended.
#[derive(Debug)]
pub enum Outcome {
    /// The guest returned a value: a JSON text.
    Completed(String),
    /// The guest, or the host about its result, reports a failure.
    Failed(Failure),
    /// The host ended the guest; `code` is `trap`, `stack-overflow`, `timed-out`, `out-of-memory`, `out-of-tables`, `out-of-fuel`,
    /// `out-of-calls`, `out-of-resources`, `call-too-large`, `module-unavailable` or `internal-error`.
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
pub fn returned(result: Result<String, wit::Failure>, max_bytes: usize, max_depth: usize) -> Outcome {
    let output = match result {
        Err(failure) => return Outcome::Failed(failure_in(failure)),
        Ok(output) => output,
    };
    if output.len() > max_bytes {
        let bytes = output.len();
        return permanent(
            "result-too-large",
            format!("the result has {bytes} bytes, the limit is {max_bytes}: return an identifier instead"),
        );
    }
    let too_deep = || {
        let message =
            format!("the result is nested deeper than {max_depth} levels, which is the limit: return it flatter");
        permanent("result-too-deep", message)
    };
    match serde_json::from_str::<serde_json::Value>(&output) {
        Ok(value) if depth(&value) > max_depth => too_deep(),
        Ok(_) => Outcome::Completed(output),
        // What is too deep to be read is JSON all the same to whoever only passes over it.
        Err(error) if error.to_string().starts_with("recursion limit") && is_json(&output) => too_deep(),
        Err(error) => permanent("invalid-output", format!("the result is not a JSON text: {error}")),
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Levels of arrays and objects, the outermost included. The reader bounds how deep this goes.
fn depth(value: &serde_json::Value) -> usize {
    match value {
        serde_json::Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        serde_json::Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
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

/// Reads an error that came out of wasmtime. `denied`: what the guest was refused before.
pub fn ended(error: wasmtime::Error, denied: Option<Denied>, stderr: &str) -> Outcome {
    let error = match error.downcast::<Stop>() {
        Ok(stop) => return stopped(stop),
        Err(error) => error,
    };
    let reason = error.root_cause().to_string();
    let (code, reason) = read(&error, denied, reason);
    let tail = last(stderr.trim_end(), MAX_MESSAGE_BYTES / 2);
    let message = if tail.is_empty() { reason } else { format!("{reason}; stderr ends with: {tail}") };
    Outcome::Ended { code, message: cut(&message, MAX_MESSAGE_BYTES) }
}

/// The code of an error, and the reason in words.
fn read(error: &wasmtime::Error, denied: Option<Denied>, reason: String) -> (&'static str, String) {
    if let Some(exceeded) = error.downcast_ref::<Exceeded>() {
        return (exceeded.code(), exceeded.to_string());
    }
    let full = matches!(error.downcast_ref::<ResourceTableError>(), Some(ResourceTableError::Full));
    if full || reason.contains(HANDLES_EXCEEDED) {
        return ("out-of-resources", format!("{reason} (host.max_resources): drop resources that are done with"));
    }
    if reason.contains(CALL_EXCEEDED) {
        return ("call-too-large", format!("{reason} (host.max_call_bytes): hand over less at once"));
    }
    let code = match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => "timed-out",
        Some(Trap::StackOverflow) => "stack-overflow",
        _ => denied.map_or("trap", Denied::code),
    };
    (code, reason)
}

fn cut(text: &str, bytes: usize) -> String {
    text[..text.floor_char_boundary(bytes)].to_owned()
}

fn last(text: &str, bytes: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(bytes))..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(output: &str, max_bytes: usize, max_depth: usize) -> String {
        match returned(Ok(output.to_owned()), max_bytes, max_depth) {
            Outcome::Completed(_) => "completed".to_owned(),
            Outcome::Failed(failure) => failure.code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_limit_of_a_result_has_its_own_code() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(code(&nested(3), 6, 3), "completed");
        assert_eq!(code(&nested(3), 5, 3), "result-too-large");
        assert_eq!(code(&nested(4), 100, 3), "result-too-deep");
        assert_eq!(code(&nested(127), 1_000, 127), "completed");
        assert_eq!(code(&nested(128), 1_000, 127), "result-too-deep");
        assert_eq!(code(&nested(100_000), 1_000_000, 127), "result-too-deep");
        assert_eq!(code(&"[".repeat(1_000), 1_000, 127), "invalid-output", "it does not end");
        assert_eq!(code(r#"{"a":[{"b":"[[[["}]}"#, 100, 3), "completed", "what is in a text does not count");
    }

    #[test]
    fn each_limit_of_an_attempt_has_its_own_code_and_says_what_to_do() {
        let cases = [
            (wasmtime::Error::from(Exceeded::Cpu(5)), None, "out-of-fuel", "policy.limits.cpu_ms"),
            (Exceeded::HostCalls(5).into(), None, "out-of-calls", "policy.limits.host_calls"),
            (ResourceTableError::Full.into(), None, "out-of-resources", "host.max_resources"),
            (wasmtime::Error::from(ResourceTableError::Full).context("pushing"), None, "out-of-resources", "drop"),
            (Trap::UnreachableCodeReached.into(), Some(Denied::Memory), "out-of-memory", "unreachable"),
            (Trap::UnreachableCodeReached.into(), Some(Denied::TableElements), "out-of-tables", "unreachable"),
            (Trap::UnreachableCodeReached.into(), None, "trap", "unreachable"),
            (Trap::StackOverflow.into(), Some(Denied::Memory), "stack-overflow", ""),
            (ResourceTableError::NotPresent.into(), None, "trap", ""),
        ];
        for (error, denied, expected, word) in cases {
            let Outcome::Ended { code, message } = ended(error, denied, "") else { panic!("{expected}") };
            assert_eq!(code, expected, "{message}");
            assert!(message.contains(word), "{message}");
        }
    }
}
