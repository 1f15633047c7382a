//! A client that writes its bytes as it likes, and sees what comes back as it comes.

use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

const ANSWERED_WITHIN: Duration = Duration::from_secs(20);

/// One connection.
pub struct Wire<IO = TcpStream> {
    pub io: IO,
    received: Vec<u8>,
}

/// One answer.
#[derive(Debug)]
pub struct Said {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Wire {
    pub async fn open(origin: &str) -> Self {
        Self::over(TcpStream::connect(address(origin)).await.unwrap())
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Wire<IO> {
    pub fn over(io: IO) -> Self {
        Self { io, received: Vec::new() }
    }

    /// Writes it all, or as much as the server takes.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.io.write_all(bytes.as_ref()).await.is_ok() && self.io.flush().await.is_ok()
    }

    /// Asks for a path, with the headers of these lines.
    pub async fn get(&mut self, path: &str, headers: &str) -> Said {
        assert!(self.send(format!("GET {path} HTTP/1.1\r\nhost: x\r\n{headers}\r\n")).await);
        self.answer().await
    }

    /// The next answer, which has a length.
    pub async fn answer(&mut self) -> Said {
        let said = tokio::time::timeout(ANSWERED_WITHIN, self.next()).await.unwrap();
        said.unwrap_or_else(|| panic!("no whole answer came: {:?}", String::from_utf8_lossy(&self.received)))
    }

    async fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(said) = self.taken() {
                return Some(said);
            }
            let mut part = [0; 16 << 10];
            match self.io.read(&mut part).await {
                Ok(count @ 1..) => self.received.extend_from_slice(&part[..count]),
                _ => return None,
            }
        }
    }

    /// A whole answer of what was received, taken from it.
    fn taken(&mut self) -> Option<Said> {
        let end = self.received.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let head = String::from_utf8(self.received[..end].to_vec()).unwrap().to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.trim().parse().unwrap());
        let body = self.received.get(end..end + length)?;
        let body = String::from_utf8(body.to_vec()).unwrap();
        self.received.drain(..end + length);
        Some(Said { status: head[9..12].parse().unwrap(), head, body })
    }

    /// What comes until the server hangs up.
    pub async fn rest(mut self) -> Vec<u8> {
        let reading = async {
            let mut part = vec![0; 64 << 10];
            while let Ok(count @ 1..) = self.io.read(&mut part).await {
                self.received.extend_from_slice(&part[..count]);
            }
        };
        tokio::time::timeout(ANSWERED_WITHIN, reading).await.unwrap();
        self.received
    }
}

impl Said {
    /// The message of a refusal with this status and this code.
    #[track_caller]
    pub fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{self:?}");
        let body: Value = serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {self:?}"));
        assert_eq!(body["error"], code, "{self:?}");
        for header in ["content-type: application/json", "cache-control: no-store", "x-request-id: "] {
            assert!(self.head.contains(header), "{header}: {self:?}");
        }
        body["message"].as_str().unwrap().to_owned()
    }
}

/// The address of a server's origin.
pub fn address(origin: &str) -> &str {
    origin.split_once("://").unwrap().1
}
