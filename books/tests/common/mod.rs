//! A provider in this process, and a client so plain that it shows what is really on the wire.
//! It must never retry or hide anything.

#![allow(dead_code, reason = "each test file uses its part")]

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use deedbox_books::{Books, Convention, Error, Options, Provider};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

pub const LONG: Duration = Duration::from_secs(20);
pub const BODY: &str = r#"{"amount_cents":4200,"customer":"c"}"#;

pub struct Running {
    pub books: Books,
    stop: oneshot::Sender<()>,
    served: JoinHandle<Result<(), Error>>,
}

impl Running {
    pub async fn keyed(dir: &Path) -> Self {
        Self::start(dir, Options::default()).await
    }

    pub async fn keyless(dir: &Path) -> Self {
        Self::start(dir, Options { keyless: true, convention: None }).await
    }

    pub async fn with(dir: &Path, convention: Convention) -> Self {
        Self::start(dir, Options { keyless: false, convention: Some(convention) }).await
    }

    async fn start(dir: &Path, options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let shutdown = async { drop(stopped.await) };
        let served = tokio::spawn(Provider::serve(listener, dir.to_owned(), options, shutdown));
        Self { books: Books { address }, stop, served }
    }

    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.served.await.unwrap().unwrap();
    }

    pub async fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Seen {
        exchange(self.books.address, &with_headers(method, path, headers, body)).await
    }

    pub async fn get(&self, path: &str) -> Seen {
        self.call("GET", path, &[], "").await
    }

    /// How many applications are booked.
    pub async fn applied(&self) -> usize {
        self.books.applied().await.unwrap().len()
    }

    pub async fn post(&self, path: &str, key: &str) -> Seen {
        exchange(self.books.address, &request("POST", path, key, BODY)).await
    }
}

/// What came back before the connection ended: possibly nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Seen {
    pub const NOTHING: Self = Self { status: 0, head: String::new(), body: String::new() };

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .find_map(|line| line.split_once(": ").filter(|(found, _)| *found == name).map(|(_, value)| value))
    }
}

/// The bytes of a request; no key when `key` is empty.
pub fn request(method: &str, path: &str, key: &str, body: &str) -> String {
    let key = if key.is_empty() { String::new() } else { format!("Idempotency-Key: {key}\r\n") };
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: provider\r\nConnection: close\r\nX-Odd: one\r\n{key}Content-Length: {length}\r\n\r\n{body}"
    )
}

pub async fn exchange(address: SocketAddr, request: &str) -> Seen {
    let mut stream = send(address, request).await;
    let mut text = Vec::new();
    tokio::time::timeout(LONG, stream.read_to_end(&mut text)).await.unwrap().unwrap();
    let text = String::from_utf8(text).unwrap();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        assert!(text.is_empty(), "half a head: {text}");
        return Seen::NOTHING;
    };
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Seen { status, head: head.to_owned(), body: body.to_owned() }
}

pub async fn send(address: SocketAddr, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The bytes of a request with these headers.
pub fn with_headers(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\nHost: provider\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    )
}

/// The program under a convention, so that it can be killed.
pub async fn program(dir: &Path, convention: &Convention) -> (Child, Books) {
    let file = dir.join("convention.json");
    std::fs::write(&file, serde_json::to_vec(convention).unwrap()).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_deedbox-books"))
        .arg("--dir")
        .arg(dir)
        .arg("--convention")
        .arg(file)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let line: serde_json::Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    let address = line["address"].as_str().unwrap().parse().unwrap();
    (program, Books { address })
}
