//! Settings: flags over the environment over the file that `--config` names. The file holds limits and times (see `config`); what
//! belongs to a machine or to a caller comes from flags and the environment.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use url::{Host, Url};
use zeroize::Zeroizing;

use super::failure::Failure;
use super::master_keys::Keys;
use crate::config::{Config, TlsConfig};
use crate::node::NodeSettings;

/// Where the API listens unless it is told otherwise.
pub(super) const LISTEN: &str = "127.0.0.1:7420";

/// Names inside the data directory.
pub(super) const TOKEN: &str = "token";
pub(super) const ADMIN_TOKEN: &str = "admin-token";
pub(super) const MASTER_KEY: &str = "master.key";
pub(super) const CACHE: &str = "cache";
pub(super) const POSTGRES: &str = "postgres";

/// Which server a client speaks to, and as whom.
#[derive(Debug, Args)]
#[command(next_help_heading = "Server")]
pub(super) struct Remote {
    /// The server's address.
    #[arg(long, value_name = "URL", env = "DEEDBOX_URL", default_value = "http://127.0.0.1:7420", global = true)]
    pub url: String,
    /// The token. Without one, the token that `deedbox up` keeps in its data directory is used for a server on this machine.
    #[arg(long, env = "DEEDBOX_TOKEN", hide_env_values = true, global = true)]
    pub token: Option<String>,
    /// The data directory of `deedbox up`.
    #[arg(long, value_name = "DIR", env = "DEEDBOX_DATA_DIR", global = true)]
    pub data_dir: Option<PathBuf>,
    /// A PEM file of certificates to trust beside those that this machine trusts, for an https server.
    #[arg(long, value_name = "FILE", env = "DEEDBOX_CA_CERT", global = true)]
    pub ca_cert: Option<PathBuf>,
}

impl Remote {
    /// The server's address, checked.
    pub(super) fn address(&self) -> anyhow::Result<Url> {
        let wrong = |why: &str| Failure::Usage(format!("--url {}: {why}", self.url));
        let url = Url::parse(&self.url).map_err(|error| wrong(&error.to_string()))?;
        match url.scheme() {
            "http" | "https" if url.has_host() => Ok(url),
            _ => Err(wrong("it must look like http://127.0.0.1:7420").into()),
        }
    }

    /// The token to use; `file` names the one in the data directory.
    pub(super) fn token(&self, address: &Url, file: &str) -> anyhow::Result<String> {
        if let Some(token) = &self.token {
            return Ok(token.trim().to_owned());
        }
        let path = self.data_dir.clone().or_else(default_data_dir).map(|dir| dir.join(file));
        // A token of this machine must not travel to another one.
        let kept = path.filter(|_| is_loopback(address)).and_then(|path| std::fs::read_to_string(path).ok());
        let missing =
            || Failure::Usage("no token: pass --token, or set DEEDBOX_TOKEN; `deedbox up` prints one".to_owned());
        Ok(kept.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).ok_or_else(missing)?)
    }
}

/// True when the address is on this machine.
pub(super) fn is_loopback(address: &Url) -> bool {
    match address.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip).is_loopback(),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip).is_loopback(),
        None => false,
    }
}

/// The certificate of the API.
#[derive(Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(super) struct Certificate {
    /// The API's certificate and those that vouch for it, a PEM file. With it the API speaks https; a new file is taken up by
    /// itself.
    #[arg(long = "tls-cert", value_name = "FILE", env = "DEEDBOX_TLS_CERT", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, a PEM file without a password.
    #[arg(long = "tls-key", value_name = "FILE", env = "DEEDBOX_TLS_KEY", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
}

impl Certificate {
    /// Puts the files in the place of those that the settings file names.
    pub(super) fn put_into(self, config: &mut Config) {
        if let (Some(certificate), Some(key)) = (self.tls_cert, self.tls_key) {
            config.api.tls = Some(TlsConfig::of(certificate, key));
        }
    }
}

/// What a part of a fleet needs to start.
#[derive(Debug, Args)]
pub(super) struct Fleet {
    /// The fleet's database: postgres://USER:PASSWORD@HOST/DATABASE
    #[arg(long, value_name = "URL", env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: String,
    #[command(flatten)]
    pub keys: Keys,
    /// Where compiled components are kept.
    #[arg(long, value_name = "DIR", env = "DEEDBOX_CACHE_DIR")]
    pub cache_dir: Option<PathBuf>,
    /// The name of this node in the records of attempts; a name of the machine and the process when absent.
    #[arg(long, env = "DEEDBOX_NAME")]
    pub name: Option<String>,
    /// The settings file.
    #[arg(long, value_name = "FILE", env = "DEEDBOX_CONFIG")]
    pub config: Option<PathBuf>,
}

