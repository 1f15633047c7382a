//! The bodies of answers over `wasi:http` that lie in memory for a guest which has not taken them yet: all of an attempt
//! together have one room. A body gives its place back when it is taken or dropped.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

/// The room of one attempt.
#[derive(Clone, Debug)]
pub struct Untaken {
    used: Arc<AtomicUsize>,
    most: usize,
}

impl Untaken {
    pub fn new(most: usize) -> Self {
        Self { used: Arc::default(), most }
    }

    pub fn most(&self) -> u64 {
        self.most as u64
    }

    /// The body in a place of its own; none: the room is full.
    pub fn place(&self, bytes: Bytes) -> Option<Placed> {
        let before = self.used.fetch_add(bytes.len(), Ordering::AcqRel);
        // Dropped at once where it does not fit, which gives back what was just taken.
        let place = Place { used: self.used.clone(), bytes: bytes.len() };
        (before.saturating_add(bytes.len()) <= self.most).then(|| Placed { bytes: Full::new(bytes), _place: place })
    }
}

/// The place of one body.
#[derive(Debug)]
struct Place {
    used: Arc<AtomicUsize>,
    bytes: usize,
}

/// A body in its place.
#[derive(Debug)]
pub struct Placed {
    bytes: Full<Bytes>,
    _place: Place,
}

impl Body for Placed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.bytes).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.bytes.size_hint()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(room: &Untaken, bytes: usize) -> Option<Placed> {
        room.place(Bytes::from(vec![0; bytes]))
    }

    #[test]
    fn a_place_is_given_back_when_it_is_dropped_and_a_refused_one_takes_none() {
        let room = Untaken::new(100);
        let first = place(&room, 60).unwrap();
        assert!(place(&room, 41).is_none());
        let second = place(&room, 40).unwrap();
        assert!(place(&room, 1).is_none() && place(&room, 0).is_some());
        drop(first);
        assert!(place(&room, 60).is_some());
        drop(second);
        assert!(place(&room, 100).is_some());
    }
}
