//! Signals to the activity under test. What a call was given it is given again in every later attempt, as by the host.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::bindings::deedbox::activity::signals::{Signal, SignalError};

/// A poll or a wait, its name, and how many of them came before it in the attempt.
type Place = (&'static str, String, usize);

#[derive(Debug, Default)]
pub struct Inbox {
    delivered: RefCell<Vec<(Signal, bool)>>,
    asked: RefCell<HashMap<(&'static str, String), usize>>,
    given: RefCell<HashMap<Place, Option<Signal>>>,
}

impl Inbox {
    pub fn deliver(&self, name: &str, payload: String) {
        let mut delivered = self.delivered.borrow_mut();
        let sequence = delivered.len() as u64 + 1;
        delivered.push((Signal { name: name.to_owned(), payload, sequence }, false));
    }

    pub fn begin_attempt(&self) {
        self.asked.borrow_mut().clear();
    }

    pub fn poll(&self, name: &str) -> Result<Option<Signal>, SignalError> {
        self.give("poll", name)
    }

    /// A wait with a time-out is over at once when no signal is here. One without an end would never end.
    pub fn wait(&self, name: &str, timeout_ms: Option<u64>) -> Result<Option<Signal>, SignalError> {
        let given = self.give("wait", name)?;
        if given.is_none() && timeout_ms.is_none() {
            panic!("the activity waits for the signal {name} without end: deliver it with FakeContext::deliver");
        }
        Ok(given)
    }

    fn give(&self, kind: &'static str, name: &str) -> Result<Option<Signal>, SignalError> {
        let known = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
        if !(1..=128).contains(&name.len()) || !name.bytes().all(known) {
            return Err(SignalError::InvalidName);
        }
        let mut asked = self.asked.borrow_mut();
        let count = asked.entry((kind, name.to_owned())).or_default();
        let place = (kind, name.to_owned(), *count);
        *count += 1;
        Ok(self.given.borrow_mut().entry(place).or_insert_with(|| self.take(name)).clone())
    }

    fn take(&self, name: &str) -> Option<Signal> {
        let mut delivered = self.delivered.borrow_mut();
        let (signal, read) = delivered.iter_mut().find(|(signal, read)| !read && signal.name == name)?;
        *read = true;
        Some(signal.clone())
    }
}
