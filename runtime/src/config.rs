//! Settings: one struct per concern. Every limit has a name, a unit in its name, and words for what happens at it. They
//! come from one TOML file; command-line flags and the environment name the file and override what belongs to a machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

/// All that may be set in the file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    pub database: DatabaseConfig,
    pub host: HostConfig,
    pub gateway: GatewayConfig,
    pub files: FilesConfig,
    pub worker: WorkerConfig,
    pub signals: SignalsConfig,
    pub api: ApiConfig,
    pub retention: RetentionConfig,
    pub webhooks: WebhooksConfig,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatabaseConfig {
    /// Connections of this node. A statement waits for a free one, 10 seconds at most, and then fails as unavailable.
    pub max_connections: u32,
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self { max_connections: 16 }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostConfig {
    /// Instances at once. Runs beyond it stay queued.
    pub max_instances: u32,
    /// Linear memory of one instance: the ceiling for every deployment. Growing beyond it fails in the guest.
    pub max_memory_bytes: u64,
    /// Linear memory of one instance where the deployment says nothing.
    pub default_memory_bytes: u64,
    /// Elements of one table. Growing beyond it fails in the guest.
    pub max_table_elements: u32,
    /// The guest's stack. Beyond it the attempt ends as `stack-overflow`.
    pub max_stack_bytes: usize,
    /// Time between two checks of a running guest's deadline.
    pub epoch_ms: u64,
    /// What is kept of each of stdout and stderr of one attempt; the rest is dropped and marked as truncated.
    pub max_log_bytes: usize,
    /// An output above it ends the run as failed with `result-too-large`.
    pub max_output_bytes: usize,
    /// A checkpoint above it is refused with `too-large`.
    pub max_checkpoint_bytes: usize,
    /// Time for `describe` at upload; beyond it the upload is refused.
    pub describe_timeout_ms: u64,
    /// How long a guest that is asked to stop may take to return by itself. Then it is dropped.
    pub stop_ms: u64,
    /// Bytes that one host call may make the host allocate for the guest's arguments; beyond it the attempt traps.
    pub max_call_bytes: usize,
}

impl Default for HostConfig {
    fn default() -> Self {
        Self {
            max_instances: 64,
            max_memory_bytes: 512 << 20,
            default_memory_bytes: 128 << 20,
            max_table_elements: 20_000,
            max_stack_bytes: 512 << 10,
            epoch_ms: 10,
            max_log_bytes: 256 << 10,
            max_output_bytes: 2 << 20,
            max_checkpoint_bytes: 64 << 10,
            describe_timeout_ms: 5_000,
            stop_ms: 100,
            max_call_bytes: 16 << 20,
        }
    }
}

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

/// Where guests may write files. Nowhere by default.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FilesConfig {
    /// Directories of this machine, by the name that paths begin with and that `policy.files.allow` names. Every node that
    /// works for these tenants should have the same ones, on a file system that all of them share.
    pub directories: BTreeMap<String, DirectoryConfig>,
    /// A larger file is refused with `invalid-request`. What a guest can hand over at all is `host.max_call_bytes`.
    pub max_file_bytes: usize,
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self { directories: BTreeMap::new(), max_file_bytes: 64 << 20 }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryConfig {
    /// Absolute; it must be there. Each tenant writes below a directory of its own name in it.
    pub path: PathBuf,
    /// Who may write there; empty: every tenant.
    #[serde(default)]
    pub tenants: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// How long a lease lasts. A worker that cannot renew it stops its guests before it ends.
    pub lease_ms: u64,
    /// How often due runs are looked for when no wake-up comes.
    pub poll_ms: u64,
    /// How long a drained worker waits for its attempts before it stops them and gives their runs back.
    pub grace_ms: u64,
    /// The latest time that a failure's `retry-after` may ask for; a later one is cut to it.
    pub max_retry_after_ms: u64,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self { lease_ms: 30_000, poll_ms: 500, grace_ms: 10_000, max_retry_after_ms: 24 * 3_600_000 }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignalsConfig {
    /// A larger payload is refused with 413.
    pub max_payload_bytes: usize,
    /// Unread signals of one run; more are refused with 429.
    pub max_unread: u64,
    /// Polls and waits of one attempt; more fail with `too-many-calls`.
    pub max_calls: u32,
    /// How long a waiting guest is kept before its run is given back until the signal comes.
    pub wait_ms: u64,
}

impl Default for SignalsConfig {
    fn default() -> Self {
        Self { max_payload_bytes: 64 << 10, max_unread: 10_000, max_calls: 10_000, wait_ms: 2_000 }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApiConfig {
    /// A larger component is refused with 413.
    pub max_component_bytes: usize,
    /// A larger JSON body is refused with 413. Also the limit for a run's input.
    pub max_body_bytes: usize,
    /// The longest `?wait`; a longer one is cut to it.
    pub max_wait_ms: u64,
    /// How long a request waits for another of the same key that is being worked on, before it is told so with 409.
    pub in_flight_wait_ms: u64,
    /// Time to answer a request, from its last byte; beyond it 503, while what changes something goes on. Event streams are
    /// answered at once, so it does not end them. Above `max_wait_ms`.
    pub max_request_ms: u64,
    /// Open connections of this node. New ones wait until one has ended.
    pub max_connections: u32,
    /// Time for a TLS handshake, and for the head of a request from its first byte, or from the connection for the first one;
    /// beyond it 408, and the connection ends.
    pub header_ms: u64,
    /// How long a connection may be open between two requests. Then it ends.
    pub idle_ms: u64,
    /// The longest silence while a body arrives; beyond it 408.
    pub body_silence_ms: u64,
    /// Time for a whole body to arrive; beyond it 408.
    pub body_ms: u64,
    /// How long a client may take nothing of its answer. Then the connection ends.
    pub write_ms: u64,
    /// Names and values of all headers of a request; more is refused with 431, and so are more than 100 headers.
    pub max_header_bytes: usize,
    /// A longer path and query is refused with 414.
    pub max_target_bytes: usize,
    /// Levels of arrays and objects in a JSON body or a signal's payload; deeper ones are refused with 400.
    pub max_json_depth: usize,
    /// With it the API speaks HTTPS and nothing else.
    pub tls: Option<TlsConfig>,
    /// Rows of one page where the request says nothing, and at most.
    pub default_page: u32,
    pub max_page: u32,
    /// The longest silence of a stream of events: then it says that it is alive.
    pub heartbeat_ms: u64,
    /// Streams of events that are open at once on this node, and of those the streams of one tenant. One more is refused
    /// with 429.
    pub max_streams: usize,
    pub max_tenant_streams: usize,
    /// Discovery names the workflows of the OpenWOP conformance suite, which `deedbox up --openwop-fixtures` deploys.
    pub openwop_fixtures: bool,
    /// The routes of that suite which hold requests and start sends to any address. For test machines alone.
    pub openwop_seams: bool,
}

impl Default for ApiConfig {
    fn default() -> Self {
        Self {
            max_component_bytes: 64 << 20,
            max_body_bytes: 1 << 20,
            max_wait_ms: 60_000,
            in_flight_wait_ms: 5_000,
            max_request_ms: 120_000,
            max_connections: 10_000,
            header_ms: 10_000,
            idle_ms: 75_000,
            body_silence_ms: 30_000,
            body_ms: 300_000,
            write_ms: 30_000,
            max_header_bytes: 32 << 10,
            max_target_bytes: 8 << 10,
            max_json_depth: 128,
            tls: None,
            default_page: 50,
            max_page: 500,
            heartbeat_ms: 15_000,
            max_streams: 256,
            max_tenant_streams: 64,
            openwop_fixtures: false,
            openwop_seams: false,
        }
    }
}

impl ApiConfig {
    /// What must hold of them, with the name and the words for when it does not.
    fn rules(&self) -> impl Iterator<Item = (bool, &'static str, &'static str)> {
        const SECOND: &str = "must be at least 1000";
        let bytes = |of: usize, most: usize| (1 << 10..=most).contains(&of);
        [
            (self.max_request_ms > self.max_wait_ms, "api.max_request_ms", "must be above api.max_wait_ms"),
            (self.max_connections >= 1, "api.max_connections", "must be at least 1"),
            (self.header_ms >= 1_000, "api.header_ms", SECOND),
            (self.idle_ms >= 1_000, "api.idle_ms", SECOND),
            (self.body_silence_ms >= 1_000, "api.body_silence_ms", SECOND),
            (self.body_ms >= 1_000, "api.body_ms", SECOND),
            (self.write_ms >= 1_000, "api.write_ms", SECOND),
            // What is far above is cut off by the HTTP library, whose own buffer ends at four hundred thousand bytes.
            (bytes(self.max_header_bytes, 128 << 10), "api.max_header_bytes", "must be from 1024 to 131072"),
            (bytes(self.max_target_bytes, 32 << 10), "api.max_target_bytes", "must be from 1024 to 32768"),
            (self.max_json_depth >= 8, "api.max_json_depth", "must be at least 8"),
            (self.tls.as_ref().is_none_or(|tls| tls.look_ms >= 1_000), "api.tls.look_ms", SECOND),
        ]
        .into_iter()
    }
}

/// The API's certificate, in PEM files that are read again when they change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// The certificate first, and those that vouch for it behind it.
    pub certificate: PathBuf,
    /// Its private key, without a password.
    pub key: PathBuf,
    /// The pause between two looks at the files. A pair that cannot be used does not replace the one in use.
    #[serde(default = "TlsConfig::look_ms")]
    pub look_ms: u64,
}

impl TlsConfig {
    pub fn of(certificate: PathBuf, key: PathBuf) -> Self {
        Self { certificate, key, look_ms: Self::look_ms() }
    }

    const fn look_ms() -> u64 {
        60_000
    }
}

/// The messages that tell of the ends of runs, to the addresses that their starts named.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhooksConfig {
    /// A larger message is sent without the run's output or failure, and says so.
    pub max_body_bytes: usize,
    /// How long a message is tried, counted from the end of its run; then it is `failed`. At most 336, 14 days: a run is kept for
    /// as long.
    pub max_hours: u32,
    /// Time for one try, from the connection to the whole answer; then the try has failed.
    pub send_ms: u64,
    /// The longest pause before the second try; each is three times as long as the one before it.
    pub first_pause_ms: u64,
    /// The longest pause between two tries, whatever the receiver's Retry-After asks for.
    pub max_pause_ms: u64,
    /// Tries under way at once on this node, and of these for one tenant. More wait. Tenants whose last try got no answer share
    /// the first less the second, at least one.
    pub max_sends: usize,
    pub max_tenant_sends: usize,
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        Self {
            max_body_bytes: 256 << 10,
            max_hours: 72,
            send_ms: 15_000,
            first_pause_ms: 5_000,
            max_pause_ms: 12 * 3_600_000,
            max_sends: 16,
            max_tenant_sends: 4,
        }
    }
}

/// How long the record is kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RetentionConfig {
    /// Days after its end that a run is kept, with its effects and logs; at least 14. Then it is swept, unless an effect of it is
    /// an open question or a provider still remembers a key of it. A business effect is kept for ever, without its answer's
    /// headers and body.
    pub days: u32,
    /// Hours after its answer that a request key is remembered; at least 24, and never shorter than the run that it started is
    /// alive. Then the same key is a new request.
    pub request_keys_hours: u32,
    /// The pause between two sweeps.
    pub pause_ms: u64,
}

