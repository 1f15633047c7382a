//! Whose certificates a provider may show: the platform's authorities, and for the HTTP calls of one deployment also those
//! that its policy adds. Nothing of one connection is remembered for the next, and nothing older than TLS 1.2 is spoken.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto, version};

/// The most that a policy may add.
const MAX_CA_BYTES: usize = 64 << 10;
const MAX_CA_CERTIFICATES: usize = 32;

/// What was built for policies is kept for so many different texts.
const MOST: usize = 64;

#[derive(Debug)]
pub struct Trust {
    platform: Arc<RootCertStore>,
    plain: Arc<ClientConfig>,
    /// By the digest of the text.
    added: Mutex<HashMap<[u8; 32], Arc<ClientConfig>>>,
}

impl Trust {
    /// Reads the platform's certificate authorities.
    pub fn load() -> Self {
        let mut platform = RootCertStore::empty();
        platform.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let platform = Arc::new(platform);
        Self { plain: config(platform.clone()), platform, added: Mutex::default() }
    }

    /// The platform's certificate authorities.
    pub fn platform(&self) -> Arc<RootCertStore> {
        self.platform.clone()
    }

    /// How to speak TLS for a deployment that adds these certificates. The error is for people.
    pub fn with(&self, ca: Option<&str>) -> Result<Arc<ClientConfig>, String> {
        let Some(ca) = ca else { return Ok(self.plain.clone()) };
        let digest = *blake3::hash(ca.as_bytes()).as_bytes();
        if let Some(known) = self.added.lock().unwrap_or_else(PoisonError::into_inner).get(&digest) {
            return Ok(known.clone());
        }
        let mut roots = RootCertStore::clone(&self.platform);
        add(ca, &mut roots)?;
        let built = config(Arc::new(roots));
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        if added.len() >= MOST {
            added.clear();
        }
        added.insert(digest, built.clone());
        Ok(built)
    }
}

/// Checks what a policy adds. The error says what is wrong with it, without the field's name.
pub fn check(ca: &str) -> Result<(), String> {
    add(ca, &mut RootCertStore::empty())
}

fn add(ca: &str, roots: &mut RootCertStore) -> Result<(), String> {
    if ca.len() > MAX_CA_BYTES {
        return Err(format!("must be at most {MAX_CA_BYTES} bytes"));
    }
    // A policy is shown to whoever may read, and kept for ever.
    if ca.contains("PRIVATE KEY-----") {
        return Err(
            "must have certificates only, and this has a private key: make a new one, it is known now".to_owned()
        );
    }
    let mut count = 0;
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        count += 1;
        let certificate = certificate.map_err(|_| format!("certificate {count} is no PEM that can be read"))?;
        roots.add(certificate).map_err(|error| format!("certificate {count} cannot be used: {error}"))?;
    }
    match count {
        0 => Err("must be certificates in PEM, each from -----BEGIN CERTIFICATE----- to its end".to_owned()),
        1..=MAX_CA_CERTIFICATES => Ok(()),
        _ => Err(format!("must be at most {MAX_CA_CERTIFICATES} certificates")),
    }
}

#[allow(clippy::expect_used, reason = "a fixed choice of library parts, the same at every start")]
fn config(roots: Arc<RootCertStore>) -> Arc<ClientConfig> {
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&version::TLS13, &version::TLS12]);
    let builder = builder.expect("ring supports TLS 1.2 and 1.3").with_root_certificates(roots);
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    // A session that is resumed shows no certificate, and tells the provider that two tenants share a host.
    config.resumption = Resumption::disabled();
    Arc::new(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_refused_with_its_reason() {
        let of = |inner: &str| format!("-----BEGIN CERTIFICATE-----\n{inner}\n-----END CERTIFICATE-----\n");
        for (ca, words) in [
            (String::new(), "in PEM"),
            ("certificates".to_owned(), "in PEM"),
            (of("!"), "certificate 1"),
            (of("AAAA"), "certificate 1"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n".to_owned(), "certificate 1"),
            ("-----BEGIN EC PRIVATE KEY-----\nAAAA\n".to_owned(), "private key"),
            ("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n".to_owned(), "private key"),
            ("x".repeat(MAX_CA_BYTES + 1), "65536 bytes"),
        ] {
            let why = check(&ca).unwrap_err();
            assert!(why.contains(words), "{words}: {why}");
        }
    }
}
