//! What bounds the connections, requests and answers of the API.

use std::path::PathBuf;

use serde::Deserialize;

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
    pub(super) fn rules(&self) -> impl Iterator<Item = (bool, &'static str, &'static str)> {
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
