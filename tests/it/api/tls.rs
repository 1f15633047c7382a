//! The API over TLS, under a certificate that the test makes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deedbox::config::{Config, TlsConfig};
use reqwest::Method;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ProtocolVersion};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::client::Client;
use super::wire::{Wire, address};
use super::{GUESTS, mint, serve};
use crate::harness::{World, component, config, http, logs};
use crate::worker::until;

/// A certificate for this machine's own address, and its key.
pub struct Pair {
    pub certificate: CertificateDer<'static>,
    pub certificate_pem: String,
    pub key_pem: String,
}

pub fn new_pair() -> Pair {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    Pair {
        certificate: made.cert.der().clone(),
        certificate_pem: made.cert.pem(),
        key_pem: made.signing_key.serialize_pem(),
    }
}

/// A node that serves over TLS until this is dropped.
struct Served {
    world: World,
    origin: String,
    dir: TempDir,
    _stop: DropGuard,
}

impl Served {
    async fn with(pair: &Pair, change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = config();
        let files = TlsConfig { look_ms: 20, ..TlsConfig::of(dir.path().join("cert.pem"), dir.path().join("key.pem")) };
        write(&files.certificate, &pair.certificate_pem);
        write(&files.key, &pair.key_pem);
        settings.api.tls = Some(files);
        change(&mut settings);
        let world = World::keyed().await;
        let stop = CancellationToken::new();
        let origin = serve(&world.database, settings, stop.clone()).await.replace("http://", "https://");
        Self { world, origin, dir, _stop: stop.drop_guard() }
    }

    /// A client that trusts a certificate and keeps no connection.
    async fn client(&self, trusted: &Pair) -> Client {
        let http = http::builder(std::slice::from_ref(&trusted.certificate)).pool_max_idle_per_host(0).build().unwrap();
        Client::with_http(http, &self.origin, Some(mint(&self.world, "acme").await))
    }

    /// Whether a client that trusts this certificate, and no other, is answered.
    async fn is_trusted_by(&self, trusted: &Pair) -> bool {
        let http = http::builder(std::slice::from_ref(&trusted.certificate)).build().unwrap();
        http.get(format!("{}/healthz", self.origin)).send().await.is_ok_and(|answer| answer.status() == 200)
    }

    async fn connect(&self, tls: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(address(&self.origin)).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        TlsConnector::from(Arc::new(tls)).connect(name, stream).await
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_goes_over_tls_for_who_trusts_the_certificate() {
    let pair = new_pair();
    let served = Served::with(&pair, |_| {}).await;
    let acme = served.client(&pair).await;
    acme.get("/v1/runs").await.expect(200);
    let digest = acme.upload(component(GUESTS)).await.json()["digest"].clone();
    acme.put("/v1/activities/noop", &json!({ "module": digest, "policy": {} })).await.expect(201);
    let input = json!({ "input": "x".repeat(900_000) });
    let run = acme.post("/v1/activities/noop/runs", &input).await.expect(201)["run_id"].as_str().unwrap().to_owned();
    assert_eq!(acme.get(&format!("/v1/runs/{run}")).await.expect(200)["input"], input["input"]);
    acme.raw(Method::PUT, "/v1/secrets/a", Some("application/json"), vec![b' '; 1 << 21])
        .await
        .refused(413, "payload_too_large");
    assert!(!served.is_trusted_by(&new_pair()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_of_tls_are_spoken_and_http_1_is_agreed_on() {
    let pair = new_pair();
    let served = Served::with(&pair, |_| {}).await;
    for version in [ProtocolVersion::TLSv1_2, ProtocolVersion::TLSv1_3] {
        let mut tls = http::tls_of(std::slice::from_ref(&pair.certificate), version);
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let stream = served.connect(tls.clone()).await.unwrap();
        assert_eq!(stream.get_ref().1.protocol_version(), Some(version));
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(Wire::over(stream).get("/healthz", "").await.status, 200);
        tls.alpn_protocols = vec![b"h2".to_vec()];
        assert!(served.connect(tls).await.is_err(), "nothing in common to speak");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_speaks_no_tls_is_cut_off_and_harms_nobody() {
    let pair = new_pair();
    let served = Served::with(&pair, |config| config.api.header_ms = 1_000).await;
    let acme = served.client(&pair).await;
    let plain = Client::new(&served.origin.replace("https://", "http://"), None);
    assert!(plain.request(Method::GET, "/healthz").send().await.is_err());
    for noise in ["GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", "\u{16}\u{3}\u{1}", ""] {
        let mut wire = Wire::open(&served.origin).await;
        assert!(wire.send(noise).await);
        let said = wire.rest().await;
        assert!(!said.starts_with(b"HTTP/"), "{said:?}");
    }
    acme.get("/v1/runs").await.expect(200);
    // Behind the handshake the same times hold.
    let mut wire = Wire::over(served.connect(http::tls(std::slice::from_ref(&pair.certificate))).await.unwrap());
    assert!(wire.send("GET /healthz HTTP/1.1\r\nx: ").await);
    wire.answer().await.refused(408, "deedbox.request_timeout");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_taken_up_once_both_of_its_files_are_there() {
    logs::keep();
    let (old, new) = (new_pair(), new_pair());
    let served = Served::with(&old, |_| {}).await;
    let mut open = Wire::over(served.connect(http::tls(std::slice::from_ref(&old.certificate))).await.unwrap());
    assert_eq!(open.get("/healthz", "").await.status, 200);

    write(&served.dir.path().join("cert.pem"), &new.certificate_pem);
    until("the half of a pair is warned of", async || logs::all().contains("keeps the certificate that it had")).await;
    assert!(served.is_trusted_by(&old).await);
    write(&served.dir.path().join("key.pem"), "nonsense");
    assert!(served.is_trusted_by(&old).await);

    write(&served.dir.path().join("key.pem"), &new.key_pem);
    until("the new one is used", async || served.is_trusted_by(&new).await).await;
    assert!(!served.is_trusted_by(&old).await);
    assert_eq!(open.get("/healthz", "").await.status, 200, "what is open stays open");
    for name in ["cert.pem", "key.pem"] {
        std::fs::remove_file(served.dir.path().join(name)).unwrap();
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(served.is_trusted_by(&new).await);
    let secret = new.key_pem.lines().nth(1).unwrap();
    assert!(!logs::all().contains(secret), "no part of a key is logged");
}
