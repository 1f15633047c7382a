//! How long each stream remembers message ids, as the server said a short while ago.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long an answer of the server is believed.
const KEEP: Duration = Duration::from_secs(60);

/// Beyond it the oldest answers are not worth keeping: subjects may be as many as there are orders.
const MOST: usize = 4096;

/// What a server says about the stream that takes a subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// How long the stream remembers a message's id, from when the message arrived.
    pub remembers: Duration,
    /// The largest message that the server takes.
    pub max_payload: usize,
}

/// Whose view of which subject. A credential decides which account of the server, and so which streams, are seen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub tenant: String,
    pub server: String,
    pub user: Option<String>,
    pub secret: Option<String>,
    pub subject: String,
}

#[derive(Debug, Default)]
pub struct Windows(Mutex<HashMap<Place, (Duration, Window)>>);

impl Windows {
    /// `now` is by the clock.
    pub fn get(&self, place: &Place, now: Duration) -> Option<Window> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, window) = known.get(place)?;
        (now.saturating_sub(*at) < KEEP).then(|| window.clone())
    }

    pub fn put(&self, place: Place, window: Window, now: Duration) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, (at, _)| now.saturating_sub(*at) < KEEP);
        }
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(place, (now, window));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_believed_for_a_minute() {
        let place = Place {
            tenant: "acme".to_owned(),
            server: "nats://a:4222".to_owned(),
            user: None,
            secret: None,
            subject: "a".to_owned(),
        };
        let other = Place { tenant: "other".to_owned(), ..place.clone() };
        let window = Window { remembers: Duration::from_secs(120), max_payload: 1 };
        let windows = Windows::default();
        windows.put(place.clone(), window.clone(), Duration::from_secs(10));
        assert_eq!(windows.get(&place, Duration::from_secs(69)), Some(window));
        assert_eq!(windows.get(&place, Duration::from_secs(70)), None);
        assert_eq!(windows.get(&other, Duration::from_secs(10)), None);
    }
}
