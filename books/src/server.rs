//! Listening, connections and shutdown. A connection ends when its client hangs up, when a behaviour cuts it, or with the server;
//! an operation that was begun is always brought to its end. This module must never decide what is applied.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request as Http, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::convention::{Convention, Unusable};
use crate::reply::{Body, Cut, Reply};
use crate::request::Request;
use crate::state::State;
use crate::{control, operation};

/// The largest request body in bytes; a longer one is cut, unread and unbooked.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// How long operations may take to end after the connections were closed.
const DRAIN: Duration = Duration::from_secs(5);
/// After a failed accept, so that a lack of file descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("another provider keeps its books in {dir}; stop it or choose another directory")]
    InUse { dir: PathBuf },
    #[error("cannot keep books: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Convention(#[from] Unusable),
}

/// How the provider behaves throughout.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Ignore all keys: every arrival applies.
    pub keyless: bool,
    /// What is promised about keys; [`Convention::default`] when absent.
    pub convention: Option<Convention>,
}

/// The server.
#[derive(Debug)]
pub struct Provider;

impl Provider {
    /// Serves until `shutdown` is ready, with the books in `dir` (created if missing, continued if not). Returns once every
    /// operation that was begun has ended and the books are closed, so the same directory can be served again at once.
    ///
    /// Fails when the books cannot be opened or the convention cannot be used.
    pub async fn serve(
        listener: TcpListener,
        dir: PathBuf,
        options: Options,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let opened = tokio::task::spawn_blocking(move || State::open(&dir, options)).await;
        let server = Server { state: Arc::new(opened.map_err(io::Error::other)??), operations: TaskTracker::new() };
        let mut connections = JoinSet::new();
        tokio::pin!(shutdown);
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => { connections.spawn(server.clone().connection(stream)); }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = connections.join_next() => {}
            }
        }
        connections.shutdown().await;
        server.operations.close();
        if tokio::time::timeout(DRAIN, server.operations.wait()).await.is_err() {
            tracing::warn!("operations were still running when the provider stopped");
        }
        Ok(())
    }
}

#[derive(Clone)]
struct Server {
    state: Arc<State>,
    operations: TaskTracker,
}

impl Server {
    async fn connection(self, stream: TcpStream) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "the connection keeps its delay");
        }
        let service = service_fn(|request| self.answer(request));
        let served =
            http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
        if let Err(error) = served {
            tracing::debug!(%error, "a connection ended early");
        }
    }

    async fn answer(&self, request: Http<Incoming>) -> Result<Response<Body>, Cut> {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await.map_err(|_| Cut)?.to_bytes();
        let request = Request::new(parts, body, self.state.convention());
        if control::is_control(&request.path) {
            return Reply::Whole(control::run(&self.state, &request).await).into_response();
        }
        self.operate(request).await.into_response()
    }

    /// Hyper drops this future when the client hangs up: the guard then tells the operation, which itself goes on.
    async fn operate(&self, request: Request) -> Reply {
        let gone = CancellationToken::new();
        let _guard = gone.clone().drop_guard();
        let operation = self.operations.spawn(operation::run(Arc::clone(&self.state), request, gone));
        match operation.await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => {
                tracing::error!(%error, "the books could not be written; the request goes without an answer");
                Reply::Cut
            }
            Err(error) => {
                tracing::error!(%error, "an operation failed; the request goes without an answer");
                Reply::Cut
            }
        }
    }
}