impl Fleet {
    pub(super) async fn node(self) -> anyhow::Result<NodeSettings> {
        let cache_dir = self.cache_dir.or_else(|| default_data_dir().map(|dir| dir.join(CACHE)));
        Ok(NodeSettings {
            database_url: self.database_url,
            master_keys: self.keys.read().await?,
            cache_dir: cache_dir.ok_or_else(|| no_place("--cache-dir"))?,
            config: Config::load(self.config.as_deref())?,
            name: self.name.unwrap_or_else(node_name),
        })
    }
}

/// A name that no other node has and no later process will have: `<machine>-<process id>-<random>`.
pub(super) fn node_name() -> String {
    let system = rustix::system::uname();
    let machine = system.nodename().to_string_lossy();
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{machine}-{}-{}", std::process::id(), &random[..6])
}

/// The data directory that is asked for, or the user's own.
pub(super) fn data_dir(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let dir = given.or_else(default_data_dir).ok_or_else(|| no_place("--data-dir"))?;
    std::path::absolute(&dir).with_context(|| format!("finding {}", dir.display()))
}

/// Root's is under /var/lib, where the user who runs PostgreSQL can reach it.
fn default_data_dir() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/deedbox"));
    }
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = directory("HOME").filter(absolute);
    if cfg!(target_os = "macos") {
        return home.map(|home| home.join("Library/Application Support/deedbox"));
    }
    let data = directory("XDG_DATA_HOME").filter(absolute);
    data.or_else(|| home.map(|home| home.join(".local/share"))).map(|data| data.join("deedbox"))
}

#[allow(clippy::disallowed_methods, reason = "the one place that asks the environment for the user's directories")]
fn directory(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A secret that comes in a variable. None when it is not set or empty.
#[allow(clippy::disallowed_methods, reason = "a key in a variable must not become an argument that others can see")]
pub(super) fn secret(variable: &str) -> anyhow::Result<Option<Zeroizing<String>>> {
    let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    let text = value.into_string().map_err(|_| Failure::Usage(format!("{variable} is not text")))?;
    Ok(Some(Zeroizing::new(text)))
}

/// The folders of a variable that lists them as `PATH` does.
pub(super) fn folders(variable: &str) -> Vec<PathBuf> {
    directory(variable).map(|list| std::env::split_paths(list.as_os_str()).collect()).unwrap_or_default()
}

/// The program that a variable names.
pub(super) fn program(variable: &str) -> Option<PathBuf> {
    directory(variable)
}

fn no_place(flag: &str) -> Failure {
    Failure::Usage(format!("there is no home directory to keep data in: pass {flag}"))
}

/// Listens, or says in plain words why not.
pub(super) async fn listen(address: &str) -> anyhow::Result<tokio::net::TcpListener> {
    let address: SocketAddr = address.parse().map_err(|_| {
        Failure::Usage(format!("--listen {address}: it must be an address and a port, such as {LISTEN}"))
    })?;
    tokio::net::TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => anyhow::anyhow!(
            "port {} on {} is taken by another program: stop it, or choose another port with --listen {}:PORT (0 picks a free one)",
            address.port(),
            address.ip(),
            address.ip()
        ),
        std::io::ErrorKind::PermissionDenied => {
            anyhow::anyhow!("listening on {address} is not allowed: ports below 1024 belong to root, choose another with --listen")
        }
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address}")),
    })
}

/// Reads a file that the user named.
pub(super) async fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    tokio::fs::read(path)
        .await
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(url: &str, dir: &Path) -> Remote {
        Remote { url: url.to_owned(), token: None, data_dir: Some(dir.to_owned()), ca_cert: None }
    }

    #[test]
    fn the_kept_token_stays_on_this_machine() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(TOKEN), "kept\n").unwrap();
        for (url, token) in
            [("http://127.0.0.1:7420", Some("kept")), ("https://[::1]:1", Some("kept")), ("https://example.com", None)]
        {
            let remote = remote(url, dir.path());
            let address = remote.address().unwrap();
            assert_eq!(remote.token(&address, TOKEN).ok().as_deref(), token, "{url}");
        }
    }

    #[test]
    fn a_given_token_goes_first() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(TOKEN), "kept").unwrap();
        let remote = Remote { token: Some("given".to_owned()), ..remote("http://localhost:1", dir.path()) };
        let address = remote.address().unwrap();
        assert_eq!(remote.token(&address, TOKEN).unwrap(), "given");
    }

    #[test]
    fn an_address_that_cannot_be_used_is_refused_with_words() {
        for url in ["", "127.0.0.1:7420", "https:", "ftp://example.com"] {
            let error = remote(url, Path::new("/")).address().unwrap_err();
            assert!(error.to_string().contains("--url"), "{error}");
        }
    }

    #[tokio::test]
    async fn a_taken_port_is_named_with_the_way_out() {
        let first = listen("127.0.0.1:0").await.unwrap();
        let address = first.local_addr().unwrap();
        let error = listen(&address.to_string()).await.unwrap_err().to_string();
        assert!(error.contains(&address.port().to_string()) && error.contains("--listen"), "{error}");
    }

    #[test]
    fn node_names_differ() {
        assert_ne!(node_name(), node_name());
    }
}
