//! `POST /v1/activities/{name}/runs`: starts a run, at once or later, under a business id, with a first signal, and with
//! a callback that tells of its end.

mod callback;

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::auth::scope;
use super::error::{Problem, Result};
use super::extract::{Path, stored};
use super::keyed::{Answer, Failed, Keyed, Outcome, Work};
use super::request_key::Handling;
use super::runs::{self, Started};
use super::{Api, activities, body, input, name, request_key};
use crate::policy::{Policy, Retry, Span};
use crate::store::signal::{Delivered, Delivery};
use crate::store::start::{self, NewRun, Reuse, StartAt};
use crate::store::{Tx, activity, run};

/// The longest run name, in bytes, and the most labels and their longest value.
const MAX_RUN_NAME_BYTES: usize = 256;
pub const MAX_LABELS: usize = 20;
const MAX_VALUE_BYTES: usize = 256;

/// The latest start, in days from now.
const MAX_DELAY_DAYS: i64 = 366;

const NORMAL_PRIORITY: i16 = 5;

#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = StartRun)]
pub struct Start {
    /// Any JSON value, kept as the text that was sent.
    #[schema(value_type = Option<Value>)]
    input: Option<Box<RawValue>>,
    /// A business id, unique among the activity's runs as `reuse` says.
    run_name: Option<String>,
    reuse: Option<Reused>,
    /// Fields that replace those of the policy's retry.
    #[schema(value_type = Option<Retry>)]
    retry: Option<serde_json::Map<String, Value>>,
    /// No attempt begins before it.
    start_at: Option<DateTime<Utc>>,
    /// The same, counted from now.
    delay: Option<Span>,
    /// 1 is first, 9 last, 5 if absent.
    priority: Option<i16>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    signal: Option<FirstSignal>,
    /// Who is told when the run has ended. A run that is attached to keeps its own.
    callback: Option<callback::Asked>,
    /// The request's key, for senders that cannot set a header. The header goes before it.
    #[expect(dead_code, reason = "it is read before the rest of the body")]
    idempotency_key: Option<String>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Reuse)]
pub enum Reused {
    Allow,
    Reject,
    RejectAlive,
    Attach,
}

impl Start {
    /// A start that is made of something else: of a hook's delivery, of another protocol's request.
    pub fn made(
        input: Box<RawValue>,
        run_name: Option<String>,
        reuse: Option<Reused>,
        labels: BTreeMap<String, String>,
    ) -> Self {
        Self { input: Some(input), run_name, reuse, labels, ..Self::default() }
    }
}

/// Delivered with the start; with `attach`, to the run that is there.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FirstSignal {
    name: String,
    #[schema(value_type = Option<Value>)]
    payload: Option<Box<RawValue>>,
    idempotency_key: Option<String>,
}

/// Starts a run.
#[utoipa::path(
    post, path = "/activities/{name}/runs", operation_id = "start_run", tag = "runs",
    request_body = Start,
    responses(
        (status = 201, body = Started,
            headers(("Location", description = "The path of the run."))),
        (status = 200, body = Started, description = "The run that was there, of its name or its key."),
        (status = 429)
    ),
    security(("bearer" = ["run"]))
)]
pub async fn start(
    State(api): State<Api>,
    Path(name): Path<String>,
    request: Keyed<scope::Run, body::Start>,
) -> Result<Response> {
    let tenant = &request.caller.tenant;
    let outcome = request.outcome(&api, async {
        let run = plan(&api, tenant, &name, request.parse(&api)?).await?;
        Ok(Begin { tenant: tenant.clone(), run, max_unread: api.config.signals.max_unread, keyed: request.is_keyed() })
    });
    let Outcome { answer, replayed } = outcome.await?;
    if request.handling == Handling::Strict {
        return Ok(answer.response(replayed));
    }
    let answer = if replayed { again(&api, tenant, answer).await? } else { answer };
    let mut response = answer.response(replayed);
    let (name, value) = request_key::APPLIED;
    response.headers_mut().insert(name, HeaderValue::from_static(value));
    Ok(response)
}

/// Starts one run.
pub struct Begin {
    tenant: String,
    run: NewRun,
    max_unread: u64,
    /// Only a request with a key is told how it was met.
    keyed: bool,
}

