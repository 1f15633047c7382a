//! How the tests ask over HTTP. The library must be told how to do TLS, even where nothing is asked over it.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ALL_VERSIONS, ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion};

/// A client that trusts no certificate.
pub fn client() -> reqwest::Client {
    builder(&[]).build().unwrap()
}

/// One that trusts these certificates.
pub fn builder(trusted: &[CertificateDer<'static>]) -> reqwest::ClientBuilder {
    reqwest::Client::builder().no_proxy().tls_backend_preconfigured(tls(trusted))
}

/// TLS for a client that trusts these certificates.
pub fn tls(trusted: &[CertificateDer<'static>]) -> ClientConfig {
    configured(trusted, ALL_VERSIONS)
}

/// The same for one that speaks one version.
pub fn tls_of(trusted: &[CertificateDer<'static>], version: ProtocolVersion) -> ClientConfig {
    let versions: Vec<_> = ALL_VERSIONS.iter().copied().filter(|it| it.version == version).collect();
    configured(trusted, &versions)
}

fn configured(trusted: &[CertificateDer<'static>], versions: &[&'static SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    trusted.iter().for_each(|certificate| roots.add(certificate.clone()).unwrap());
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    builder.with_protocol_versions(versions).unwrap().with_root_certificates(roots).with_no_client_auth()
}
