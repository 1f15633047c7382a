//! How calls of guests leave a node, and what bounds them.

use std::path::PathBuf;

use serde::Deserialize;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// Time for one send where the guest says nothing; then the guest gets `timed-out`.
    pub default_send_ms: u64,
    /// The longest time for one send, whatever the guest asks for. Also the margin by which a provider's memory of a key
    /// must outlast a send.
    pub max_send_ms: u64,
    /// Time to reach a provider, TLS included; beyond it the guest gets `unreachable`.
    pub connect_ms: u64,
    /// A larger body in a call of `deedbox:activity/http` is refused with `invalid-request`.
    pub max_request_bytes: usize,
    /// A larger body of a call over `wasi:http` is streamed: hashed as it is sent instead of being part of the request
    /// digest. A provider that takes its key, or needs a signature, in the body is then refused with `invalid-request`.
    /// Changing it changes the digests of bodies between the old value and the new.
    pub max_buffered_request_bytes: usize,
    /// A larger streamed body is cut while it is sent, and the outcome is unknown; where the guest tells its size before,
    /// it is refused with `invalid-request`.
    pub max_streamed_request_bytes: u64,
    /// A larger answer is cut off: the guest gets `response-too-large`, the effect is completed without a body.
    pub max_response_bytes: usize,
    /// A larger answer is recorded without its body; a replay says `not-kept`.
    pub max_kept_body_bytes: usize,
    /// Header bytes of a request; more is refused with `invalid-request`.
    pub max_header_bytes: usize,
    /// How long a call waits for an effect that another run or attempt holds before the guest gets `in-flight`.
    pub in_flight_wait_ms: u64,
    /// Sends that one attempt may have under way at once; more is refused with `invalid-request`.
    pub max_open_sends: usize,
    /// Seal recorded answers and look-ups with the tenant's key.
    pub seal_answers: bool,
    /// The longest pause between two look-ups of one open question.
    pub max_look_up_pause_ms: u64,
    /// How long a send waits in place for its turn at the provider's rate, or for the end of a pause that the provider asked
    /// for. Beyond it the run is given back until then, and spends no attempt.
    pub pace_wait_ms: u64,
    /// The longest pause that a provider's Retry-After can ask for; a longer one is cut to it.
    pub max_retry_after_ms: u64,
    /// A directory of the operator's own provider profiles, one TOML file each. One of a shipped profile's name replaces it.
    pub profiles_dir: Option<PathBuf>,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            default_send_ms: 30_000,
            max_send_ms: 60_000,
            connect_ms: 10_000,
            max_request_bytes: 4 << 20,
            max_buffered_request_bytes: 1 << 20,
            max_streamed_request_bytes: 64 << 20,
            max_response_bytes: 8 << 20,
            max_kept_body_bytes: 1 << 20,
            max_header_bytes: 32 << 10,
            in_flight_wait_ms: 5_000,
            max_open_sends: 16,
            seal_answers: false,
            max_look_up_pause_ms: 900_000,
            pace_wait_ms: 2_000,
            max_retry_after_ms: 3_600_000,
            profiles_dir: None,
        }
    }
}
