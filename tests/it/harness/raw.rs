//! A provider that gives the bytes it is told to give, whatever is asked.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Gives one answer, whatever is asked, and is gone.
pub async fn serve_once(answer: impl Into<Vec<u8>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = answer.into();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 64 << 10];
        let mut read = 0;
        while !request[..read].windows(4).any(|window| window == b"\r\n\r\n") {
            read += stream.read(&mut request[read..]).await.unwrap();
        }
        stream.write_all(&answer).await.unwrap();
        stream.shutdown().await.ok();
    });
    address
}
