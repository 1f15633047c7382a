//! A request body that is too large to be kept in memory: read once, hashed on its way, and cut where it becomes too
//! large. It is either sent or compared with what was sent, never both.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;

use super::attempt::lock;
use crate::config::GatewayConfig;

/// Why a body cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum Broken {
    #[error("the request's body is larger than gateway.max_streamed_request_bytes, which is {0}")]
    TooLarge(u64),
    #[error("the guest did not write its request's body to the end")]
    Unfinished,
    #[error("the request's body was read already")]
    Taken,
}

/// What the guest writes, piece by piece.
pub type Pieces = UnsyncBoxBody<Bytes, Broken>;

/// A body as a guest begins to write it. `length` is its size, where the guest has told it.
pub struct Written {
    pub pieces: Pieces,
    pub length: Option<u64>,
}

impl Written {
    /// The whole body, or, where it is larger than the host buffers, what is left to be read once.
    pub(super) async fn gather(self, config: &GatewayConfig) -> Result<(Bytes, Option<Upload>), Broken> {
        let Self { mut pieces, length } = self;
        let cap = config.max_buffered_request_bytes;
        let mut start = BytesMut::new();
        while length.unwrap_or(0) <= cap as u64 && start.len() <= cap {
            match pieces.frame().await.transpose()? {
                None => return Ok((start.freeze(), None)),
                Some(frame) => start.extend_from_slice(&frame.into_data().unwrap_or_default()),
            }
        }
        let begun = Begun { start: Some(start.freeze()), rest: pieces };
        Ok((Bytes::new(), Some(Upload::new(begun.boxed_unsync(), length, config.max_streamed_request_bytes))))
    }
}

/// A body whose start was read already.
struct Begun {
    start: Option<Bytes>,
    rest: Pieces,
}

impl Body for Begun {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.start.take() {
            Some(start) if !start.is_empty() => Poll::Ready(Some(Ok(Frame::data(start)))),
            _ => Pin::new(&mut self.rest).poll_frame(cx),
        }
    }
}

/// A body that is being written. Its copies are the same body.
#[derive(Clone)]
pub struct Upload {
    pieces: Arc<Mutex<Option<Pieces>>>,
    /// Its size, where the guest has told it.
    pub length: Option<u64>,
    limit: u64,
    whole: Arc<OnceLock<[u8; 32]>>,
}

impl fmt::Debug for Upload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upload").field("length", &self.length).finish_non_exhaustive()
    }
}

impl Upload {
    pub fn new(pieces: Pieces, length: Option<u64>, limit: u64) -> Self {
        Self { pieces: Arc::new(Mutex::new(Some(pieces))), length, limit, whole: Arc::default() }
    }

    /// BLAKE3 of the body, once it was read to its end.
    pub fn digest(&self) -> Option<[u8; 32]> {
        self.whole.get().copied()
    }

    /// The body, to be read once.
    pub fn take(&self) -> Result<Hashed, Broken> {
        let pieces = lock(&self.pieces).take().ok_or(Broken::Taken)?;
        let hasher = Box::new(blake3::Hasher::new());
        let left = self.length.unwrap_or(self.limit);
        Ok(Hashed { pieces, hasher, left, exact: self.length.is_some(), limit: self.limit, whole: self.whole.clone() })
    }

    /// Reads the body to its end, keeps nothing, and gives its digest.
    pub async fn drain(&self) -> Result<[u8; 32], Broken> {
        let mut body = self.take()?;
        while let Some(piece) = body.frame().await {
            piece?;
        }
        self.digest().ok_or(Broken::Unfinished)
    }
}

/// A body on its way out.
pub struct Hashed {
    pieces: Pieces,
    hasher: Box<blake3::Hasher>,
    left: u64,
    exact: bool,
    limit: u64,
    whole: Arc<OnceLock<[u8; 32]>>,
}

impl Hashed {
    fn end(&self) {
        self.whole.get_or_init(|| *self.hasher.finalize().as_bytes());
    }
}

impl Body for Hashed {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        loop {
            let frame = match std::task::ready!(Pin::new(&mut self.pieces).poll_frame(cx)) {
                None if self.exact && self.left > 0 => return Poll::Ready(Some(Err(Broken::Unfinished))),
                None => {
                    self.end();
                    return Poll::Ready(None);
                }
                Some(frame) => frame?,
            };
            // Trailers are not sent: no profile could say what they mean.
            let Ok(data) = frame.into_data() else { continue };
            let Some(left) = self.left.checked_sub(data.len() as u64) else {
                return Poll::Ready(Some(Err(Broken::TooLarge(self.limit))));
            };
            self.left = left;
            self.hasher.update(&data);
            if self.exact && left == 0 {
                // A sender that knows the size does not ask for more.
                self.end();
            }
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
    }

    fn size_hint(&self) -> SizeHint {
        if self.exact { SizeHint::with_exact(self.left) } else { SizeHint::default() }
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{Full, StreamBody};

    use super::*;

    fn upload(pieces: &'static [&'static str], length: Option<u64>) -> Upload {
        let frames = pieces.iter().map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
        Upload::new(StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync(), length, 8)
    }

    #[tokio::test]
    async fn the_digest_is_that_of_the_whole_body_however_it_is_cut() {
        let one = upload(&["abcdef"], None).drain().await.unwrap();
        assert_eq!(one, upload(&["ab", "", "cdef"], Some(6)).drain().await.unwrap());
        assert_eq!(one, *blake3::hash(b"abcdef").as_bytes());
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_or_not_whole_has_no_digest() {
        for (pieces, length, expected) in
            [(&["abcdef", "ghi"], None, "max_streamed_request_bytes"), (&["abc", "def"], Some(7), "to the end")]
        {
            let upload = upload(pieces, length);
            assert!(upload.drain().await.unwrap_err().to_string().contains(expected));
            assert_eq!(upload.digest(), None);
        }
    }

    #[tokio::test]
    async fn it_is_read_once() {
        let upload = Upload::new(Full::new(Bytes::new()).map_err(|e| match e {}).boxed_unsync(), None, 8);
        upload.drain().await.unwrap();
        assert!(matches!(upload.clone().drain().await, Err(Broken::Taken)));
    }
}
