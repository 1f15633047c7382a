//! How long a connection waits for its client: for a request to begin, for its head to arrive whole, for the answer to be
//! taken. The HTTP library knows one time for the first two and none for the third. Bodies are waited for where they are read.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use uuid::Uuid;

use super::error::Problem;

/// The requests of one connection, one after another.
#[derive(Debug, Default)]
pub struct Turns {
    begun: AtomicUsize,
    over: AtomicUsize,
}

/// A request under way, from the end of its head to the end of its answer.
#[derive(Debug)]
pub struct Turn(Arc<Turns>);

/// The body of an answer; with it the turn ends.
#[derive(Debug)]
pub struct Answering {
    body: Body,
    _turn: Turn,
}

impl Turns {
    pub fn begin(self: &Arc<Self>) -> Turn {
        self.begun.fetch_add(1, Ordering::AcqRel);
        Turn(self.clone())
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::Acquire)
    }

    fn is_under_way(&self) -> bool {
        self.begun() != self.over.load(Ordering::Acquire)
    }
}

impl Turn {
    pub fn answer(self, body: Body) -> Answering {
        Answering { body, _turn: self }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.over.fetch_add(1, Ordering::AcqRel);
    }
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Waits so long for a head, and so long for the next one to begin. A head that is late is answered with 408 and an error;
/// silence between two requests ends like a client that hangs up.
#[derive(Debug)]
pub struct ForHeads<IO> {
    io: IO,
    turns: Arc<Turns>,
    head: Duration,
    idle: Duration,
    wait: Option<Wait>,
    /// Of an answer some may still be on its way through the buffers.
    unflushed: bool,
}

#[derive(Debug)]
struct Wait {
    /// The requests that had begun before.
    after: usize,
    /// Some of the head has come.
    has_begun: bool,
    end: Pin<Box<Sleep>>,
}

impl Wait {
    fn new(after: usize, has_begun: bool, time: Duration) -> Self {
        Self { after, has_begun, end: Box::pin(tokio::time::sleep(time)) }
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> ForHeads<IO> {
    pub fn new(io: IO, turns: Arc<Turns>, head: Duration, idle: Duration) -> Self {
        let wait = Some(Wait::new(turns.begun(), false, head));
        Self { io, turns, head, idle, wait, unflushed: false }
    }

    /// Bytes have come. During a request they are of its body.
    fn heard(&mut self) {
        if self.turns.is_under_way() {
            return;
        }
        let after = self.turns.begun();
        match &mut self.wait {
            // The time of a new connection's first head counts from the connection.
            Some(wait) if wait.after == after && (wait.has_begun || after == 0) => wait.has_begun = true,
            _ => self.wait = Some(Wait::new(after, true, self.head)),
        }
    }

    /// Nothing has come: what the reader is told when that has been so for too long.
    fn silent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.turns.is_under_way() {
            self.wait = None;
            return Poll::Pending;
        }
        let after = self.turns.begun();
        let wait = self.wait.take().filter(|wait| wait.after == after);
        let wait = self.wait.insert(wait.unwrap_or_else(|| Wait::new(after, false, self.idle)));
        match wait.end.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) if wait.has_begun => {
                self.answer_late_head(cx);
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
            Poll::Ready(()) => Poll::Ready(Ok(())),
        }
    }

    /// No request came of it, so there is nobody else to answer. It finds room or is not read; where the answer before it is
    /// not out yet, it would get into that, and nothing is said.
    fn answer_late_head(&mut self, cx: &mut Context<'_>) {
        if self.unflushed {
            return;
        }
        let answer = Problem::head_timeout().to_bytes(Uuid::new_v4());
        let mut io = Pin::new(&mut self.io);
        if let Poll::Ready(Ok(_)) = io.as_mut().poll_write(cx, &answer) {
            let _ = io.poll_flush(cx);
        }
    }

    /// The client takes its answer: the time for its next request has not begun.
    fn wrote(&mut self) {
        self.wait.take_if(|wait| !wait.has_begun && wait.after > 0);
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for ForHeads<IO> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        match Pin::new(&mut this.io).poll_read(cx, buf) {
            Poll::Pending => this.silent(cx),
            Poll::Ready(outcome) => {
                if buf.filled().len() > before {
                    this.heard();
                }
                Poll::Ready(outcome)
            }
        }
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ForHeads<IO> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        // Also when it finds no room now: whoever writes has more.
        this.unflushed |= !buf.is_empty();
        let outcome = Pin::new(&mut this.io).poll_write(cx, buf);
        if outcome.is_ready() {
            this.wrote();
        }
        outcome
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.unflushed |= bufs.iter().any(|buf| !buf.is_empty());
        let outcome = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        if outcome.is_ready() {
            this.wrote();
        }
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = Pin::new(&mut this.io).poll_flush(cx);
        if matches!(outcome, Poll::Ready(Ok(()))) {
            this.unflushed = false;
        }
        outcome
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

/// Waits so long for the client to take anything of what is written. It has to be the innermost: only the socket knows.
#[derive(Debug)]
pub struct ForReaders<IO> {
    io: IO,
    limit: Duration,
    end: Option<Pin<Box<Sleep>>>,
}

impl<IO> ForReaders<IO> {
    pub fn new(io: IO, limit: Duration) -> Self {
        Self { io, limit, end: None }
    }

    fn bounded(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.end = None;
            return written;
        }
        let end = self.end.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.limit)));
        end.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for ForReaders<IO> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_read(cx, buf)
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for ForReaders<IO> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(cx, buf);
        this.bounded(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.bounded(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// What a client reads that asks for something, gets an answer, and begins another request that does not go on.
    async fn told(flushed: bool) -> String {
        let (mut client, server) = tokio::io::duplex(4096);
        let soon = Duration::from_millis(1);
        let mut io = ForHeads::new(server, Arc::default(), soon, Duration::from_secs(60));
        io.write_all(b"an answer").await.unwrap();
        if flushed {
            io.flush().await.unwrap();
        }
        client.write_all(b"GET").await.unwrap();
        let mut head = [0; 3];
        io.read_exact(&mut head).await.unwrap();
        assert_eq!(io.read(&mut head).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        drop(io);
        let mut told = String::new();
        client.read_to_string(&mut told).await.unwrap();
        told
    }

    #[tokio::test]
    async fn a_late_head_is_not_answered_into_an_answer_that_is_on_its_way() {
        assert!(told(true).await.starts_with("an answerHTTP/1.1 408"));
        assert_eq!(told(false).await, "an answer");
    }
}
