//! The HTTP client of the commands. An answer of the API is given on as it is; the error envelope becomes a readable error, and a
//! server that does not answer becomes exit code 3.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use http_body_util::StreamBody;
use hyper::body::Frame;
use reqwest::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde_json::Value;
use tokio_rustls::rustls::{self, RootCertStore};
use url::Url;

use super::failure::Failure;
use super::settings::{ADMIN_TOKEN, Remote, TOKEN, is_loopback};
use super::trust;

const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Longer than the longest `?wait` and than any component takes to compile.
const ANSWER_WITHIN: Duration = Duration::from_secs(300);
const UPLOAD_CHUNK: usize = 256 << 10;
/// A stream that says nothing for so long, not even that it is alive, is given up.
const SILENCE: Duration = Duration::from_secs(90);
/// A stream may go on for a year.
const STREAM_WITHIN: Duration = Duration::from_secs(366 * 86_400);

/// A server and the token for it.
#[derive(Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    address: Url,
    token: String,
}

impl Client {
    /// Speaks as a tenant.
    pub(super) fn tenant(remote: &Remote) -> anyhow::Result<Self> {
        let address = remote.address()?;
        let token = remote.token(&address, TOKEN)?;
        Self::trusting(address, token, remote.ca_cert.as_deref())
    }

    /// Speaks as the one who manages tenants.
    pub(super) fn admin(remote: &Remote) -> anyhow::Result<Self> {
        let address = remote.address()?;
        let token = remote.token(&address, ADMIN_TOKEN)?;
        Self::trusting(address, token, remote.ca_cert.as_deref())
    }

    pub(super) fn new(address: Url, token: String) -> anyhow::Result<Self> {
        Self::trusting(address, token, None)
    }

    fn trusting(address: Url, token: String, ca_cert: Option<&Path>) -> anyhow::Result<Self> {
        let roots = if address.scheme() == "https" { trust::roots(ca_cert)? } else { RootCertStore::empty() };
        let builder = trust::client(roots)?
            .connect_timeout(CONNECT_WITHIN)
            .timeout(ANSWER_WITHIN)
            .redirect(reqwest::redirect::Policy::none());
        let builder = if is_loopback(&address) { builder.no_proxy() } else { builder };
        let http = builder.build().context("starting the HTTP client")?;
        Ok(Self { http, address, token })
    }

    /// The answer's JSON. `path` is taken apart at its segments, so that a name with a slash stays one name.
    pub(super) async fn get(&self, path: &[&str], query: &[(&str, String)]) -> anyhow::Result<Value> {
        self.ask(self.request(Method::GET, path)?.query(query)).await
    }

    pub(super) async fn post(&self, path: &[&str], body: &impl Serialize) -> anyhow::Result<Value> {
        self.ask(self.request(Method::POST, path)?.json(body)).await
    }

    /// The same with a query, and under a request key if one is given.
    pub(super) async fn post_under(
        &self,
        path: &[&str],
        query: &[(&str, &str)],
        key: Option<&str>,
        body: &impl Serialize,
    ) -> anyhow::Result<Value> {
        let request = self.request(Method::POST, path)?.query(query).json(body);
        let Some(key) = key else { return self.ask(request).await };
        let wrong = |_| Failure::Usage("--idempotency-key cannot go in a header: use visible ASCII".to_owned());
        let mut key = HeaderValue::from_str(key).map_err(wrong)?;
        key.set_sensitive(true);
        self.ask(request.header("idempotency-key", key)).await
    }

    pub(super) async fn put(&self, path: &[&str], body: &Value) -> anyhow::Result<Value> {
        self.ask(self.request(Method::PUT, path)?.json(body)).await
    }

    pub(super) async fn delete(&self, path: &[&str]) -> anyhow::Result<Value> {
        self.ask(self.request(Method::DELETE, path)?).await
    }

