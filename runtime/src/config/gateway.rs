//! How calls of guests leave a node, and what bounds them.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use crate::threads;

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GatewayConfig {
    /// Threads that do what the host does for runs, on which tenants take turns. With 0 it is done on the threads of everything
    /// else.
    pub threads: u32,
    /// Time for one send where the guest says nothing; then the guest gets `timed-out`.
    pub default_send_ms: u64,
    /// The longest time for one send, whatever the guest asks for. Also the margin by which a provider's memory of a key
    /// must outlast a send.
    pub max_send_ms: u64,
    /// Time to reach a provider, TLS included; beyond it the guest gets `unreachable`. An address of several that does not
    /// answer gets an equal share of it, at least a second.
    pub connect_ms: u64,
    /// Time to resolve the name of a provider, or the call's own time-out if that is shorter; beyond it the guest gets
    /// `unreachable`.
    pub resolve_ms: u64,
    /// Names being resolved at once on this node, and of these for one tenant. More wait, within the same time. With the
    /// system's way, each takes a thread until it has ended, even when nobody waits for it any more.
    pub max_resolving: usize,
    pub max_tenant_resolving: usize,
    /// Addresses of one name that are tried; more are left out, after those that the policy does not allow.
    pub max_addresses: usize,
    /// Name servers that are asked instead of the system's way to resolve names, as `ip:port`: over UDP, and over TCP where an
    /// answer is too long for that. `/etc/hosts`, search domains and whatever else the system knows are not looked at then.
    pub dns_servers: Vec<SocketAddr>,
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
            threads: threads::enough(),
            default_send_ms: 30_000,
            max_send_ms: 60_000,
            connect_ms: 10_000,
            resolve_ms: 5_000,
            max_resolving: 128,
            max_tenant_resolving: 16,
            max_addresses: 8,
            dns_servers: Vec::new(),
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

impl GatewayConfig {
    /// What must hold of them, with the name and the words for when it does not.
    pub(super) fn rules(&self) -> impl Iterator<Item = (bool, &'static str, &'static str)> {
        let tenant = (1..=self.max_resolving).contains(&self.max_tenant_resolving);
        [
            (self.threads <= 1_024, "gateway.threads", "must be at most 1024"),
            ((10..=30_000).contains(&self.resolve_ms), "gateway.resolve_ms", "must be from 10 to 30000"),
            // The program has threads for 512 things that block; files are read on them too.
            ((1..=256).contains(&self.max_resolving), "gateway.max_resolving", "must be 1 to 256"),
            (tenant, "gateway.max_tenant_resolving", "must be 1 to gateway.max_resolving"),
            ((1..=64).contains(&self.max_addresses), "gateway.max_addresses", "must be 1 to 64"),
            (self.dns_servers.len() <= 8, "gateway.dns_servers", "must be at most 8"),
            (self.dns_servers.iter().all(|server| server.port() != 0), "gateway.dns_servers", "must have ports"),
        ]
        .into_iter()
    }
}
