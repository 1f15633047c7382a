//! Providers that are none: one gives the bytes it is told to give, whatever is asked, and one takes no connection.

use std::any::Any;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

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

/// Gives the same text to everyone who asks, for as long as the test lasts.
pub async fn serve_text(text: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}", text.len());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move {
                let mut request = vec![0; 64 << 10];
                let mut read = 0;
                while !request[..read].windows(4).any(|window| window == b"\r\n\r\n") {
                    match stream.read(&mut request[read..]).await {
                        Ok(more @ 1..) => read += more,
                        _ => return,
                    }
                }
                // A client that is gone reads nothing.
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    address
}

/// A listener whose queue is full, and what keeps it so: who connects to it gets no answer at all.
pub async fn full_listener(address: &str) -> (SocketAddr, Vec<Box<dyn Any>>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(address.parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held: Vec<Box<dyn Any>> = vec![Box::new(listener)];
    for _ in 0..16 {
        match tokio::time::timeout(Duration::from_millis(100), TcpStream::connect(address)).await {
            Ok(stream) => held.push(Box::new(stream.unwrap())),
            Err(_) => return (address, held),
        }
    }
    panic!("the queue of a listener never fills");
}
