//! The connections of the API: taken one after another up to a limit, each served in a task of its own, and ended in good order
//! at the shutdown. What comes over them is the router's business, and nothing that goes wrong with one may end the others.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::OptionFuture;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::patience::{ForHeads, ForReaders, Turns};
use super::tls::Tls;
use super::{Api, limits, router};
use crate::config::{ApiConfig, ms};

/// How long open requests may go on after the shutdown began.
const DRAIN: Duration = Duration::from_secs(10);
/// After a connection could not be taken for want of something, such as file descriptors.
const PAUSE: Duration = Duration::from_secs(1);

/// Answers requests until `shutdown` is done. Long polls end then; other requests under way have ten seconds to end. An error
/// means that the certificate of the settings cannot be used.
pub async fn serve(
    listener: TcpListener,
    api: Api,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let config = api.config.clone();
    let tls = config.api.tls.as_ref().map(Tls::open).transpose().map_err(io::Error::other)?.map(Arc::new);
    let stop = api.stop.clone();
    let ears = tokio::spawn({
        let (stop, store, wakes) = (stop.clone(), api.store.clone(), api.gateway.wakes().clone());
        async move { stop.run_until_cancelled(wakes.listen_forever(&store)).await }
    });
    let freshness = tls.clone().map(|tls| {
        let stop = stop.clone();
        tokio::spawn(async move { stop.run_until_cancelled(tls.keep_fresh()).await })
    });
    let server = Server::new(router(api), tls, &config.api, stop.clone());
    let ending = async {
        shutdown.await;
        stop.cancel();
    };
    tokio::join!(server.run(listener), ending);
    if let Err(error) = ears.await {
        tracing::error!(%error, "the listener for wake-ups failed");
    }
    if let Some(Err(error)) = OptionFuture::from(freshness).await {
        tracing::error!(%error, "looking for new certificates failed");
    }
    Ok(())
}

/// What all connections share.
struct Server {
    router: Router,
    tls: Option<Arc<Tls>>,
    http: http1::Builder,
    head: Duration,
    idle: Duration,
    write: Duration,
    places: Arc<Semaphore>,
    stop: CancellationToken,
}

impl Server {
    fn new(router: Router, tls: Option<Arc<Tls>>, config: &ApiConfig, stop: CancellationToken) -> Arc<Self> {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            // Only so that it reads between two requests: `patience` knows better.
            .header_read_timeout(ms(config.idle_ms.saturating_add(config.header_ms)))
            .max_headers(2 * limits::MOST_FIELDS)
            .max_header_size(limits::unread_head(config));
        Arc::new(Self {
            router,
            tls,
            http,
            head: ms(config.header_ms),
            idle: ms(config.idle_ms),
            write: ms(config.write_ms),
            places: Arc::new(Semaphore::new(config.max_connections as usize)),
            stop,
        })
    }

    async fn run(self: Arc<Self>, listener: TcpListener) {
        let open = TaskTracker::new();
        let cut = CancellationToken::new();
        // Whoever gives up the server gives up its connections.
        let _with_us = cut.clone().drop_guard();
        while let Some((stream, place)) = self.stop.run_until_cancelled(self.next(&listener)).await {
            let (server, cut) = (self.clone(), cut.clone());
            open.spawn(async move {
                cut.run_until_cancelled(server.talk(stream)).await;
                drop(place);
            });
        }
        drop(listener);
        open.close();
        if tokio::time::timeout(DRAIN, open.wait()).await.is_err() {
            tracing::warn!("some requests were still under way at the end of the shutdown");
            cut.cancel();
            open.wait().await;
        }
    }

    /// The next connection, once there is a place for it. Those that come meanwhile wait in the system's queue.
    async fn next(&self, listener: &TcpListener) -> (TcpStream, Option<OwnedSemaphorePermit>) {
        // The semaphore is never closed.
        let place = self.places.clone().acquire_owned().await.ok();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return (stream, place),
                Err(error) if concerns_one(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken for a moment; if it goes on, raise `ulimit -n`");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn talk(&self, stream: TcpStream) {
        tune(&stream, self.write);
        let stream = ForReaders::new(stream, self.write);
        let Some(tls) = &self.tls else { return self.answer(stream).await };
        let handshake = tokio::time::timeout(self.head, tls.acceptor().accept(stream));
        match self.stop.run_until_cancelled(handshake).await {
            Some(Ok(Ok(stream))) => self.answer(stream).await,
            Some(Ok(Err(error))) => tracing::debug!(%error, "a TLS handshake failed"),
            Some(Err(_)) => tracing::debug!("a TLS handshake took too long"),
            None => {}
        }
    }

    /// Serves the requests of one connection until either side ends it.
    async fn answer<IO: AsyncRead + AsyncWrite + Unpin>(&self, io: IO) {
        let turns = Arc::new(Turns::default());
        let io = TokioIo::new(ForHeads::new(io, turns.clone(), self.head, self.idle));
        let router = TowerToHyperService::new(self.router.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let turn = turns.begin();
            let response = router.call(request);
            async move { response.await.map(|response| response.map(|body| turn.answer(body))) }
        });
        let mut connection = pin!(self.http.serve_connection(io, service));
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        }
    }
}

/// Tells the system how to treat a connection.
fn tune(stream: &TcpStream, write: Duration) {
    // Answers are small and written whole: waiting for more to send only delays them.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "a connection keeps its delay");
    }
    // What is written finds room in the system's buffers long after a client has vanished, and its stream would keep its
    // place for a quarter of an hour.
    if let Err(error) = bound_silence(stream, write) {
        tracing::debug!(%error, "a connection keeps the system's patience");
    }
}

/// Ends a connection whose other side acknowledges nothing for so long of what was sent.
#[cfg(target_os = "linux")]
fn bound_silence(stream: &TcpStream, time: Duration) -> io::Result<()> {
    let millis = u32::try_from(time.as_millis()).unwrap_or(u32::MAX);
    Ok(rustix::net::sockopt::set_tcp_user_timeout(stream, millis)?)
}

#[cfg(not(target_os = "linux"))]
fn bound_silence(_stream: &TcpStream, _time: Duration) -> io::Result<()> {
    Ok(())
}

/// A failure of the connection that was to be taken, not of taking any.
fn concerns_one(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_client_that_acknowledges_nothing_is_waited_for_as_long_as_one_that_takes_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (client, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
        let (_client, (stream, _)) = (client.unwrap(), accepted.unwrap());
        tune(&stream, Duration::from_secs(30));
        assert_eq!(rustix::net::sockopt::tcp_user_timeout(&stream).unwrap(), 30_000);
    }

    #[test]
    fn a_client_that_is_gone_stops_no_other() {
        assert!(concerns_one(&io::ErrorKind::ConnectionAborted.into()));
        // Too many open files, of the process and of the machine; no memory for it.
        for code in [24, 23, 12, 105] {
            assert!(!concerns_one(&io::Error::from_raw_os_error(code)), "{code}");
        }
    }
}
