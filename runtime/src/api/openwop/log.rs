//! A run's log: what happened to it, as the specification writes it. Where it has no word, the type is ours, under
//! `deedbox.`. Nothing of a guest or a caller is told but the run's own outputs, code of failure and reason.
//!
//! An event must say the same whenever it is told. Of the run it takes only what does not change any more: the outputs of a
//! completed one and the reason of a cancelled one, neither of which begins again.

use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{ids, run as view};
use crate::api::time::Time;
use crate::store::event::Numbered;
use crate::store::run::Run;

/// The form of one event.
const SCHEMA_VERSION: u32 = 1;

/// What the one node of every workflow is.
const NODE_TYPE: &str = "deedbox.activity";

/// One event. No field may be added: the form is closed.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OpenwopEvent)]
pub struct Event {
    event_id: String,
    run_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: String,
    #[schema(value_type = Object)]
    payload: Value,
    timestamp: Time,
    /// From 0.
    pub sequence: i64,
    schema_version: u32,
}

impl Event {
    /// An event of a run. `run` was read after it.
    pub fn new(tenant: &str, run: &Run, numbered: Numbered) -> Self {
        let Numbered { sequence, event } = numbered;
        // What cannot be read tells nothing; the kind still does.
        let data: Map<String, Value> = serde_json::from_str(&event.data).unwrap_or_default();
        let (kind, payload) = told(tenant, run, &event.kind, data);
        Self {
            event_id: format!("{}.{sequence}", run.run_id),
            run_id: ids::bound(tenant, run.run_id),
            node_id: kind.starts_with("node.").then(|| run.activity.clone()),
            kind,
            payload,
            timestamp: event.at.into(),
            sequence: sequence - 1,
            schema_version: SCHEMA_VERSION,
        }
    }

    /// Whether it is told to those who follow the run's own steps.
    pub fn is_update(&self) -> bool {
        self.kind.starts_with("run.") || self.is_suspension()
    }

    pub fn is_suspension(&self) -> bool {
        self.kind == "node.suspended"
    }
}

/// The type and the payload. The first attempt is the run's beginning, another one is the node's.
fn told(tenant: &str, run: &Run, kind: &str, data: Map<String, Value>) -> (String, Value) {
    let node = || json!(run.activity);
    let attempt = data.get("attempt").and_then(Value::as_i64).unwrap_or(1);
    let text = |name: &str| data.get(name).and_then(Value::as_str);
    let payload = match kind {
        "run.started" if attempt > 1 => {
            let payload = json!({ "nodeId": node(), "typeId": NODE_TYPE, "attempt": attempt - 1 });
            return ("node.started".to_owned(), payload);
        }
        "run.started" => json!({ "workflowId": node(), "transport": "rest", "owner": view::Owner::new(tenant) }),
        "run.waiting" if text("effect_id").is_some() || text("signal").is_some() => {
            return ("node.suspended".to_owned(), suspended(tenant, run, text("effect_id"), text("signal")));
        }
        "run.completed" => json!({ "outputs": view::outputs(run.output.as_deref()) }),
        // A failed run can begin again and fail in other words: the event has the code alone.
        "run.failed" => {
            json!({ "error": view::Failure::coded(text("code").unwrap_or("failed")), "failedNodeId": node() })
        }
        "run.cancelled" => run.cancel_reason.as_ref().map_or_else(|| json!({}), |reason| json!({ "reason": reason })),
        // The only one that there is here, whoever has paused the run.
        "run.paused" => json!({ "drainPolicy": "immediate" }),
        "run.resumed" => json!({}),
        own => return (format!("deedbox.{own}"), renamed(tenant, data)),
    };
    (kind.to_owned(), payload)
}

/// What a run waits for: somebody's word on an effect, or a signal.
fn suspended(tenant: &str, run: &Run, effect: Option<&str>, signal: Option<&str>) -> Value {
    match (effect, signal) {
        (None, Some(signal)) => json!({
            "nodeId": run.activity, "interruptId": ids::bound(tenant, run.run_id), "kind": "external-event", "key": signal,
        }),
        (effect, _) => json!({
            "nodeId": run.activity, "interruptId": ids::bound(tenant, effect.unwrap_or_default()), "kind": "approval",
        }),
    }
}

