//! Request keys as one layer for all that changes something. A mutating request is read, then looked for among the answers
//! that were given under its key; only a new one is understood and checked. Its work, the record of its key and the stored
//! answer are one transaction: a crash leaves all of them or nothing, so that no key can be stuck.
//!
//! A key must never appear in a log, a span, an error or, as it is, in the database.

mod answer;

use std::time::Duration;

use axum::extract::{FromRequest, FromRequestParts, MatchedPath, RawPathParams, Request};
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::auth::Caller;
use super::auth::scope::Scope;
use super::body::{self, Kind};
use super::error::{Problem, Result};
use super::extract;
use super::request_key::{self, Handling};
use super::{Api, canonical};
use crate::registry;
use crate::store::request_key::{Record, RecordId, Turn, find, put, take_turn};
use crate::store::turns::For;
use crate::store::{self, Tx};

pub use answer::Answer;

/// How long a request that waits for another of its key sleeps between two looks, at first and at most.
const MIN_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSE: Duration = Duration::from_millis(200);

/// One change, carried out inside a transaction. It may be carried out again when the database ended the transaction for the
/// sake of another.
pub trait Work: Send + Sync {
    fn run(&self, tx: &mut Tx) -> impl Future<Output = std::result::Result<Answer, Failed>> + Send;

    /// It is one statement: without a key it needs no transaction around it.
    fn is_single(&self) -> bool {
        false
    }

    /// Called once it is committed.
    fn done(&self) {}
}

/// Why a change was not made. Nothing of it stays.
#[derive(Debug)]
pub enum Failed {
    Problem(Problem),
    Store(store::Error),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<store::Error> for Failed {
    fn from(error: store::Error) -> Self {
        Self::Store(error)
    }
}

impl From<registry::Error> for Failed {
    fn from(error: registry::Error) -> Self {
        match error {
            registry::Error::Store(error) => Self::Store(error),
            error => Self::Problem(error.into()),
        }
    }
}

impl From<Failed> for Problem {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Problem(problem) => problem,
            Failed::Store(error) => error.into(),
        }
    }
}

/// A mutating request: who asks, under which key, and a body that was read and not yet understood.
#[derive(Debug)]
pub struct Keyed<S, B = body::Json> {
    pub caller: Caller<S>,
    pub handling: Handling,
    body: body::Read,
    mark: Option<Mark>,
    kind: std::marker::PhantomData<fn() -> B>,
}

/// What a key stands for.
struct Mark {
    key: String,
    operation: String,
    params: Vec<(String, String)>,
    record: RecordId,
    digest: [u8; 32],
}

impl std::fmt::Debug for Mark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mark").field("operation", &self.operation).finish_non_exhaustive()
    }
}

/// An answer, and whether it was given before.
#[derive(Debug)]
pub struct Outcome {
    pub answer: Answer,
    pub replayed: bool,
}

impl<S: Scope, B: Kind> FromRequest<Api> for Keyed<S, B> {
    type Rejection = Problem;

    async fn from_request(request: Request, api: &Api) -> Result<Self> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::<S>::from_request_parts(&mut parts, api).await?;
        let handling = if B::LENIENT { request_key::handling(&parts.headers) } else { Handling::Strict };
        let header = request_key::of(&parts.headers, handling)?;
        let operation = operation(&parts);
        let params = params(&mut parts, api).await?;
        let body = body::Read::read::<B>(&parts.headers, body, &api.config).await?;
        let key = match (header, body.member::<B>()) {
            (Some(key), _) => Some(key),
            (None, Some(key)) => Some(request_key::check(B::MEMBER.unwrap_or_default(), &key, handling)?),
            (None, None) => None,
        };
        let query = parts.uri.query().unwrap_or_default();
        let mark = key.map(|key| {
            let asked = asked(api, query, &body.bytes, B::MEMBER);
            Mark::new(&caller.tenant, key, operation, params, asked)
        });
        Ok(Self { caller, handling, body, mark, kind: std::marker::PhantomData })
    }
}

/// The routed operation, whatever way its path was spelled.
fn operation(parts: &Parts) -> String {
    let path = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    format!("{} {path}", parts.method)
}

async fn params(parts: &mut Parts, api: &Api) -> Result<Vec<(String, String)>> {
    let params = RawPathParams::from_request_parts(parts, api).await.map_err(|_| Problem::not_found("resource"))?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

/// A digest of what is asked of an operation. Keyed, because a body may hold a credential that could be guessed from its hash.
fn asked(api: &Api, query: &str, body: &[u8], except: Option<&str>) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(&api.gateway.vault().digest_key());
    let mut query: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).collect();
    query.sort();
    hasher.update(&(query.len() as u64).to_le_bytes());
    query.iter().flat_map(|(name, value)| [name, value]).for_each(|text| {
        hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
    });
    canonical::feed(&mut hasher, body, except);
    *hasher.finalize().as_bytes()
}

