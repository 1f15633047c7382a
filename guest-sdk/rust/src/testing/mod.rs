//! Running an activity in a unit test, without a host: [`FakeContext`].
//!
//! It answers requests from a script and remembers what was sent. It opens no socket, and it hands
//! out only keys that a host would derive from the run id that the test gave: never a random one.

mod answer;
mod inbox;
mod keys;
mod outbox;
mod sent;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Deref;
use std::rc::Rc;
use std::time::Duration;

use serde::Serialize;

pub use answer::Answer;
pub use keys::ConfigError;
pub use outbox::{SentMessage, WrittenFile};
pub use sent::Sent;

use crate::bindings::deedbox::activity::checkpoint::CheckpointError;
use crate::bindings::deedbox::activity::context::RunInfo;
use crate::bindings::deedbox::activity::http::{Error, Identity, Options, Request, Response};
use crate::bindings::deedbox::activity::idempotency::KeyError;
use crate::bindings::deedbox::activity::signals::{Signal, SignalError};
use crate::bindings::deedbox::activity::{files as files_wit, messaging as messaging_wit};
use crate::host::Host;
use crate::{Context, Failure, activity, files, http, messaging};
use inbox::Inbox;
use keys::Keys;
use outbox::Outbox;

const MAX_STATE_BYTES: usize = 64 * 1024;
const TENANT: &str = "test";

/// A context for a unit test. It dereferences to [`Context`], so `my_activity(&fake, input)` works.
///
/// Each request needs an answer in the script; one without panics and names the request.
#[derive(Debug)]
pub struct FakeContext {
    context: Context,
    fake: Rc<Fake>,
}

impl FakeContext {
    /// The first of three attempts of the run with this id, a UUID that the test writes down, so
    /// that its keys are the same whenever the test runs. Fails when it is none: there is no key to
    /// hand out then.
    pub fn for_run(run_id: &str) -> Result<Self, ConfigError> {
        let keys = Keys::derive(TENANT, run_id)?;
        let fake = Rc::new(Fake {
            keys,
            run: RefCell::new(first_attempt(run_id)),
            cancelled: Cell::new(false),
            script: RefCell::default(),
            sent: RefCell::default(),
            outbox: Outbox::default(),
            inbox: Inbox::default(),
            state: RefCell::default(),
        });
        Ok(Self { context: Context::new(fake.clone()), fake })
    }

    /// Adds the answer to the next request that has none yet.
    pub fn answer(&self, answer: Answer) {
        self.fake.script.borrow_mut().push_back(answer.into_result());
    }

    /// Every request so far, in order.
    pub fn sent(&self) -> Vec<Sent> {
        self.fake.sent.borrow().clone()
    }

    /// Every message so far, in order. Each is kept by the stream `TEST` unless it is refused.
    pub fn sent_messages(&self) -> Vec<SentMessage> {
        self.fake.outbox.messages.borrow().clone()
    }

    /// The next message that is not refused yet fails with this error.
    pub fn refuse_message(&self, error: messaging::Error) {
        self.fake.outbox.message_errors.borrow_mut().push_back(error);
    }

    /// Every file so far, in order.
    pub fn written_files(&self) -> Vec<WrittenFile> {
        self.fake.outbox.files.borrow().clone()
    }

    /// The next write that is not refused yet fails with this error.
    pub fn refuse_write(&self, error: files::Error) {
        self.fake.outbox.file_errors.borrow_mut().push_back(error);
    }

    /// Delivers a signal to the run.
    pub fn deliver<T: Serialize + ?Sized>(&self, name: &str, payload: &T) {
        let payload = serde_json::to_string(payload).unwrap_or_else(|why| panic!("the payload of {name}: {why}"));
        self.fake.inbox.deliver(name, payload);
    }

    /// Makes this the attempt of that number, with the saved state of the attempts before, and the signals that they were
    /// given.
    pub fn set_attempt(&self, attempt: u32) {
        self.fake.inbox.begin_attempt();
        self.fake.run.borrow_mut().attempt = attempt;
    }

