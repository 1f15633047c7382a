//! Over TLS: whom a deployment believes, and that nothing goes out in the clear.

use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::harness::{World, neighbour};

/// What must not be on the wire.
const MARK: &str = "in-the-clear-4f1c";

/// Whoever vouches for servers.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "an authority of the tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// What a server at 127.0.0.1 needs to prove that it is there.
    fn acceptor(&self) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "a server of the tests");
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

/// A server over TLS: where it is, and the heads of the requests that it got.
struct Server {
    origin: String,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start(acceptor: TlsAcceptor) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("https://{}", listener.local_addr().unwrap());
        let heads = Arc::new(Mutex::new(Vec::new()));
        let server = Self { origin, heads: heads.clone() };
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else { continue };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                // A client that does not believe the server says so only after the handshake has ended here.
                if !head.is_empty() {
                    heads.lock().unwrap().push(String::from_utf8(head).unwrap());
                }
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                stream.write_all(answer).await.ok();
                stream.shutdown().await.ok();
            }
        });
        server
    }

    fn policy(&self, ca: Option<&str>) -> Value {
        policy(&self.origin, ca)
    }

    fn calls(&self) -> Value {
        json!({ "calls": [{ "method": "GET", "url": format!("{}/x", self.origin) }] })
    }

    fn heard(&self) -> usize {
        self.heads.lock().unwrap().len()
    }
}

fn policy(origin: &str, ca: Option<&str>) -> Value {
    let mut policy = json!({ "egress": { "allow": [origin] }, "providers": { origin: "stripe" } });
    if let Some(ca) = ca {
        policy["egress"]["ca"] = json!(ca);
    }
    policy
}

/// The message of the only call's error; none: it was answered.
async fn refusal(world: &World, server: &Server, ca: Option<&str>) -> Option<String> {
    world.deploy("send", "stripe", server.policy(ca)).await;
    let run = world.start("send", server.calls()).await;
    world.work().await;
    refused(&world.output(run).await)
}

fn refused(output: &Value) -> Option<String> {
    match &output[0]["error"] {
        Value::Null => None,
        error => {
            assert_eq!(error, "unreachable", "{output}");
            Some(output[0]["message"].as_str().unwrap().to_owned())
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_of_a_deployment_s_own_is_believed_by_that_deployment_alone() {
    let (own, other) = (Authority::new(), Authority::new());
    let server = Server::start(own.acceptor()).await;
    let world = World::keyed().await;
    assert!(refusal(&world, &server, None).await.is_some_and(|why| why.contains("TLS")));
    assert!(refusal(&world, &server, Some(&other.pem)).await.is_some_and(|why| why.contains("TLS")));
    let broken = refusal(&world, &server, Some("no certificate")).await;
    assert!(broken.as_ref().is_some_and(|why| why.contains("policy.egress.ca")), "{broken:?}");
    assert_eq!(server.heard(), 0);

    // Twice: the second time what was built for it is there.
    let both = format!("{}{}", other.pem, own.pem);
    for ca in [&own.pem, &own.pem, &both] {
        assert_eq!(refusal(&world, &server, Some(ca)).await, None);
    }
    assert_eq!(server.heard(), 3);

    neighbour::deploy(&world, "send", server.policy(None)).await;
    let run = neighbour::start(&world, "send", server.calls()).await;
    world.work().await;
    assert!(refused(&neighbour::output(&world, run).await).is_some_and(|why| why.contains("TLS")));
    assert!(refusal(&world, &server, None).await.is_some(), "the next version of the same activity");
    assert_eq!(server.heard(), 3);
}

/// F-E07: `https` is that and nothing less, whatever a server proposes.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_speaks_no_tls_or_an_old_one_gets_no_byte_of_the_request() {
    let plain = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_vec();
    for (what, answer) in [("plain HTTP", plain), ("TLS 1.1", old_hello()), ("nothing", Vec::new())] {
        let world = World::keyed().await;
        let (origin, came) = answering(answer).await;
        world.deploy("send", "stripe", policy(&origin, None)).await;
        let call = json!({ "method": "POST", "url": format!("{origin}/{MARK}"), "headers": [["x-mark", MARK]], "json": { "mark": MARK } });
        let run = world.start("send", json!({ "calls": [call] })).await;
        world.work().await;
        let why = refused(&world.output(run).await).unwrap();
        assert!(why.contains("TLS"), "{what}: {why}");
        let states: Vec<String> = world.sends(run).await.into_iter().map(|send| send.state).collect();
        assert_eq!(states, ["released"], "{what}");
        let came = came.await.unwrap();
        let has = |bytes: &[u8]| came.windows(bytes.len()).any(|window| window == bytes);
        assert_eq!(came[0], 0x16, "{what}: a handshake");
        assert!(!has(MARK.as_bytes()) && !has(b"POST"), "{what}");
        // The extension of the versions: TLS 1.3 and 1.2, in four bytes behind their count.
        assert!(has(&[0x00, 0x2b, 0x00, 0x05, 0x04, 0x03, 0x04, 0x03, 0x03]), "{what}: {came:?}");
    }
}

/// Answers the first bytes of one connection with these, and gives all that came on it.
async fn answering(answer: Vec<u8>) -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("https://{}", listener.local_addr().unwrap());
    let came = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut came = vec![0; 16 << 10];
        let read = stream.read(&mut came).await.unwrap();
        came.truncate(read);
        stream.write_all(&answer).await.unwrap();
        // However it ends.
        stream.shutdown().await.ok();
        stream.read_to_end(&mut came).await.ok();
        came
    });
    (origin, came)
}

/// The first word of a server that wants TLS 1.1.
fn old_hello() -> Vec<u8> {
    const OLD: [u8; 2] = [3, 2];
    // The version, a random number, no session, a cipher suite, no compression.
    let hello = [&OLD[..], &[7; 32], &[0], &[0xc0, 0x13], &[0]].concat();
    let length = u8::try_from(hello.len()).unwrap();
    [&[0x16], &OLD[..], &[0, length + 4, 2, 0, 0, length], &hello].concat()
}
