//! A provider that keeps every byte that it is sent, and answers as the test says. And a place where nobody may ever knock.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

type Answers = dyn Fn(&str) -> String + Send + Sync;

/// Each connection has one request.
pub struct Capture {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Capture {
    /// `answers` makes the head of an answer of a request's path; the body is always `{}`.
    pub async fn answering(answers: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let kept = seen.clone();
        let answers: Arc<Answers> = Arc::new(answers);
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, kept.clone(), answers.clone()));
            }
        });
        Self { address, seen, serving }
    }

    pub async fn ok() -> Self {
        Self::answering(|_| "200 OK\r\n".to_owned()).await
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The same place by a name.
    pub fn named(&self) -> String {
        format!("http://localhost:{}", self.address.port())
    }

    /// All requests so far, each as it came.
    pub fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut stream: TcpStream, seen: Arc<Mutex<Vec<String>>>, answers: Arc<Answers>) {
    let mut bytes = Vec::new();
    while !is_whole(&String::from_utf8_lossy(&bytes)) {
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let request = String::from_utf8_lossy(&bytes).into_owned();
    let head = answers(path(&request));
    seen.lock().unwrap().push(request);
    let answer = format!("HTTP/1.1 {head}content-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}");
    stream.write_all(answer.as_bytes()).await.ok();
    stream.shutdown().await.ok();
}

fn is_whole(request: &str) -> bool {
    let Some((_, body)) = request.split_once("\r\n\r\n") else { return false };
    if !values(request, "transfer-encoding").is_empty() {
        return body.ends_with("0\r\n\r\n");
    }
    let length = values(request, "content-length").first().map_or(0, |length| length.parse().unwrap());
    body.len() >= length
}

fn path(request: &str) -> &str {
    request.split(' ').nth(1).unwrap()
}

/// The values of all headers of this name.
pub fn values<'a>(request: &'a str, name: &str) -> Vec<&'a str> {
    let head = request.split("\r\n\r\n").next().unwrap_or_default();
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    headers.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).collect()
}

/// A listener that would notice a connection, over both families where the machine has both.
pub struct Canary(Vec<std::net::TcpListener>);

impl Canary {
    pub fn new() -> Self {
        let v4 = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let v6 = std::net::TcpListener::bind(("::1", v4.local_addr().unwrap().port())).ok();
        let all: Vec<_> = std::iter::once(v4).chain(v6).collect();
        all.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
        Self(all)
    }

    pub fn port(&self) -> u16 {
        self.0[0].local_addr().unwrap().port()
    }

    /// Nobody has knocked; and it would have been noticed.
    pub fn untouched(&self) {
        for listener in &self.0 {
            assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "the canary was reached");
            let _knock = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            listener.accept().unwrap();
        }
    }
}