    /// Uploads a component with its signature, if it has one, telling `progress` how many bytes were handed to the network so far.
    pub(super) async fn upload(
        &self,
        component: Bytes,
        signature: Option<&str>,
        progress: impl Fn(usize) + Send + Sync + 'static,
    ) -> anyhow::Result<Value> {
        let total = component.len();
        let chunks = (0..total).step_by(UPLOAD_CHUNK).map(move |from| {
            let chunk = component.slice(from..total.min(from + UPLOAD_CHUNK));
            progress(from + chunk.len());
            Ok::<_, std::convert::Infallible>(Frame::data(chunk))
        });
        let body = reqwest::Body::wrap(StreamBody::new(futures_util::stream::iter(chunks)));
        let signature: Vec<_> = signature.into_iter().map(|signature| ("signature", signature)).collect();
        let request = self.request(Method::POST, &["v1", "modules"])?.query(&signature);
        self.ask(request.header(CONTENT_TYPE, "application/wasm").header(CONTENT_LENGTH, total).body(body)).await
    }

    /// Opens a stream of server-sent events behind the last one that was seen; none when the server says that nothing will
    /// follow.
    pub(super) async fn follow(
        &self,
        path: &[&str],
        query: &[(&str, String)],
        last_seen: Option<&str>,
    ) -> anyhow::Result<Option<Incoming>> {
        let request = self.request(Method::GET, path)?.query(query).timeout(STREAM_WITHIN);
        let request = request.header(ACCEPT, "text/event-stream");
        let request = last_seen.into_iter().fold(request, |request, id| request.header("last-event-id", id));
        let answer = tokio::time::timeout(SILENCE, request.send()).await.map_err(|_| self.silent())?;
        let answer = answer.map_err(|error| self.unreachable(&error))?;
        match answer.status().as_u16() {
            200 => Ok(Some(Incoming(answer))),
            _ => self.read(answer).await.map(|_| None),
        }
    }

    fn request(&self, method: Method, path: &[&str]) -> anyhow::Result<RequestBuilder> {
        Ok(self.http.request(method, at(&self.address, path)?).bearer_auth(&self.token))
    }

    async fn ask(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        self.read(answer).await
    }

    async fn read(&self, answer: Response) -> anyhow::Result<Value> {
        let succeeded = answer.status().is_success();
        let status = answer.status().as_u16();
        let body = self.body(answer).await?;
        match serde_json::from_slice(&body) {
            _ if succeeded && body.is_empty() => Ok(Value::Null),
            Ok(value) if succeeded => Ok(value),
            Ok(Value::Object(envelope)) => Err(refused(status, &envelope).into()),
            _ => Err(anyhow::anyhow!("{} answered {status} and no JSON: is it a Deedbox server?", self.address)),
        }
    }

    async fn body(&self, answer: Response) -> anyhow::Result<Bytes> {
        answer.bytes().await.map_err(|error| self.unreachable(&error).into())
    }

    fn silent(&self) -> Failure {
        Failure::Unreachable(format!("the server at {} did not answer in time", self.address))
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        let address = &self.address;
        Failure::Unreachable(if let Some(fault) = trust::fault(error) {
            untrusted(address, fault)
        } else if error.is_connect() {
            format!(
                "no server answers at {address}: start one with `deedbox up`, or name another with --url or DEEDBOX_URL"
            )
        } else if error.is_timeout() {
            format!(
                "the server at {address} did not answer in time: what was asked for may have been done, look before asking again"
            )
        } else {
            format!("the connection to {address} broke ({}): what was asked for may have been done", root_cause(error))
        })
    }
}

fn untrusted(address: &Url, fault: &rustls::Error) -> String {
    match fault {
        rustls::Error::InvalidCertificate(_) => {
            format!(
                "the certificate of {address} is not trusted ({fault}): name that of its authority with --ca-cert or DEEDBOX_CA_CERT"
            )
        }
        rustls::Error::InvalidMessage(_) => format!("{address} does not speak TLS: is it an http:// address?"),
        _ => format!("TLS with {address} failed: {fault}"),
    }
}

/// A stream as it comes from the network.
pub(super) struct Incoming(Response);

impl Incoming {
    /// The next piece; none at the end, however it ended.
    pub(super) async fn piece(&mut self) -> Option<Bytes> {
        tokio::time::timeout(SILENCE, self.0.chunk()).await.ok()?.ok()?
    }
}

fn at(address: &Url, path: &[&str]) -> anyhow::Result<Url> {
    let mut url = address.clone();
    let mut segments =
        url.path_segments_mut().map_err(|()| Failure::Usage(format!("--url {address} cannot have a path")))?;
    segments.pop_if_empty().extend(path);
    drop(segments);
    Ok(url)
}

