//! The certificate with which the API answers over TLS: read at the start, and again whenever its files change. A pair that
//! cannot be used never takes the place of one that can, and no part of a key reaches an error or a log.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use zeroize::Zeroizing;

use crate::config::{ApiConfig, TlsConfig, ms};

/// Why the API cannot speak TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error(
        "the API's {what} {path} cannot be read: {source}; name a file that this user can read with {flag}, or in [api.tls]"
    )]
    Read { what: &'static str, flag: &'static str, path: PathBuf, source: io::Error },
    #[error("the API's {what} {path} is not right: {why}; it must be a PEM file with {expected}")]
    Pem { what: &'static str, path: PathBuf, why: String, expected: &'static str },
    #[error(
        "the API's certificate {certificate} and key {key} cannot be used together: {source}; give the key that belongs to the first certificate of the file"
    )]
    Pair { certificate: PathBuf, key: PathBuf, source: rustls::Error },
}

/// How clients reach an API with these settings: `http`, or `https` once the certificate was found to be usable.
pub fn scheme(config: &ApiConfig) -> Result<&'static str, TlsError> {
    match &config.tls {
        None => Ok("http"),
        Some(files) => Tls::open(files).map(|_| "https"),
    }
}

/// A certificate in use.
pub struct Tls {
    files: TlsConfig,
    current: Mutex<Current>,
}

struct Current {
    read: [Option<Stamp>; 2],
    config: Arc<ServerConfig>,
}

/// What changes when a file is written or replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
}

impl Tls {
    pub fn open(files: &TlsConfig) -> Result<Self, TlsError> {
        // Looked at before it is read: a change in between is seen the next time.
        let read = stamps(files);
        let config = read_pair(files)?;
        Ok(Self { files: files.clone(), current: Mutex::new(Current { read, config }) })
    }

    /// For one connection.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.current().config.clone())
    }

    /// Looks for changed files, for ever.
    pub async fn keep_fresh(self: Arc<Self>) {
        loop {
            tokio::time::sleep(ms(self.files.look_ms)).await;
            let tls = self.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || tls.refresh()).await {
                tracing::error!(%error, "looking for a new certificate failed");
            }
        }
    }

    fn refresh(&self) {
        let read = stamps(&self.files);
        if read == self.current().read {
            return;
        }
        match read_pair(&self.files) {
            Ok(config) => {
                *self.current() = Current { read, config };
                tracing::info!("the API's certificate was replaced");
            }
            // Two files are not replaced at once; the next look may find both.
            Err(error) => tracing::warn!(%error, "the API keeps the certificate that it had"),
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamps(files: &TlsConfig) -> [Option<Stamp>; 2] {
    [&files.certificate, &files.key].map(|path| {
        let seen = std::fs::metadata(path).ok()?;
        let modified = (seen.mtime(), seen.mtime_nsec());
        Some(Stamp { inode: seen.ino(), bytes: seen.size(), modified })
    })
}

fn read_pair(files: &TlsConfig) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = read_chain(&files.certificate)?;
    let key = read_key(&files.key)?;
    let unusable = |source| TlsError::Pair { certificate: files.certificate.clone(), key: files.key.clone(), source };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = versions.map_err(unusable)?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).map_err(unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = read("certificate", "--tls-cert", path)?;
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&text).collect();
    let wrong = |why: String| TlsError::Pem {
        what: "certificate",
        path: path.to_owned(),
        why,
        expected: "the server's certificate first and those that vouch for it behind it",
    };
    match chain {
        Ok(chain) if chain.is_empty() => Err(wrong("there is no certificate in it".to_owned())),
        Ok(chain) => Ok(chain),
        Err(error) => Err(wrong(plain(&error).to_owned())),
    }
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let text = read("key", "--tls-key", path)?;
    PrivateKeyDer::from_pem_slice(&text).map_err(|error| TlsError::Pem {
        what: "key",
        path: path.to_owned(),
        why: plain(&error).to_owned(),
        expected: "one private key that has no password",
    })
}

/// The library's own words can hold a part of the file.
fn plain(error: &pem::Error) -> &'static str {
    match error {
        pem::Error::NoItemsFound => "there is no such thing in it",
        pem::Error::MissingSectionEnd { .. } => "it ends too early",
        _ => "it is no PEM file",
    }
}

fn read(what: &'static str, flag: &'static str, path: &Path) -> Result<Zeroizing<Vec<u8>>, TlsError> {
    let text = std::fs::read(path).map(Zeroizing::new);
    text.map_err(|source| TlsError::Read { what, flag, path: path.to_owned(), source })
}
