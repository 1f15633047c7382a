//! Settings: one struct per concern. Every limit has a name, a unit in its name, and words for what happens at it. They
//! come from one TOML file; command-line flags and the environment name the file and override what belongs to a machine.

mod api;
mod gateway;
mod host;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

pub use api::{ApiConfig, TlsConfig};
pub use gateway::GatewayConfig;
pub use host::HostConfig;

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
            (
                self.host.max_untaken_bytes >= self.gateway.max_response_bytes,
                "host.max_untaken_bytes",
                "must not be below gateway.max_response_bytes",
            ),
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
        let rules = rules.into_iter().chain(self.host.rules()).chain(self.host.compile_rules());
        let mut rules = rules.chain(self.api.rules()).chain(self.gateway.rules());
        match rules.find(|(holds, ..)| !holds) {
            Some((_, name, rule)) => Err(Error::Invalid { name, rule }),
            None => Ok(()),
        }
    }
}

/// A number of milliseconds as a duration.
pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}