fn refused(status: u16, envelope: &serde_json::Map<String, Value>) -> Failure {
    let text = |name: &str| envelope.get(name).and_then(Value::as_str).map(super::output::plain);
    Failure::Refused {
        code: text("error").unwrap_or_else(|| status.to_string()),
        message: text("message").unwrap_or_else(|| format!("the server answered {status} without a message")),
        details: envelope.get("details").cloned().unwrap_or(Value::Null),
    }
}

fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Answers one request; gives what was received.
    async fn answering(answer: &'static str) -> (Client, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Url::parse(&format!("http://{}/base/", listener.local_addr().unwrap())).unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut received = vec![0; 4096];
            let count = stream.read(&mut received).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&received[..count]).into_owned()
        });
        (Client::new(address, "secret".to_owned()).unwrap(), server)
    }

    fn failure(error: &anyhow::Error) -> &Failure {
        error.downcast_ref().unwrap()
    }

    #[tokio::test]
    async fn a_name_is_one_segment_and_the_token_goes_along() {
        let (client, server) = answering("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"a\": 1}").await;
        let answer = client.get(&["v1", "runs", "a/b c"], &[("wait", "5".to_owned())]).await.unwrap();
        assert_eq!(answer, serde_json::json!({ "a": 1 }));
        let received = server.await.unwrap().to_lowercase();
        assert!(received.starts_with("get /base/v1/runs/a%2fb%20c?wait=5 "), "{received}");
        assert!(received.contains("authorization: bearer secret"), "{received}");
    }

    #[tokio::test]
    async fn a_key_goes_in_a_header_and_never_in_an_error() {
        let (client, server) = answering("HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}").await;
        let key = "evt_0123456789abcdefghij";
        let wrong = client.post_under(&["v1"], &[], Some("canary\n"), &1).await.unwrap_err();
        assert!(matches!(failure(&wrong), Failure::Usage(words) if !words.contains("canary")), "{wrong}");
        client.post_under(&["v1", "x"], &[("resolves", "a b")], Some(key), &[1]).await.unwrap();
        let received = server.await.unwrap().to_lowercase();
        assert!(received.starts_with("post /base/v1/x?resolves=a+b "), "{received}");
        assert!(received.contains(&format!("idempotency-key: {key}\r\n")), "{received}");
        assert!(received.contains("content-type: application/json"), "{received}");
    }

    #[tokio::test]
    async fn the_envelope_becomes_a_readable_error() {
        let answer = "HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n{\"error\":\"not_found\",\"message\":\"no such run\",\"details\":{\"x\":1}}";
        let (client, _server) = answering(answer).await;
        let error = client.get(&["v1", "runs", "1"], &[]).await.unwrap_err();
        let Failure::Refused { code, message, details } = failure(&error) else { panic!("{error}") };
        assert_eq!(
            (code.as_str(), message.as_str(), &details["x"]),
            ("not_found", "no such run", &serde_json::json!(1))
        );
    }

    #[tokio::test]
    async fn an_answer_that_is_no_json_is_not_taken_for_one() {
        let (client, _server) = answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await;
        assert!(client.get(&["v1"], &[]).await.unwrap_err().to_string().contains("no JSON"));
    }

    #[tokio::test]
    async fn a_closed_port_is_an_unreachable_server() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Url::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        drop(listener);
        let client = Client::new(address, String::new()).unwrap();
        let error = client.get(&["v1"], &[]).await.unwrap_err();
        assert!(matches!(failure(&error), Failure::Unreachable(_)), "{error}");
    }

    #[tokio::test]
    async fn an_upload_has_a_length_and_tells_its_progress() {
        let (client, server) =
            answering("HTTP/1.1 201 Created\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}").await;
        let sent = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&sent);
        let progress = move |bytes| seen.store(bytes, Ordering::Relaxed);
        client.upload(Bytes::from_static(b"\0asm"), Some("fb"), progress).await.unwrap();
        assert_eq!(sent.load(Ordering::Relaxed), 4);
        let received = server.await.unwrap().to_lowercase();
        assert!(received.contains("content-length: 4") && received.contains("application/wasm"), "{received}");
        assert!(received.starts_with("post /base/v1/modules?signature=fb "), "{received}");
    }
}
