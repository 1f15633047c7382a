//! The test's side of a running provider: scripts it, waits for it, reads its books over HTTP. One connection per call.
//! It must never be used to send operations: those go through what is being tested.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::behaviour::Behaviour;
use crate::record::{Arrival, Entry};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the provider did not see {wanted} within {timeout:?}; it has {counts}")]
    TimedOut { wanted: String, timeout: Duration, counts: String },
    #[error("the provider refused {path} with {status}: {body}")]
    Refused { path: String, status: u16, body: String },
    #[error("the provider's answer cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the provider's address cannot be used: {0}")]
    Address(#[from] hyper::http::Error),
    #[error("the provider cannot be reached, is it still running? {0}")]
    Io(#[from] std::io::Error),
    #[error("the provider hung up: {0}")]
    Http(#[from] hyper::Error),
}

/// A running provider.
#[derive(Debug, Clone, Copy)]
pub struct Books {
    pub address: SocketAddr,
}

#[derive(Deserialize)]
struct Both {
    arrivals: Vec<Arrival>,
    applied: Vec<Entry>,
}

impl Books {
    /// Appends behaviours to the queue.
    pub async fn script(&self, behaviours: &[Behaviour]) -> Result<(), Error> {
        let body = serde_json::to_vec(behaviours)?;
        self.call(Method::POST, "/_control/script", body).await.map(drop)
    }

    /// Ends every hold of a request that has arrived; later arrivals hold again.
    pub async fn release(&self) -> Result<(), Error> {
        self.call(Method::POST, "/_control/release", Vec::new()).await.map(drop)
    }

    /// Waits until at least `count` requests were ever received whole.
    pub async fn wait_for_arrivals(&self, count: u64, timeout: Duration) -> Result<(), Error> {
        self.wait(&format!("arrivals={count}"), timeout).await
    }

    /// Waits until at least `count` applications were ever booked.
    pub async fn wait_for_applied(&self, count: u64, timeout: Duration) -> Result<(), Error> {
        self.wait(&format!("applied={count}"), timeout).await
    }

    /// Marks a key as used by a request that came from elsewhere; `id` is the object which that request made.
    pub async fn use_key(&self, key: &str, id: &str) -> Result<(), Error> {
        let body = serde_json::to_vec(&json!({"key": key, "id": id}))?;
        self.call(Method::POST, "/_control/use_key", body).await.map(drop)
    }

    /// Makes the provider forget all keys that are not in flight, as if their retention had passed.
    pub async fn forget(&self) -> Result<(), Error> {
        self.call(Method::POST, "/_control/forget", Vec::new()).await.map(drop)
    }

    /// All tables, counters, topics and objects, as they are now.
    pub async fn world(&self) -> Result<Value, Error> {
        let body = self.call(Method::GET, "/_control/world", Vec::new()).await?;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Everything that ever arrived, oldest first.
    pub async fn arrivals(&self) -> Result<Vec<Arrival>, Error> {
        Ok(self.books().await?.arrivals)
    }

    /// Everything that was ever applied, oldest first.
    pub async fn applied(&self) -> Result<Vec<Entry>, Error> {
        Ok(self.books().await?.applied)
    }

    async fn books(&self) -> Result<Both, Error> {
        let body = self.call(Method::GET, "/_control/books", Vec::new()).await?;
        Ok(serde_json::from_slice(&body)?)
    }

    async fn wait(&self, wanted: &str, timeout: Duration) -> Result<(), Error> {
        let path = format!("/_control/wait?{wanted}&ms={}", timeout.as_millis());
        match self.call(Method::GET, &path, Vec::new()).await {
            Err(Error::Refused { status: 408, body, .. }) => {
                Err(Error::TimedOut { wanted: wanted.to_owned(), timeout, counts: body })
            }
            other => other.map(drop),
        }
    }

    async fn call(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Bytes, Error> {
        let stream = TcpStream::connect(self.address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.address.to_string())
            .body(Full::new(Bytes::from(body)))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        driver.abort();
        if status == StatusCode::OK {
            return Ok(body);
        }
        let body = String::from_utf8_lossy(&body).into_owned();
        Err(Error::Refused { path: path.to_owned(), status: status.as_u16(), body })
    }
}
