//! One connection to a NATS server for one question or one message. It is made to an address that was checked, and never
//! made again: the client library would connect anew by itself and hand on what waits, so its second handshake is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{GetStreamByNameErrorKind, GetStreamError, GetStreamErrorKind};
use async_nats::{Auth, AuthError, Client, ConnectErrorKind, ConnectOptions, jetstream};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{self, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use super::windows::{Window, Windows};
use crate::gateway::resolver::Target;
use crate::gateway::transport::shares;
use crate::gateway::vault;
use crate::policy::Origin;

/// What all connections to servers share.
#[derive(Debug)]
pub struct Servers {
    pub(super) windows: Windows,
    roots: Arc<RootCertStore>,
}

/// How to get in.
pub struct Login {
    pub user: Option<String>,
    pub secret: Option<vault::Secret>,
}

/// Why the server did not say which stream takes a subject.
pub enum NoWindow {
    /// It said that none does, or that one does in a way that gives no acknowledgement.
    NoStream(String),
    /// It did not say.
    Unreachable(String),
}

impl Servers {
    pub fn new(roots: Arc<RootCertStore>) -> Self {
        Self { windows: Windows::default(), roots }
    }

    /// A connection with its handshake done. Nothing of a message is on it yet. The error is for people.
    pub async fn connect(&self, target: &Target, login: &Login, limit: Duration) -> Result<Client, String> {
        let addresses = target.addresses.as_ref().map_err(Clone::clone)?;
        let mut last = format!("{} has no address", shown(&target.origin));
        for (address, share) in addresses.iter().zip(shares(limit, addresses.len())) {
            let options = self.options(&target.origin, login, limit)?;
            let connecting = options.connect(format!("nats://{address}"));
            match tokio::time::timeout_at(share, connecting).await {
                Ok(Ok(client)) => return Ok(client),
                Ok(Err(error)) => last = format!("{} {}", shown(&target.origin), why(error.kind())),
                Err(_) => last = format!("{} did not answer in time", shown(&target.origin)),
            }
        }
        Err(last)
    }

    fn options(&self, origin: &Origin, login: &Login, limit: Duration) -> Result<ConnectOptions, String> {
        let auth = login.auth();
        let used = AtomicBool::new(false);
        let once = move |_| {
            let second = used.swap(true, Ordering::AcqRel);
            std::future::ready(if second { Err(AuthError::new("a connection is made once")) } else { Ok(auth.clone()) })
        };
        Ok(ConnectOptions::with_auth_callback(once)
            .name("deedbox")
            .max_reconnects(1)
            .ignore_discovered_servers()
            .retain_servers_order()
            .connection_timeout(limit)
            .tls_client_config(self.tls(origin)?)
            .require_tls(origin.scheme == "tls"))
    }

    /// The client library is given a bare address, so the name that the certificate must have is pinned here.
    fn tls(&self, origin: &Origin) -> Result<ClientConfig, String> {
        let host = origin.host.to_string();
        let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let failed = |why: String| format!("{}: TLS cannot be set up: {why}", shown(origin));
        let name = ServerName::try_from(bare).map_err(|e| failed(e.to_string()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(self.roots.clone(), provider.clone());
        let verifier = Arc::new(Pinned { verifier: verifier.build().map_err(|e| failed(e.to_string()))?, name });
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let tls = versions.map_err(|e| failed(e.to_string()))?.dangerous().with_custom_certificate_verifier(verifier);
        Ok(tls.with_no_client_auth())
    }
}

impl Login {
    fn auth(&self) -> Auth {
        let mut auth = Auth::new();
        let secret = self.secret.as_ref().map(|secret| secret.expose().to_owned());
        match &self.user {
            Some(user) => (auth.username, auth.password) = (Some(user.clone()), secret),
            None => auth.token = secret,
        }
        auth
    }
}

/// What the stream that takes a subject says about itself.
pub async fn window(client: &Client, subject: &str, limit: Duration) -> Result<Window, NoWindow> {
    let mut context = jetstream::new(client.clone());
    context.set_timeout(limit);
    let silent = |what: &str| NoWindow::Unreachable(format!("the server did not say {what}"));
    let name = context.stream_by_subject(subject).await.map_err(|error| match error.kind() {
        GetStreamByNameErrorKind::NotFound => NoWindow::NoStream("no stream takes this subject".to_owned()),
        GetStreamByNameErrorKind::InvalidSubject => NoWindow::NoStream("this is not a subject".to_owned()),
        _ => silent("which stream takes this subject"),
    })?;
    let stream = context.get_stream(name).await.map_err(|error: GetStreamError| match error.kind() {
        GetStreamErrorKind::JetStream(error) => NoWindow::Unreachable(error.to_string()),
        _ => silent("how long the stream remembers message ids"),
    })?;
    let config = &stream.cached_info().config;
    if config.no_ack {
        let why = format!("the stream {} gives no acknowledgements: set no_ack to false", config.name);
        return Err(NoWindow::NoStream(why));
    }
    let max_payload = client.server_info().max_payload;
    Ok(Window { remembers: config.duplicate_window, max_payload })
}

/// False once the connection broke: what is handed to it now will not be sent.
pub fn is_open(client: &Client) -> bool {
    client.connection_state() == State::Connected
}

fn why(kind: ConnectErrorKind) -> &'static str {
    match kind {
        ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => "refused the credential",
        ConnectErrorKind::TimedOut => "did not answer in time",
        ConnectErrorKind::Tls => "cannot be reached: TLS failed",
        _ => "cannot be reached",
    }
}

fn shown(origin: &Origin) -> String {
    format!("{}://{}:{}", origin.scheme, origin.host, origin.port)
}

/// Checks a certificate as usual, but against a name of our choice.
#[derive(Debug)]
struct Pinned {
    verifier: Arc<WebPkiServerVerifier>,
    name: ServerName<'static>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verifier.verify_server_cert(end_entity, intermediates, &self.name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verifier.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
