//! What the provider does with one effect request. Behaviours are scripted in a queue and used up one per arriving
//! POST, PUT, PATCH or DELETE; an empty queue means `normal`. This module is data only: it must never touch the books.

use serde::{Deserialize, Serialize};

/// One scripted behaviour. In JSON: `{"behaviour": "slow_after_apply", "ms": 250}`.
///
/// "Apply" means: book the operation, unless its key already has an answer, which is then replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "behaviour", rename_all = "snake_case", deny_unknown_fields)]
pub enum Behaviour {
    /// Apply and answer 201.
    Normal,
    /// Answer `status` (200 to 599) without applying; nothing is kept under the key.
    StatusBeforeApply {
        status: u16,
        /// Seconds, sent as `Retry-After`.
        #[serde(default)]
        retry_after: Option<u64>,
        /// Sent as it is; a small JSON error when absent.
        #[serde(default)]
        body: Option<String>,
    },
    /// Apply, then answer `status` (200 to 599). With `keep` it is the provider's own answer: the key replays it, or is free again
    /// where the convention does not store such answers, and a repeat then applies again. Without it the key replays the regular
    /// answer, as if a proxy in front of the provider had lost it.
    StatusAfterApply { status: u16, keep: bool },
    /// Close the connection without applying and without an answer.
    CutBeforeApply,
    /// Apply, keep the regular answer, close the connection without sending it.
    CutAfterApply,
    /// Keep the key in flight until `release` (then go on as `normal`) or until the client hangs up (then nothing is applied).
    HoldBeforeApply,
    /// Apply, keep the key in flight until `release` or until the client hangs up; the answer is kept in either case.
    HoldAfterApply,
    /// Apply, keep the key in flight for `ms` milliseconds, then answer.
    SlowAfterApply { ms: u64 },
    /// Apply, answer 200 with every request header in the JSON body and again as a response header `x-echo-<name>`.
    Echo,
    /// Apply, then answer 200 with a chunked body that never ends; the key replays the regular answer.
    EndlessBody,
    /// Answer as for a key in flight, without applying.
    InFlight,
    /// The key of this request turns out to have been used by another request, which made the object `foreign`; then as `normal`.
    KeyUsedElsewhere,
    /// Answer `status` (200 to 599) without applying, as the final answer: where the convention stores such answers, the key
    /// replays it for ever.
    StoredFailure {
        #[serde(default = "internal_error")]
        status: u16,
    },
    /// Apply, then announce a longer body than is sent and close; the key replays the regular answer.
    LyingLength,
}

/// The object of a request that came from elsewhere, where a test does not name it.
pub(crate) const FOREIGN: &str = "foreign";

fn internal_error() -> u16 {
    500
}

impl Behaviour {
    /// Whether it never comes to applying, whatever the key says.
    pub(crate) fn is_early(&self) -> bool {
        matches!(self, Self::StatusBeforeApply { .. } | Self::CutBeforeApply | Self::InFlight)
    }

    /// Whether the server can act on it: a status must be a final one.
    pub(crate) fn is_possible(&self) -> bool {
        match self {
            Self::StatusBeforeApply { status, .. }
            | Self::StatusAfterApply { status, .. }
            | Self::StoredFailure { status } => (200..600).contains(status),
            _ => true,
        }
    }
}
