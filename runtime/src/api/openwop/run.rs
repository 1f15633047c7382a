//! How a run looks: its status in the specification's words, its owner, what went wrong, its tags and metadata.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::discovery::LOG_VERSION;
use super::ids;
use crate::api::error::Result;
use crate::api::extract::stored;
use crate::api::time::Time;
use crate::store::run;

/// Labels whose names begin so hold what a caller said with the start, and are no metadata.
pub const RESERVED: &str = "openwop.";
pub const TAG: &str = "openwop.tag.";
pub const SCOPE: &str = "openwop.scope";

/// Who vouches for the tenants' tokens.
const ISSUER: &str = "urn:deedbox:api-key";

/// A run as it is now. No field may be added: the form is closed.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopRun)]
pub struct Snapshot {
    run_id: String,
    workflow_id: String,
    status: &'static str,
    owner: Owner,
    event_log_schema_version: u32,
    /// While the run waits for someone.
    #[serde(skip_serializing_if = "Option::is_none")]
    current_node_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: BTreeMap<String, String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OpenwopOwner)]
pub struct Owner {
    tenant: String,
    subject: Subject,
}

/// Tokens speak for their tenant: which of them has started a run is not kept.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopSubject)]
struct Subject {
    issuer: &'static str,
    subject_id: String,
    tenant: String,
    lane: &'static str,
    kind: &'static str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OpenwopFailure)]
pub struct Failure {
    code: String,
    message: String,
    /// An object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    details: Option<Value>,
}

impl Snapshot {
    pub fn new(tenant: &str, row: run::Run) -> Result<Self> {
        let status = status(&row);
        let (tags, metadata) = said(stored(&row.labels)?);
        Ok(Self {
            run_id: ids::bound(tenant, row.run_id),
            status,
            owner: Owner::new(tenant),
            event_log_schema_version: LOG_VERSION,
            current_node_id: status.starts_with("waiting-").then(|| row.activity.clone()),
            workflow_id: row.activity,
            started_at: row.started_at.map(Time::from),
            completed_at: row.ended_at.map(Time::from),
            error: row.failure.as_deref().filter(|_| status == "failed").map(Failure::read),
            tags,
            metadata,
        })
    }
}

impl Owner {
    pub fn new(tenant: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            subject: Subject {
                issuer: ISSUER,
                subject_id: tenant.to_owned(),
                tenant: tenant.to_owned(),
                lane: "api-key",
                kind: "workload",
            },
        }
    }
}

/// A run's status. What its owner wants of it goes before what it does, and a run between two attempts is still
/// running: it waits for nobody.
pub fn status(run: &run::Run) -> &'static str {
    match run.state.as_str() {
        "completed" => "completed",
        "failed" => "failed",
        "cancelled" => "cancelled",
        _ if run.cancel_requested_at.is_some() => "cancelling",
        _ if run.paused_at.is_some() => "paused",
        // A person, or a system, says what became of an effect.
        "waiting" if run.waiting_effect.is_some() => "waiting-approval",
        "waiting" if run.waiting_signal.is_some() => "waiting-external",
        "queued" if run.started_at.is_none() => "pending",
        _ => "running",
    }
}

/// The tags and the metadata among a run's labels.
fn said(labels: BTreeMap<String, String>) -> (Vec<String>, BTreeMap<String, String>) {
    let (reserved, metadata): (BTreeMap<_, _>, _) =
        labels.into_iter().partition(|(name, _)| name.starts_with(RESERVED));
    let number = |name: &str| name.strip_prefix(TAG).and_then(|number| number.parse::<u32>().ok());
    let tags: BTreeMap<u32, String> =
        reserved.into_iter().filter_map(|(name, tag)| Some((number(&name)?, tag))).collect();
    (tags.into_values().collect(), metadata)
}

/// A failure as it is stored.
#[derive(Deserialize)]
struct Stored {
    code: String,
    message: String,
    details: Option<Value>,
}

impl Failure {
    /// Reads a stored failure. A guest can write what no reader of JSON takes.
    pub fn read(json: &str) -> Self {
        match serde_json::from_str::<Stored>(json) {
            Ok(Stored { code, message, details }) => Self {
                code: error_code(&code),
                message: if message.is_empty() { "the activity gave no message".to_owned() } else { message },
                details: details.filter(Value::is_object),
            },
            Err(_) => Self::coded("failed"),
        }
    }

    /// One of which only the code is known.
    pub fn coded(code: &str) -> Self {
        Self { code: error_code(code), message: "the run failed".to_owned(), details: None }
    }
}