/// The shortest retention, in days.
pub const LEAST_RETENTION_DAYS: u32 = 14;

impl Default for RetentionConfig {
    fn default() -> Self {
        Self { days: 30, request_keys_hours: 24, pause_ms: 60_000 }
    }
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read the settings file {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("the settings file {path} is not right: {source}")]
    Parse { path: PathBuf, source: toml::de::Error },
    #[error("setting {name}: {rule}")]
    Invalid { name: &'static str, rule: &'static str },
}

impl Config {
    /// Reads the file, or takes the defaults when there is none.
    pub fn load(path: Option<&Path>) -> Result<Self, Error> {
        let config = match path {
            None => Self::default(),
            Some(path) => {
                let text =
                    std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
                toml::from_str(&text).map_err(|source| Error::Parse { path: path.to_owned(), source })?
            }
        };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Error> {
        let rules = [
            (self.worker.lease_ms >= 1_000, "worker.lease_ms", "must be at least 1000"),
            (self.worker.poll_ms >= 10, "worker.poll_ms", "must be at least 10"),
            (self.host.max_instances >= 1, "host.max_instances", "must be at least 1"),
            (
                self.host.default_memory_bytes <= self.host.max_memory_bytes,
                "host.default_memory_bytes",
                "must not be above host.max_memory_bytes",
            ),
            (self.host.epoch_ms >= 1, "host.epoch_ms", "must be at least 1"),
            (
                self.gateway.default_send_ms <= self.gateway.max_send_ms,
                "gateway.default_send_ms",
                "must not be above gateway.max_send_ms",
            ),
            // Clients give a silent stream up, and so do proxies.
            ((10..=60_000).contains(&self.api.heartbeat_ms), "api.heartbeat_ms", "must be from 10 to 60000"),
            (self.retention.days >= LEAST_RETENTION_DAYS, "retention.days", "must be at least 14"),
            (self.retention.request_keys_hours >= 24, "retention.request_keys_hours", "must be at least 24"),
            (self.signals.max_unread >= 1, "signals.max_unread", "must be at least 1"),
            (self.retention.pause_ms >= 1_000, "retention.pause_ms", "must be at least 1000"),
            (
                self.gateway.max_buffered_request_bytes <= self.gateway.max_request_bytes,
                "gateway.max_buffered_request_bytes",
                "must not be above gateway.max_request_bytes",
            ),
            ((1..=336).contains(&self.webhooks.max_hours), "webhooks.max_hours", "must be 1 to 336"),
            (self.webhooks.send_ms >= 100, "webhooks.send_ms", "must be at least 100"),
            (
                self.webhooks.first_pause_ms <= self.webhooks.max_pause_ms,
                "webhooks.first_pause_ms",
                "must not be above webhooks.max_pause_ms",
            ),
            (
                (1..=self.webhooks.max_sends).contains(&self.webhooks.max_tenant_sends),
                "webhooks.max_tenant_sends",
                "must be 1 to webhooks.max_sends",
            ),
            // One is held by the listener for wake-ups.
            (self.database.max_connections >= 4, "database.max_connections", "must be at least 4"),
        ];
        match rules.into_iter().chain(self.api.rules()).find(|(holds, ..)| !holds) {
            Some((_, name, rule)) => Err(Error::Invalid { name, rule }),
            None => Ok(()),
        }
    }
}

/// A number of milliseconds as a duration.
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
