//! `deedbox up`: everything on one machine. What is started last stops first: the worker drains, the API stops, PostgreSQL stops
//! last; what they keep stays in the data directory.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::master_keys::Keys;
use super::os_signals;
use super::output::{Output, text};
use super::seed::{self, DataDir, Tokens};
use super::settings::{self, ADMIN_TOKEN, CACHE, Certificate, LISTEN, MASTER_KEY, POSTGRES};
use super::table::pairs;
use crate::api;
use crate::api::openwop::fixtures;
use crate::config::Config;
use crate::node::{Node, NodeSettings};
use crate::postgres::Server;

#[derive(Debug, Args)]
pub(super) struct Up {
    /// Where everything is kept; created if missing, continued if not.
    #[arg(long, value_name = "DIR", env = "DEEDBOX_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Where to listen; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", env = "DEEDBOX_LISTEN", default_value = LISTEN)]
    listen: String,
    /// A database to use instead of a private PostgreSQL server.
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// The settings file.
    #[arg(long, value_name = "FILE", env = "DEEDBOX_CONFIG")]
    config: Option<PathBuf>,
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    certificate: Certificate,
    /// Deploy the workflows of the OpenWOP conformance suite for the tenant `default`.
    #[arg(long)]
    openwop_fixtures: bool,
}

impl Up {
    pub(super) async fn run(self, output: &Output) -> anyhow::Result<()> {
        let stop = os_signals::stop()?;
        let mut config = Config::load(self.config.as_deref())?;
        self.certificate.put_into(&mut config);
        let scheme = api::scheme(&config.api)?;
        config.api.openwop_fixtures |= self.openwop_fixtures;
        let data = DataDir::open(settings::data_dir(self.data_dir.clone())?)?;
        let listener = settings::listen(&self.listen).await?;
        let master_keys = self.keys.read_or_make(&data.path().join(MASTER_KEY)).await?;
        let (server, database_url) = match self.database_url.clone() {
            Some(url) => (None, url),
            None => {
                let (server, url) = seed::start_postgres(data.path()).await?;
                (Some(server), url)
            }
        };
        let cache_dir = data.path().join(CACHE);
        let node = NodeSettings { database_url, master_keys, cache_dir, config, name: settings::node_name() };
        let start = Start { output, data: data.path(), scheme, listener, stop, fixtures: self.openwop_fixtures };
        let ended = tokio::select! {
            result = start.run(node) => result,
            () = ended(server.as_ref()) => Err(lost(data.path())),
        };
        if let Some(server) = server {
            server.stop().await;
        }
        ended
    }
}

/// What remains to be done once there is a database.
struct Start<'a> {
    output: &'a Output,
    data: &'a Path,
    scheme: &'static str,
    listener: TcpListener,
    stop: CancellationToken,
    fixtures: bool,
}

impl Start<'_> {
    async fn run(self, settings: NodeSettings) -> anyhow::Result<()> {
        let tokens = seed::prepare(&settings.database_url, self.data).await?;
        let node = Node::open(settings).await?;
        if self.fixtures {
            fixtures::install(node.registry(), node.store(), seed::TENANT).await?;
        }
        self.announce(self.listener.local_addr()?, &tokens)?;
        let result = run_parts(&node, self.listener, self.stop).await;
        node.close().await;
        self.output.note("stopped; the data is kept");
        result
    }

    fn announce(&self, listening: SocketAddr, tokens: &Tokens) -> anyhow::Result<()> {
        let address = format!("{}://{}", self.scheme, reachable(listening));
        let value =
            json!({ "address": address, "token": tokens.tenant, "admin_token": tokens.admin, "data_dir": self.data });
        let next = format!(
            "\nIn another terminal:\n  export DEEDBOX_URL={address} DEEDBOX_TOKEN={}\n  deedbox deploy FILE.wasm\n\
             Ctrl-C stops everything; the data stays.",
            tokens.tenant
        );
        self.output.show(&value, |value| {
            let rows = [
                ("address", text(value, "/address")),
                ("token", text(value, "/token")),
                ("admin token", format!("in {}", self.data.join(ADMIN_TOKEN).display())),
                ("data", self.data.display().to_string()),
            ];
            format!("Deedbox is up.\n{}{next}", pairs(&rows))
        })
    }
}

/// Runs worker and API until a stop is asked for or one of them fails. The API outlives the worker's draining.
async fn run_parts(node: &Node, listener: TcpListener, stop: CancellationToken) -> anyhow::Result<()> {
    let drained = CancellationToken::new();
    let work = async {
        node.work(stop.clone()).await;
        drained.cancel();
    };
    let serve = async {
        let served = node.serve(listener, drained.clone()).await;
        stop.cancel();
        served
    };
    let ((), served) = tokio::join!(work, serve);
    Ok(served?)
}

async fn ended(server: Option<&Server>) {
    match server {
        Some(server) => server.ended().await,
        None => std::future::pending().await,
    }
}

fn lost(data: &Path) -> anyhow::Error {
    let log = data.join(POSTGRES).join("postgres.log");
    anyhow::anyhow!(
        "the private PostgreSQL server ended by itself: its log is {}; start again with `deedbox up`",
        log.display()
    )
}

/// An address that clients on this machine can use.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = if listening.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { listening.ip() };
    SocketAddr::new(ip, listening.port())
}
