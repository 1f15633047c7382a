//! What becomes of a run after an attempt: the retry policy, applied.

use std::time::Duration;

use serde_json::json;

use crate::gateway::Ending;
use crate::host::{self, Ended, Failure, FailureKind, Outcome};
use crate::policy::Retry;
use crate::store::lease::{Finish, Lease, Leased, Next, Used};
use crate::store::storable;

/// What counts besides how the attempt went.
#[derive(Clone, Copy, Debug)]
pub struct Around {
    /// The latest time that a failure may ask for.
    pub max_retry_after: Duration,
    /// How long a provider wants to be left alone.
    pub provider_wait: Option<Duration>,
    /// What is left of `schedule_to_close`.
    pub close_left: Option<Duration>,
    /// Why the attempt was stopped, if it was.
    pub ending: Option<Ending>,
}

/// How long a run rests after the database failed under it.
const INTERRUPTED_PAUSE_MS: u64 = 1_000;

/// Decides by the outcome and the policy. `chance`: 0 to 1, for the jitter.
pub fn finish(leased: &Leased, ended: Ended, around: &Around, chance: f64) -> Finish {
    let (outcome, failure, next) = match ended.outcome {
        Outcome::Completed(output) => ("completed".to_owned(), None, Next::Complete { output }),
        Outcome::Suspended(effect) => ("suspended".to_owned(), None, Next::AwaitEffect { effect_id: effect.0 }),
        Outcome::AwaitsSignal { name, seen, until } => {
            ("suspended".to_owned(), None, Next::AwaitSignal { name, seen, until })
        }
        Outcome::Deferred(after) => ("deferred".to_owned(), None, Next::Defer { after_ms: millis(after) }),
        Outcome::Stopped => {
            let (word, next) = stopped(around.ending);
            (word.to_owned(), None, next)
        }
        Outcome::Interrupted => {
            let message = "the database could not be reached in the middle of the attempt";
            let failure = text("interrupted", message, FailureKind::Retryable, None);
            ("interrupted".to_owned(), Some(failure), Next::Requeue { after_ms: INTERRUPTED_PAUSE_MS })
        }
        Outcome::Ended { code, message } => {
            let failure = text(code, &message, FailureKind::Retryable, None);
            let next = after(leased, code, FailureKind::Retryable, None, around, chance);
            (code.to_owned(), Some(failure), next)
        }
        Outcome::Failed(failure) => {
            let Failure { code, message, kind, retry_after, details } = failure;
            let wait = retry_after.filter(|wait| !wait.is_zero()).map(|wait| wait.min(around.max_retry_after));
            let next = after(leased, &code, kind, wait, around, chance);
            ("failed".to_owned(), Some(text(&code, &message, kind, details)), next)
        }
    };
    Finish {
        lease: Lease { tenant: leased.tenant.clone(), run_id: leased.run_id, token: leased.token },
        outcome,
        failure,
        used: used(&ended.used),
        next,
    }
}

/// In begun milliseconds, so that an attempt which has computed at all has not used nothing.
fn used(used: &host::Used) -> Used {
    let cpu_ms = used.cpu.as_micros().div_ceil(1000);
    Used {
        peak_memory_bytes: i64::try_from(used.peak_memory_bytes).ok(),
        cpu_ms: i64::try_from(cpu_ms).ok(),
        host_calls: i64::try_from(used.host_calls).ok(),
    }
}

fn stopped(ending: Option<Ending>) -> (&'static str, Next) {
    match ending {
        Some(Ending::Cancelled) => ("cancelled", Next::Cancel),
        Some(Ending::Paused) => ("paused", Next::Requeue { after_ms: 0 }),
        _ => ("drained", Next::Requeue { after_ms: 0 }),
    }
}

/// The time that a failure asks for goes before the back-off; the time that a provider asked for is the least.
fn after(leased: &Leased, code: &str, kind: FailureKind, wait: Option<Duration>, around: &Around, chance: f64) -> Next {
    // A stored policy was checked when it was stored.
    let retry = Retry::parse(&leased.retry).unwrap_or_default();
    let last = leased.spent >= leased.max_attempts;
    if last || kind == FailureKind::Permanent || retry.non_retryable.iter().any(|c| c == code) {
        return Next::Fail;
    }
    let provider = || around.provider_wait.unwrap_or_default().min(around.max_retry_after);
    let delay = wait.unwrap_or_else(|| retry.delay(leased.spent.unsigned_abs(), chance).max(provider()));
    // An attempt that could only begin when the run's time is over is none.
    if around.close_left.is_some_and(|left| delay >= left) {
        return Next::Fail;
    }
    Next::Retry { after_ms: millis(delay) }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn text(code: &str, message: &str, kind: FailureKind, details: Option<String>) -> String {
    let kind = match kind {
        FailureKind::Retryable => "retryable",
        FailureKind::Permanent => "permanent",
    };
    let details: Option<serde_json::Value> = details.and_then(|details| serde_json::from_str(&details).ok());
    json!({ "code": storable(code), "message": storable(message), "kind": kind, "details": details }).to_string()
}