impl Work for Begin {
    async fn run(&self, tx: &mut Tx) -> std::result::Result<Answer, Failed> {
        let (status, answer) = match begin(tx, &self.tenant, &self.run, self.max_unread).await? {
            Begun::Fresh { created_at } => {
                tracing::info!(run.id = %self.run.run_id, activity.name = self.run.activity, "starting");
                let named = self.run.name.is_some() || self.keyed;
                (StatusCode::CREATED, Started::fresh(&self.run, created_at, named))
            }
            Begun::Attached { row, signal } => {
                (StatusCode::OK, Started::attached(row, signal.map(|signal| signal == Delivered::Fresh)))
            }
        };
        let answer = if self.keyed { answer.deduplicated(false) } else { answer };
        let run_id = answer.run_id();
        Ok(Answer::json(status, &answer)?.located(format!("/v1/runs/{run_id}")).of_run(run_id))
    }

    fn is_single(&self) -> bool {
        self.run.is_single()
    }
}

/// The run that a start gives.
pub enum Begun {
    Fresh {
        created_at: DateTime<Utc>,
    },
    /// The run of that name was there. The signal, if there was one, was delivered to it.
    Attached {
        row: Box<run::Run>,
        signal: Option<Delivered>,
    },
}

/// Starts a run in a transaction, or attaches to the one of its name.
pub async fn begin(tx: &mut Tx, tenant: &str, run: &NewRun, max_unread: u64) -> std::result::Result<Begun, Failed> {
    match start::start(tx, tenant, run, max_unread).await? {
        start::Started::Fresh { created_at } => Ok(Begun::Fresh { created_at }),
        // Attaching does not start a run whose signal was not taken.
        start::Started::Attached { signal: Some(Delivered::Full), .. } => {
            Err(Problem::rate_limited("the run has too many unread signals: try again later").into())
        }
        start::Started::Attached { run_id, signal } => {
            let row = run::find(&mut *tx, tenant, run_id).await?.ok_or_else(runs::unknown)?;
            Ok(Begun::Attached { row: Box::new(row), signal })
        }
        start::Started::QueueFull => Err(Problem::queue_full().into()),
        start::Started::Taken { run_id, ended: true } => Err(Problem::run_name_taken(run_id).into()),
        start::Started::Taken { run_id, ended: false } => Err(Problem::run_active(run_id).into()),
    }
}

/// What lenient handling answers to a known key: the run that it started, as it is now.
async fn again(api: &Api, tenant: &str, answer: Answer) -> Result<Answer> {
    let Some(run_id) = answer.run_id() else { return Ok(answer) };
    let row = run::find(&api.store, tenant, run_id).await?.ok_or_else(runs::unknown)?;
    let started = Started::attached(Box::new(row), None).deduplicated(true);
    Ok(Answer::json(StatusCode::OK, &started)?.located(format!("/v1/runs/{run_id}")).of_run(run_id))
}

/// A run as the body and the activity's policy want it; nothing is stored.
pub async fn plan(api: &Api, tenant: &str, activity: &str, mut body: Start) -> Result<NewRun> {
    activities::known(activity)?;
    let version = activity::find_latest(&api.store, tenant, activity).await?.ok_or_else(activities::unknown)?;
    let callback = callback::checked(api, tenant, &version.policy, body.callback.take()).await?;
    Ok(NewRun { callback, ..planned(api, version, body).await? })
}

/// The run that is asked for.
pub async fn planned(api: &Api, version: activity::Version, body: Start) -> Result<NewRun> {
    let policy: Policy = stored(&version.policy)?;
    let given = body.input.as_deref().map_or("null", RawValue::get);
    if let Some(schema) = &policy.input_schema {
        input::check(schema, given).await?;
    }
    let retry = merge(policy.retry, body.retry.unwrap_or_default()).map_err(Problem::validation)?;
    let start = start_at(body.start_at, body.delay)?;
    check_labels(&body.labels)?;
    let priority = body.priority.unwrap_or(NORMAL_PRIORITY);
    if !(1..=9).contains(&priority) {
        return Err(Problem::validation("priority: must be 1 to 9; 1 is first"));
    }
    let ms = |span: Option<Span>| span.map(|span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX));
    Ok(NewRun {
        run_id: Uuid::now_v7(),
        activity: version.activity,
        version: version.version,
        input: given.to_owned(),
        retry: serde_json::to_string(&retry).map_err(|e| Problem::internal(e.to_string()))?,
        // Checked to be at most 1000.
        max_attempts: retry.max_attempts as i32,
        priority,
        start,
        schedule_to_start_ms: ms(policy.timeouts.schedule_to_start),
        schedule_to_close_ms: ms(policy.timeouts.schedule_to_close),
        name: named(body.run_name, body.reuse)?,
        labels: body.labels,
        signal: body.signal.map(|signal| first_signal(api, signal)).transpose()?,
        callback: None,
    })
}