/// Our own data in the specification's spelling.
fn renamed(tenant: &str, data: Map<String, Value>) -> Value {
    let renamed = data.into_iter().map(|(name, value)| match (name.as_str(), value) {
        ("effect_id", Value::String(id)) => ("effectId".to_owned(), json!(ids::bound(tenant, id))),
        ("due_at", value) => ("dueAt".to_owned(), value),
        (_, value) => (name, value),
    });
    Value::Object(renamed.collect())
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;
    use crate::store::event::{self, Place};

    fn run() -> Run {
        Run {
            run_id: Uuid::nil(),
            activity: "pay".to_owned(),
            version: 1,
            state: "running".to_owned(),
            input: "{}".to_owned(),
            output: Some(r#"{"id":7}"#.to_owned()),
            failure: Some(r#"{"code":"later","message":"another end"}"#.to_owned()),
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
            cancel_reason: Some("lunch".to_owned()),
            created_at: DateTime::UNIX_EPOCH,
            started_at: None,
            ended_at: None,
        }
    }

    fn event(kind: &str, data: &Value) -> Event {
        let place = Place { turn: 1, event_id: 1 };
        let (kind, data, at) = (kind.to_owned(), data.to_string(), DateTime::UNIX_EPOCH);
        let event = event::Event { place, run_id: Uuid::nil(), activity: "pay".to_owned(), kind, data, at };
        Event::new("acme", &run(), Numbered { sequence: 3, event })
    }

    fn payload(kind: &str, data: Value) -> (String, Value) {
        let event = event(kind, &data);
        (event.kind, event.payload)
    }

    /// Every kind that there is.
    #[test]
    fn every_event_is_told_in_words_that_the_specification_knows_or_in_ours() {
        let (effect, nil) = ("ab".repeat(32), Uuid::nil());
        let table = [
            ("run.queued", json!({}), "deedbox.run.queued", json!({})),
            (
                "run.started",
                json!({ "attempt": 2 }),
                "node.started",
                json!({ "nodeId": "pay", "typeId": "deedbox.activity", "attempt": 1 }),
            ),
            ("run.waiting", json!({ "due_at": "x" }), "deedbox.run.waiting", json!({ "dueAt": "x" })),
            (
                "run.waiting",
                json!({ "effect_id": effect }),
                "node.suspended",
                json!({ "nodeId": "pay", "interruptId": format!("acme/{effect}"), "kind": "approval" }),
            ),
            (
                "run.waiting",
                json!({ "signal": "go", "due_at": "x" }),
                "node.suspended",
                json!({ "nodeId": "pay", "interruptId": format!("acme/{nil}"), "kind": "external-event", "key": "go" }),
            ),
            ("run.completed", json!({}), "run.completed", json!({ "outputs": { "id": 7 } })),
            (
                "run.failed",
                json!({ "code": "declined" }),
                "run.failed",
                json!({ "error": { "code": "deedbox.declined", "message": "the run failed" }, "failedNodeId": "pay" }),
            ),
            ("run.cancelled", json!({}), "run.cancelled", json!({ "reason": "lunch" })),
            ("run.cancelling", json!({}), "deedbox.run.cancelling", json!({})),
            ("run.paused", json!({}), "run.paused", json!({ "drainPolicy": "immediate" })),
            ("run.resumed", json!({}), "run.resumed", json!({})),
            (
                "signal.received",
                json!({ "name": "go", "sequence": 1 }),
                "deedbox.signal.received",
                json!({ "name": "go", "sequence": 1 }),
            ),
            (
                "effect.escaped",
                json!({ "effect_id": effect, "provider": "stripe" }),
                "deedbox.effect.escaped",
                json!({ "effectId": format!("acme/{effect}"), "provider": "stripe" }),
            ),
            (
                "effect.resolved",
                json!({ "state": "released" }),
                "deedbox.effect.resolved",
                json!({ "state": "released" }),
            ),
            ("effect.doubled", json!({}), "deedbox.effect.doubled", json!({})),
        ];
        for (kind, data, expected, told) in table {
            assert_eq!(payload(kind, data), (expected.to_owned(), told));
        }
        let (kind, begun) = payload("run.started", json!({ "attempt": 1 }));
        assert_eq!(
            (kind.as_str(), &begun["workflowId"], &begun["transport"]),
            ("run.started", &json!("pay"), &json!("rest"))
        );
        assert_eq!(begun["owner"]["subject"]["tenant"], "acme");
    }

    #[test]
    fn an_event_is_numbered_from_0_and_names_its_run_in_full() {
        let shown = serde_json::to_value(event("run.paused", &json!({}))).unwrap();
        assert_eq!((&shown["sequence"], &shown["schemaVersion"]), (&json!(2), &json!(1)));
        assert_eq!(shown["runId"], format!("acme/{}", Uuid::nil()));
        assert!(shown["eventId"].as_str().unwrap().len() >= 16 && shown.get("nodeId").is_none(), "{shown}");
        assert_eq!(event("run.started", &json!({ "attempt": 2 })).node_id.as_deref(), Some("pay"));
    }

    #[test]
    fn our_own_types_are_no_updates() {
        let is_update = |kind: &str, data: Value| event(kind, &data).is_update();
        assert!(is_update("run.completed", json!({})) && is_update("run.waiting", json!({ "signal": "go" })));
        assert!(!is_update("run.queued", json!({})) && !is_update("run.started", json!({ "attempt": 2 })));
    }
}