impl Mark {
    fn new(tenant: &str, key: String, operation: String, params: Vec<(String, String)>, asked: [u8; 32]) -> Self {
        let values = params.iter().map(|(_, value)| value.as_str());
        let fields: Vec<&str> = [tenant, &operation].into_iter().chain(values).chain([key.as_str()]).collect();
        let record = RecordId(crate::key::request_record(&fields));
        Self { key, operation, params, record, digest: asked }
    }
}

impl<S: Scope, B: Kind> Keyed<S, B> {
    pub fn is_keyed(&self) -> bool {
        self.mark.is_some()
    }

    pub fn key(&self) -> Option<&str> {
        self.mark.as_ref().map(|mark| mark.key.as_str())
    }

    /// Names the operation where one path stands for several.
    pub fn operation(mut self, operation: &str, params: &[(&str, &str)]) -> Self {
        if let Some(mark) = self.mark.take() {
            let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            self.mark = Some(Mark::new(&self.caller.tenant, mark.key, operation.to_owned(), params, mark.digest));
        }
        self
    }

    /// The bytes of the body, if they are what the route takes.
    pub fn bytes(&self) -> Result<&Bytes> {
        self.body.checked::<B>()
    }

    /// The JSON body; the default of `T` where it was left out.
    pub fn optional<T: DeserializeOwned + Default>(&self, api: &Api) -> Result<T> {
        if self.body.bytes.is_empty() { Ok(T::default()) } else { self.parse(api) }
    }

    pub fn parse<T: DeserializeOwned>(&self, api: &Api) -> Result<T> {
        extract::parse(self.bytes()?, &api.config)
    }

    /// A payload: any JSON text as it was sent, `null` when there is none.
    pub fn payload(&self, api: &Api) -> Result<String> {
        if self.body.bytes.is_empty() {
            return Ok("null".to_owned());
        }
        extract::json_text(self.bytes()?, &api.config)
    }

    /// Answers: with what was answered to this key before, or by carrying out the work that `prepared` gives.
    pub async fn carry_out<W: Work>(
        &self,
        api: &Api,
        prepared: impl Future<Output = Result<W>> + Send,
    ) -> Result<Response> {
        let outcome = self.outcome(api, prepared).await?;
        Ok(outcome.answer.response(outcome.replayed))
    }

