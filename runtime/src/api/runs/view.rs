//! How runs, their attempts and their logs look.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::api::error::Result;
use crate::api::extract::raw;
use crate::api::name;
use crate::api::openapi::Failure;
use crate::api::time::Time;
use crate::store::start::NewRun;
use crate::store::{self, run};

/// What a start answers.
#[derive(Serialize, ToSchema)]
#[schema(as = StartedRun)]
pub struct Started {
    run_id: Uuid,
    state: String,
    activity: String,
    version: i32,
    created_at: Time,
    /// Absent for a start without a name and without a key: it is always a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_fresh: Option<bool>,
    /// Whether the request's key was known. Absent without a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    deduplicated: Option<bool>,
    /// Of a signal that was delivered to a run that was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    signal_delivered: Option<bool>,
}

/// A run without its input and output, as lists show it.
#[derive(Serialize, ToSchema)]
#[schema(as = RunSummary)]
pub struct Summary {
    run_id: Uuid,
    activity: String,
    version: i32,
    state: String,
    #[schema(value_type = Option<Failure>)]
    failure: Option<Box<RawValue>>,
    attempts: i32,
    /// Those that count against `max_attempts`.
    spent: i32,
    max_attempts: i32,
    /// When it may start or start again; absent while it runs and when no time makes it due.
    due_at: Option<Time>,
    waiting_for: Option<WaitingFor>,
    priority: i16,
    run_name: Option<String>,
    #[schema(value_type = BTreeMap<String, String>)]
    labels: Box<RawValue>,
    paused: bool,
    /// Its owner wants it to end; while it runs, its worker stops the attempt.
    cancel_requested: bool,
    cancel_reason: Option<String>,
    /// The end of `schedule_to_close`.
    close_by: Option<Time>,
    created_at: Time,
    started_at: Option<Time>,
    ended_at: Option<Time>,
}

#[derive(Serialize, ToSchema)]
struct WaitingFor {
    #[serde(skip_serializing_if = "Option::is_none")]
    effect_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    signal: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct Run {
    #[serde(flatten)]
    summary: Summary,
    #[schema(value_type = Value)]
    input: Box<RawValue>,
    #[schema(value_type = Option<Value>)]
    output: Option<Box<RawValue>>,
}

#[derive(Serialize, ToSchema)]
pub struct Attempt {
    attempt: i32,
    worker: String,
    started_at: Time,
    ended_at: Option<Time>,
    outcome: Option<String>,
    #[schema(value_type = Option<Failure>)]
    failure: Option<Box<RawValue>>,
    /// All linear memories together, at most.
    peak_memory_bytes: Option<i64>,
    /// What the guest has computed, and the host in its calls, in begun milliseconds. Absent for a lost worker's attempt.
    cpu_ms: Option<i64>,
    /// Calls of the guest to the host.
    host_calls: Option<i64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AttemptLog)]
pub struct Log {
    attempt: i32,
    stream: String,
    text: String,
    truncated: bool,
}

impl Started {
    pub fn fresh(run: &NewRun, created_at: DateTime<Utc>, told: bool) -> Self {
        Self {
            run_id: run.run_id,
            state: "queued".to_owned(),
            activity: run.activity.clone(),
            version: run.version,
            created_at: created_at.into(),
            started_fresh: told.then_some(true),
            deduplicated: None,
            signal_delivered: None,
        }
    }

    /// The run that was there.
    pub fn attached(row: Box<run::Run>, signal_delivered: Option<bool>) -> Self {
        Self {
            run_id: row.run_id,
            state: row.state,
            activity: row.activity,
            version: row.version,
            created_at: row.created_at.into(),
            started_fresh: Some(false),
            deduplicated: None,
            signal_delivered,
        }
    }

    /// Whether the request's key was known.
    pub fn deduplicated(self, known: bool) -> Self {
        Self { deduplicated: Some(known), ..self }
    }

    pub fn run_id(&self) -> Uuid {
        self.run_id
    }
}

impl Run {
    pub fn new(mut row: run::Run) -> Result<Self> {
        let input = raw(std::mem::take(&mut row.input))?;
        let output = row.output.take().map(raw).transpose()?;
        Ok(Self { summary: Summary::new(row)?, input, output })
    }
}

impl Summary {
    pub fn new(row: run::Run) -> Result<Self> {
        // While it runs, the row's time is the end of its lease, which is nothing to its owner.
        let due_at = row.due_at.filter(|_| row.state != "running");
        let waiting = |signal: Option<String>, effect: Option<Vec<u8>>| {
            let effect_id = effect.map(|id| name::hex(&id));
            (signal.is_some() || effect_id.is_some()).then_some(WaitingFor { effect_id, signal })
        };
        let waiting_for = if row.state == "waiting" { waiting(row.waiting_signal, row.waiting_effect) } else { None };
        Ok(Self {
            run_id: row.run_id,
            activity: row.activity,
            version: row.version,
            state: row.state,
            failure: row.failure.map(raw).transpose()?,
            attempts: row.attempts,
            spent: row.spent,
            max_attempts: row.max_attempts,
            due_at: due_at.map(Time::from),
            waiting_for,
            priority: row.priority,
            run_name: row.run_name,
            labels: raw(row.labels)?,
            paused: row.paused_at.is_some(),
            cancel_requested: row.cancel_requested_at.is_some(),
            cancel_reason: row.cancel_reason,
            close_by: row.close_by.map(Time::from),
            created_at: row.created_at.into(),
            started_at: row.started_at.map(Time::from),
            ended_at: row.ended_at.map(Time::from),
        })
    }
}

impl Attempt {
    pub fn new(row: run::Attempt) -> Result<Self> {
        Ok(Self {
            attempt: row.attempt,
            worker: row.worker,
            started_at: row.started_at.into(),
            ended_at: row.ended_at.map(Time::from),
            outcome: row.outcome,
            failure: row.failure.map(raw).transpose()?,
            peak_memory_bytes: row.peak_memory_bytes,
            cpu_ms: row.cpu_ms,
            host_calls: row.host_calls,
        })
    }
}

impl From<store::log::Log> for Log {
    fn from(row: store::log::Log) -> Self {
        Self { attempt: row.attempt, stream: row.stream, text: row.text, truncated: row.truncated }
    }
}
