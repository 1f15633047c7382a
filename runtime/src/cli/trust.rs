//! Whom the commands believe over TLS: the certificate authorities of this machine, and those of a file that the user names. A
//! certificate is always checked.

use std::error::Error;
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::failure::Failure;

/// The machine's certificate authorities, and those of a PEM file.
pub(super) fn roots(file: Option<&Path>) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let Some(file) = file else { return Ok(roots) };
    let wrong = |why: &dyn Display| {
        Failure::Usage(format!("--ca-cert {}: {why}; name a PEM file of the certificates to trust", file.display()))
    };
    let text = std::fs::read(file).map_err(|error| wrong(&error))?;
    let before = roots.len();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|_| wrong(&"it is no PEM file"))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
    }
    match roots.len() > before {
        true => Ok(roots),
        false => Err(wrong(&"there is no certificate in it").into()),
    }
}

/// A client that believes these. The library must be told, even where nothing is asked over TLS.
pub(super) fn client(roots: RootCertStore) -> anyhow::Result<reqwest::ClientBuilder> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut tls = versions.context("setting up TLS")?.with_root_certificates(roots).with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(reqwest::Client::builder().tls_backend_preconfigured(tls))
}

/// What TLS found wrong, if that is what an error comes from.
pub(super) fn fault<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(fault) = error.downcast_ref() {
        return Some(fault);
    }
    // An I/O error does not count what is in it among its causes.
    let within = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    within.map(|within| within as &(dyn Error + 'static)).or_else(|| error.source()).and_then(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused_with_words() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("ca.pem");
        for text in [None, Some(""), Some("-----BEGIN CERTIFICATE-----\nAAAA"), Some("nonsense")] {
            text.into_iter().for_each(|text| std::fs::write(&file, text).unwrap());
            let error = roots(Some(&file)).unwrap_err().to_string();
            assert!(error.contains("--ca-cert") && error.contains("PEM"), "{error}");
        }
    }

    #[test]
    fn a_fault_of_tls_is_found_within_other_errors() {
        let fault_within = |error: &(dyn Error + 'static)| fault(error).map(ToString::to_string);
        let plain = io::Error::other("the cable is loose");
        assert_eq!(fault_within(&plain), None);
        let inner = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::DecryptError);
        assert_eq!(fault_within(&io::Error::other(inner)), Some(rustls::Error::DecryptError.to_string()));
    }
}