    /// The same, for a caller that makes the answer its own way.
    pub async fn outcome<W: Work>(
        &self,
        api: &Api,
        prepared: impl Future<Output = Result<W>> + Send,
    ) -> Result<Outcome> {
        let prepared = async {
            if B::EMPTY && !self.body.bytes.is_empty() {
                self.parse::<Empty>(api)?;
            }
            prepared.await
        };
        match &self.mark {
            None => Ok(Outcome { answer: unkeyed(api, &self.caller.tenant, &prepared.await?).await?, replayed: false }),
            Some(mark) => {
                let turn = Asked { api, tenant: &self.caller.tenant, mark, handling: self.handling };
                turn.answer(prepared).await
            }
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

/// A delivery that is not one of our callers': its sender's own id is the key, and what comes under it a second time is never
/// looked at.
pub async fn delivery<W: Work>(
    api: &Api,
    tenant: &str,
    operation: &str,
    params: &[(&str, &str)],
    key: &str,
    prepared: impl Future<Output = Result<W>> + Send,
) -> Result<Outcome> {
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let mark = Mark::new(tenant, key.to_owned(), operation.to_owned(), params, [0; 32]);
    Asked { api, tenant, mark: &mark, handling: Handling::Lenient }.answer(prepared).await
}

/// Carries out work that has no key.
pub async fn unkeyed<W: Work>(api: &Api, tenant: &str, work: &W) -> Result<Answer> {
    let mut tries = 1;
    loop {
        let attempt = async {
            let _turn = api.store.turn(tenant, For::Telling).await?;
            let mut tx = if work.is_single() { api.store.statement().await? } else { api.store.transaction().await? };
            let answer = work.run(&mut tx).await?;
            tx.commit().await?;
            Ok(answer)
        };
        match bounded(attempt).await {
            Err(Failed::Store(error)) if error.was_rolled_back() && tries < store::TRIES => tries += 1,
            Err(failed) => return Err(failed.into()),
            Ok(answer) => {
                work.done();
                return Ok(answer);
            }
        }
    }
}

async fn bounded<T>(attempt: impl Future<Output = std::result::Result<T, Failed>>) -> std::result::Result<T, Failed> {
    let timed = tokio::time::timeout(store::STATEMENT, attempt).await;
    timed.unwrap_or(Err(Failed::Store(store::Error::TimedOut)))
}

/// One request under a key.
struct Asked<'a> {
    api: &'a Api,
    tenant: &'a str,
    mark: &'a Mark,
    handling: Handling,
}

/// What came of one try.
enum Tried {
    Answered(Outcome),
    /// Another request of the same key is being worked on.
    Busy,
}

impl Asked<'_> {
    async fn answer<W: Work>(&self, prepared: impl Future<Output = Result<W>> + Send) -> Result<Outcome> {
        let deadline = Instant::now() + Duration::from_millis(self.api.config.api.in_flight_wait_ms);
        let known = find(&self.api.store, self.tenant, self.mark.record, self.hours()).await?;
        if let Some(record) = known {
            return self.replay(record).await;
        }
        let work = match prepared.await {
            Err(problem) if !problem.is_final() => return Err(problem),
            prepared => prepared,
        };
        let mut pause = MIN_PAUSE;
        loop {
            match self.attempt(&work).await? {
                Tried::Answered(outcome) => return Ok(outcome),
                Tried::Busy if Instant::now() >= deadline => return Err(Problem::in_flight()),
                Tried::Busy => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    fn hours(&self) -> u32 {
        self.api.config.retention.request_keys_hours
    }

    async fn attempt<W: Work>(&self, work: &Result<W>) -> Result<Tried> {
        let mut tries = 1;
        loop {
            match bounded(self.once(work)).await {
                Err(Failed::Store(error)) if error.was_rolled_back() && tries < store::TRIES => tries += 1,
                // What the work changed before it was refused is undone; the refusal is kept by itself.
                Err(Failed::Problem(problem)) if problem.is_final() => {
                    return Ok(bounded(self.once::<W>(&Err(problem))).await?);
                }
                result => return Ok(result?),
            }
        }
    }

    async fn once<W: Work>(&self, work: &Result<W>) -> std::result::Result<Tried, Failed> {
        let _turn = self.api.store.turn(self.tenant, For::Telling).await?;
        let mut tx = self.api.store.transaction().await?;
        match take_turn(&mut tx, self.mark.record, &self.mark.digest).await? {
            Turn::Ours => {}
            Turn::Other if self.handling == Handling::Strict => return Err(Problem::key_mismatch().into()),
            Turn::Same | Turn::Other => return Ok(Tried::Busy),
        }
        // Seen anew: whoever had the turn before has committed by now.
        if let Some(record) = find(&mut tx, self.tenant, self.mark.record, self.hours()).await? {
            return Ok(Tried::Answered(self.replay(record).await?));
        }
        self.api.holds.hold(self.tenant, &self.mark.key).await;
        let answer = match work {
            Ok(work) => work.run(&mut tx).await?,
            Err(problem) => problem.answer(),
        };
        if self.handling == Handling::Lenient && answer.status().is_client_error() {
            // There is no run that a later request could be answered with.
            return Ok(Tried::Answered(Outcome { answer, replayed: false }));
        }
        let record = answer.record(self.mark.record, &self.mark.digest);
        put(&mut tx, self.tenant, self.mark.record, &self.mark.operation, &record).await?;
        tx.commit().await?;
        if let Ok(work) = work {
            work.done();
        }
        Ok(Tried::Answered(Outcome { answer, replayed: false }))
    }

    async fn replay(&self, record: Record) -> Result<Outcome> {
        if self.handling == Handling::Strict && record.digest != self.mark.digest {
            return Err(Problem::key_mismatch());
        }
        let (operation, status) = (self.mark.operation.as_str(), record.status);
        match record.run_id {
            Some(run_id) => tracing::info!(run.id = %run_id, operation, status, "a known request was answered again"),
            None => tracing::info!(operation, status, params = ?self.shown(), "a known request was answered again"),
        }
        let answer = Answer::stored(self.api, self.tenant, self.mark.record, record).await?;
        Ok(Outcome { answer, replayed: true })
    }

    /// The ids in the path; a free text could be anything.
    fn shown(&self) -> Vec<&str> {
        let id = |text: &&str| uuid::Uuid::try_parse(text).is_ok();
        self.mark.params.iter().map(|(_, value)| value.as_str()).filter(id).collect()
    }
}