    pub fn set_max_attempts(&self, attempts: u32) {
        self.fake.run.borrow_mut().max_attempts = attempts;
    }

    pub fn set_activity(&self, name: &str) {
        self.fake.run.borrow_mut().activity = name.to_owned();
    }

    pub fn set_remaining(&self, time: Duration) {
        self.fake.run.borrow_mut().remaining_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    }

    /// Asks the attempt to stop.
    pub fn cancel(&self) {
        self.fake.cancelled.set(true);
    }

    /// Runs an activity of the crate under test by its name on a JSON text, as the host does, and
    /// gives its output as JSON text.
    pub fn run_named(&self, activity: &str, input: &str) -> Result<String, Failure> {
        activity::run(self, activity, input)
    }
}

impl Deref for FakeContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.context
    }
}

#[derive(Debug)]
struct Fake {
    keys: Keys,
    run: RefCell<RunInfo>,
    cancelled: Cell<bool>,
    script: RefCell<VecDeque<Result<Response, Error>>>,
    sent: RefCell<Vec<Sent>>,
    outbox: Outbox,
    inbox: Inbox,
    state: RefCell<Option<Vec<u8>>>,
}

impl Host for Fake {
    fn idempotency_key(&self) -> String {
        self.keys.run_key()
    }

    fn subkey(&self, name: &str) -> Result<String, KeyError> {
        self.keys.subkey(name).ok_or(KeyError::InvalidName)
    }

    fn run_info(&self) -> RunInfo {
        self.run.borrow().clone()
    }

    fn cancelled(&self) -> bool {
        self.cancelled.get()
    }

    fn send(&self, request: &Request, options: &Options) -> Result<Response, Error> {
        self.sent.borrow_mut().push(Sent::new(request, options));
        let answer = self.script.borrow_mut().pop_front();
        answer.unwrap_or_else(|| {
            panic!("no answer for {} {}: add one with FakeContext::answer", request.method, request.url)
        })
    }

    fn publish(
        &self,
        subject: &str,
        payload: &[u8],
        options: &messaging_wit::Options,
    ) -> Result<messaging::Published, messaging_wit::Error> {
        self.outbox.publish(subject, payload, options)
    }

    fn write(&self, path: &str, bytes: &[u8], identity: &Identity) -> Result<files::Written, files_wit::Error> {
        self.outbox.write(path, bytes, identity)
    }

    fn append(&self, _path: &str, _bytes: &[u8]) -> Result<(), files_wit::Error> {
        let why = "an append that is made twice writes twice: write a file of its own for each run, for example one named \
                   by `idempotency-key`";
        Err(files_wit::Error::Denied(why.to_owned()))
    }

    fn poll_signal(&self, name: &str) -> Result<Option<Signal>, SignalError> {
        self.inbox.poll(name)
    }

    fn wait_signal(&self, name: &str, timeout_ms: Option<u64>) -> Result<Option<Signal>, SignalError> {
        self.inbox.wait(name, timeout_ms)
    }

    fn save(&self, state: &[u8]) -> Result<(), CheckpointError> {
        if state.len() > MAX_STATE_BYTES {
            return Err(CheckpointError::TooLarge);
        }
        *self.state.borrow_mut() = Some(state.to_vec());
        Ok(())
    }

    fn load(&self) -> Option<Vec<u8>> {
        self.state.borrow().clone()
    }
}

fn first_attempt(run_id: &str) -> RunInfo {
    RunInfo {
        tenant: TENANT.to_owned(),
        run_id: run_id.to_owned(),
        activity: "test".to_owned(),
        attempt: 1,
        max_attempts: 3,
        remaining_ms: 60_000,
    }
}

impl From<http::Error> for Answer {
    fn from(error: http::Error) -> Self {
        Self::error(error)
    }
}
