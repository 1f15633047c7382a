//! What a guest hears of the signals to its run. Each poll and wait has a place: its kind, its name and how many of them
//! came before it in this attempt; what is recorded at a place is given to every attempt. A wait is spent here for a short
//! while; a longer one gives the run back until the signal comes.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;

use super::attempt::{Attempt, lock};
use super::request::Stop;
use crate::config::ms;
use crate::store::signal::{self, Answer, Ask, Kind};

/// How often a waiting guest's host looks for itself.
const LOOK: Duration = Duration::from_millis(500);

/// How often each place was asked at in this attempt.
#[derive(Debug, Default)]
pub struct Asked {
    calls: u32,
    places: HashMap<(Kind, String), i32>,
}

/// A signal as the guest gets it. `payload` is a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    pub name: String,
    pub payload: String,
    pub sequence: u64,
}

/// Why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    InvalidName,
    TooManyCalls,
}

impl Attempt {
    /// The oldest unread signal of that name, if one is here.
    pub async fn poll_signal(&self, name: &str) -> Result<Result<Option<Signal>, Refused>, Stop> {
        let ask = match self.place(Kind::Poll, name, None) {
            Ok(ask) => ask,
            Err(refused) => return Ok(Err(refused)),
        };
        loop {
            match signal::ask(&self.gateway.store, &ask).await? {
                Answer::Signal { sequence, payload } => return Ok(Ok(Some(signal(name, sequence, payload)))),
                Answer::Nothing => return Ok(Ok(None)),
                Answer::LeaseOver => return Err(Stop::LeaseOver),
                // A signal was just being delivered; the next look sees it.
                Answer::Open { .. } if self.is_stopping() => return Err(Stop::LeaseOver),
                Answer::Open { .. } => {}
            }
        }
    }

    /// Waits for a signal of that name. `left`: what the attempt has left; the wait here ends well before it.
    pub async fn wait_signal(
        &self,
        name: &str,
        timeout: Option<Duration>,
        left: Duration,
    ) -> Result<Result<Option<Signal>, Refused>, Stop> {
        let ask = match self.place(Kind::Wait, name, timeout) {
            Ok(ask) => ask,
            Err(refused) => return Ok(Err(refused)),
        };
        let give_up = Instant::now() + ms(self.gateway.signals.wait_ms).min(left / 2);
        let watch = self.gateway.wakes.signals.watch(self.run_id());
        loop {
            let mut bell = std::pin::pin!(watch.bell.notified());
            // From here on no ring is missed, so that the look below cannot come too early.
            bell.as_mut().enable();
            let (seen, until, left_ms) = match signal::ask(&self.gateway.store, &ask).await? {
                Answer::Signal { sequence, payload } => return Ok(Ok(Some(signal(name, sequence, payload)))),
                Answer::Nothing => return Ok(Ok(None)),
                Answer::LeaseOver => return Err(Stop::LeaseOver),
                Answer::Open { seen, until, left_ms } => (seen, until, left_ms),
            };
            let now = Instant::now();
            if now >= give_up {
                return Err(awaits(name, seen, until));
            }
            let over = left_ms.map(|left| now + ms(left.max(0).unsigned_abs() + 1));
            let look = over.unwrap_or(give_up).min(give_up).min(now + LOOK);
            tokio::select! {
                () = bell => {}
                () = tokio::time::sleep_until(look) => {}
                () = self.stopped() => return Err(Stop::LeaseOver),
                () = self.closing.cancelled() => return Err(Stop::LeaseOver),
            }
        }
    }

    fn place(&self, kind: Kind, name: &str, timeout: Option<Duration>) -> Result<Ask, Refused> {
        if !is_name(name) {
            return Err(Refused::InvalidName);
        }
        let mut asked = lock(&self.asked);
        if asked.calls >= self.gateway.signals.max_calls {
            return Err(Refused::TooManyCalls);
        }
        asked.calls += 1;
        let count = asked.places.entry((kind, name.to_owned())).or_default();
        let ordinal = *count;
        *count += 1;
        let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).min(LONGEST_MS));
        Ok(Ask { lease: self.lease.record.clone(), kind, name: name.to_owned(), ordinal, timeout_ms })
    }
}

/// A longer wait is one without end to any reader; the database's times would not hold it.
const LONGEST_MS: u64 = 1000 * 3600 * 24 * 365 * 100;

/// 1 to 128 characters of `A-Z a-z 0-9 . _ -`.
pub fn is_name(name: &str) -> bool {
    let known = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    (1..=128).contains(&name.len()) && name.bytes().all(known)
}

fn signal(name: &str, sequence: i64, payload: String) -> Signal {
    Signal { name: name.to_owned(), payload, sequence: sequence.unsigned_abs() }
}

fn awaits(name: &str, seen: i64, until: Option<DateTime<Utc>>) -> Stop {
    Stop::AwaitsSignal { name: name.to_owned(), seen, until }
}
