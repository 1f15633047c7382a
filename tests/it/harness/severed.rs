//! A way to a server that is cut once, after the server has got what was on its way to it and before its answer comes
//! back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Lets everything through, but for the answers to the first requests that contain a word: their connections are cut as
/// soon as an answer comes.
#[derive(Debug)]
pub struct Severed {
    pub address: SocketAddr,
    accepting: tokio::task::JoinHandle<()>,
}

impl Severed {
    pub async fn start(server: String, word: &'static str, times: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let left = Arc::new(AtomicUsize::new(times));
        let accepting = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(carry(client, server, word, left.clone()));
            }
        });
        Self { address, accepting }
    }
}

impl Drop for Severed {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// Ends when either side does, or when an answer is to be lost. Nothing that fails here can be told to anybody.
async fn carry(mut client: TcpStream, mut server: TcpStream, word: &str, left: Arc<AtomicUsize>) {
    let (mut up, mut down) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    let mut losing = false;
    loop {
        tokio::select! {
            read = client.read(&mut up) => {
                let Ok(bytes @ 1..) = read else { return };
                if up[..bytes].windows(word.len()).any(|window| window == word.as_bytes()) {
                    losing = left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
                }
                if server.write_all(&up[..bytes]).await.is_err() {
                    return;
                }
            }
            read = server.read(&mut down) => {
                let Ok(bytes @ 1..) = read else { return };
                if losing || client.write_all(&down[..bytes]).await.is_err() {
                    return;
                }
            }
        }
    }
}