/// A failure's code as the specification allows it: one of its own, or a vendor's.
fn error_code(code: &str) -> String {
    match code {
        "timed-out" => "run_timeout".to_owned(),
        "out-of-memory" => "sandbox_memory_exceeded".to_owned(),
        "trap" | "stack-overflow" => "sandbox_invocation_error".to_owned(),
        own => {
            let lower = own.to_ascii_lowercase();
            let words: String = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            let first = if words.starts_with(|c: char| c.is_ascii_lowercase()) { "" } else { "code_" };
            format!("deedbox.{first}{words}")
        }
    }
}

/// The outputs of a completed run, which the specification wants as an object.
pub fn outputs(output: Option<&str>) -> Value {
    match output.map(serde_json::from_str) {
        Some(Ok(Value::Object(outputs))) => Value::Object(outputs),
        None | Some(Ok(Value::Null) | Err(_)) => Value::Object(serde_json::Map::new()),
        Some(Ok(value)) => serde_json::json!({ "output": value }),
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn row(state: &str) -> run::Run {
        run::Run {
            run_id: Uuid::nil(),
            activity: "conformance-noop".to_owned(),
            version: 1,
            state: state.to_owned(),
            input: "{}".to_owned(),
            output: None,
            failure: None,
            max_attempts: 3,
            attempts: 1,
            spent: 0,
            due_at: None,
            waiting_effect: None,
            waiting_signal: None,
            priority: 5,
            run_name: None,
            labels: "{}".to_owned(),
            close_by: None,
            paused_at: None,
            cancel_requested_at: None,
            cancel_reason: None,
            created_at: DateTime::UNIX_EPOCH,
            started_at: Some(DateTime::UNIX_EPOCH),
            ended_at: None,
        }
    }

    /// Every state of a run, and every wish of its owner.
    #[test]
    fn every_run_has_a_status_of_the_specification() {
        let now = Some(DateTime::UNIX_EPOCH);
        let with = |state, change: fn(&mut run::Run)| {
            let mut row = row(state);
            change(&mut row);
            row
        };
        let table = [
            (with("queued", |run| run.started_at = None), "pending"),
            (row("queued"), "running"),
            (row("running"), "running"),
            (row("waiting"), "running"),
            (with("waiting", |run| run.waiting_signal = Some("go".to_owned())), "waiting-external"),
            (with("waiting", |run| run.waiting_effect = Some(vec![0; 32])), "waiting-approval"),
            (row("completed"), "completed"),
            (row("failed"), "failed"),
            (row("cancelled"), "cancelled"),
        ];
        for (mut run, expected) in table {
            assert_eq!(status(&run), expected, "{}", run.state);
            let ended = matches!(expected, "completed" | "failed" | "cancelled");
            run.paused_at = now;
            assert_eq!(status(&run), if ended { expected } else { "paused" });
            run.cancel_requested_at = now;
            assert_eq!(status(&run), if ended { expected } else { "cancelling" });
        }
    }

    #[test]
    fn labels_are_metadata_but_for_those_of_the_profile() {
        let mut run = row("queued");
        run.labels = r#"{"openwop.tag.10":"c","openwop.tag.2":"b","openwop.scope":"s","team":"red"}"#.to_owned();
        let snapshot = serde_json::to_value(Snapshot::new("acme", run).unwrap()).unwrap();
        assert_eq!(snapshot["tags"], json!(["b", "c"]), "in their order");
        assert_eq!(snapshot["metadata"], json!({ "team": "red" }));
    }

    #[test]
    fn a_failure_has_a_code_of_the_specification_or_of_a_vendor() {
        let codes = [
            ("timed-out", "run_timeout"),
            ("trap", "sandbox_invocation_error"),
            ("out-of-memory", "sandbox_memory_exceeded"),
            ("conformance-failure", "deedbox.conformance_failure"),
            ("Card declined!", "deedbox.card_declined_"),
            ("42", "deedbox.code_42"),
            ("", "deedbox.code_"),
        ];
        for (code, shown) in codes {
            assert_eq!(error_code(code), shown);
        }
        let shown = serde_json::to_value(Failure::read(r#"{"code":"a","message":"","details":[1]}"#)).unwrap();
        assert_eq!(shown, json!({ "code": "deedbox.a", "message": "the activity gave no message" }));
        let broken = serde_json::to_value(Failure::read(r#"{"code":"a","message":"\ud800"}"#)).unwrap();
        assert_eq!(broken, json!({ "code": "deedbox.failed", "message": "the run failed" }));
    }

    #[test]
    fn outputs_are_an_object() {
        assert_eq!(outputs(Some(r#"{"a":1}"#)), json!({ "a": 1 }));
        assert_eq!(outputs(Some("7")), json!({ "output": 7 }));
        assert_eq!(outputs(Some("null")), json!({}));
        assert_eq!(outputs(None), json!({}));
    }
}