fn named(run_name: Option<String>, reuse: Option<Reused>) -> Result<Option<start::Named>> {
    let Some(run_name) = run_name else {
        return match reuse {
            None => Ok(None),
            Some(_) => Err(Problem::validation("reuse: it says what to do about a run_name, and there is none")),
        };
    };
    let visible = !run_name.chars().any(char::is_control);
    if !(1..=MAX_RUN_NAME_BYTES).contains(&run_name.len()) || !visible {
        return Err(Problem::validation(format!(
            "run_name: must be 1 to {MAX_RUN_NAME_BYTES} bytes without control characters"
        )));
    }
    let reuse = match reuse.unwrap_or(Reused::Reject) {
        Reused::Allow => Reuse::Allow,
        Reused::Reject => Reuse::Reject,
        Reused::RejectAlive => Reuse::RejectAlive,
        Reused::Attach => Reuse::Attach,
    };
    Ok(Some(start::Named { run_name, reuse }))
}

fn start_at(at: Option<DateTime<Utc>>, delay: Option<Span>) -> Result<StartAt> {
    let latest = chrono::TimeDelta::days(MAX_DELAY_DAYS);
    let start = match (at, delay) {
        (None, None) => StartAt::Now,
        (Some(_), Some(_)) => return Err(Problem::validation("delay: give either start_at or delay")),
        // Every past time means now, but PostgreSQL has none before 4713 BC.
        (Some(at), None) if at <= Utc::now() + latest => StartAt::At(at.max(DateTime::UNIX_EPOCH)),
        (None, Some(delay)) if chrono::TimeDelta::from_std(delay.0).is_ok_and(|delay| delay <= latest) => {
            StartAt::AfterMs(u64::try_from(delay.0.as_millis()).unwrap_or(u64::MAX))
        }
        _ => return Err(Problem::validation(format!("the start must be within {MAX_DELAY_DAYS} days"))),
    };
    Ok(start)
}

fn check_labels(labels: &BTreeMap<String, String>) -> Result<()> {
    if labels.len() > MAX_LABELS {
        return Err(Problem::validation(format!("labels: at most {MAX_LABELS}")));
    }
    for (label, value) in labels {
        name::check("labels", label)?;
        if value.len() > MAX_VALUE_BYTES || value.chars().any(char::is_control) {
            return Err(Problem::validation(format!(
                "labels.{label}: must be at most {MAX_VALUE_BYTES} bytes without control characters"
            )));
        }
    }
    Ok(())
}

fn first_signal(api: &Api, signal: FirstSignal) -> Result<Delivery> {
    name::check("signal.name", &signal.name)?;
    let payload = signal.payload.map_or_else(|| "null".to_owned(), |payload| payload.get().to_owned());
    let most = api.config.signals.max_payload_bytes;
    if payload.len() > most {
        return Err(Problem::too_large(most));
    }
    let idempotency_key = signal
        .idempotency_key
        .map(|key| request_key::check("signal.idempotency_key", &key, Handling::Strict))
        .transpose()?;
    Ok(Delivery { name: signal.name, payload, idempotency_key })
}

/// The policy's retry with some fields replaced.
fn merge(policy: Retry, fields: serde_json::Map<String, Value>) -> std::result::Result<Retry, String> {
    let Ok(Value::Object(mut merged)) = serde_json::to_value(policy) else {
        return Err("retry: the policy's own cannot be read".to_owned());
    };
    merged.extend(fields);
    let retry: Retry = serde_json::from_value(Value::Object(merged)).map_err(|e| format!("retry: {e}"))?;
    // The rules speak of the policy; here the caller wrote the field.
    retry.check().map_err(|message| message.trim_start_matches("policy.").to_owned())?;
    Ok(retry)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(fields: &str) -> std::result::Result<Retry, String> {
        merge(Retry::default(), serde_json::from_str(fields).unwrap())
    }

    #[test]
    fn only_the_given_fields_of_the_retry_are_replaced() {
        assert_eq!(merged("{}").unwrap(), Retry::default());
        let one = merged(r#"{"max_attempts": 1, "jitter": "none"}"#).unwrap();
        assert_eq!((one.max_attempts, one.backoff_coefficient), (1, 2.0));
        assert_eq!(one.initial_interval, Retry::default().initial_interval);
    }

    #[test]
    fn a_wrong_retry_is_refused_with_its_field() {
        assert!(merged(r#"{"max_attempts": 0}"#).unwrap_err().starts_with("retry.max_attempts"));
        assert!(merged(r#"{"max_attemps": 1}"#).unwrap_err().contains("max_attemps"));
        assert!(merged(r#"{"initial_interval": "soon"}"#).unwrap_err().contains("soon"));
        assert!(merged(r#"{"max_attempts": null}"#).is_err());
    }
}
