//! The closed forms of the profile's answers, as the specification states them. The grammars of ids are the
//! specification's own file.

use std::sync::LazyLock;

use jsonschema::{Registry, Validator};
use serde_json::{Value, json};

const IDS: &str = "https://openwop.dev/spec/v2/ids.schema.json";

const STATUSES: [&str; 10] = [
    "pending",
    "running",
    "paused",
    "waiting-approval",
    "waiting-input",
    "waiting-external",
    "completed",
    "failed",
    "cancelling",
    "cancelled",
];

fn id(kind: &str) -> Value {
    json!({ "$ref": format!("{IDS}#/$defs/{kind}") })
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

fn text() -> Value {
    json!({ "type": "string", "minLength": 1 })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

/// Nothing is fetched.
fn compiled(schema: &Value) -> Validator {
    let path = format!("{}/fixtures/ids.schema.json", env!("CARGO_MANIFEST_DIR"));
    let ids: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let registry = Registry::new().add(IDS, ids).unwrap().prepare().unwrap();
    let options = jsonschema::options().with_registry(&registry).offline();
    options.should_validate_formats(true).build(schema).unwrap()
}

fn error() -> Value {
    let vendor = "^(?!openwop\\.)[a-z][a-z0-9]*(-[a-z0-9]+)*\\.[a-z][a-z0-9_]*$";
    let code = json!({ "anyOf": [
        { "enum": ["run_timeout", "sandbox_memory_exceeded", "sandbox_invocation_error"] },
        { "type": "string", "pattern": vendor },
    ] });
    object(&["code", "message"], json!({ "code": code, "message": text(), "details": { "type": "object" } }))
}

static SNAPSHOT: LazyLock<Value> = LazyLock::new(|| {
    let subject = object(
        &["issuer", "subjectId", "tenant", "lane", "kind"],
        json!({
            "issuer": { "type": "string", "pattern": "^\\S{1,1024}$" },
            "subjectId": id("subjectId"),
            "tenant": id("tenantId"),
            "lane": { "const": "api-key" },
            "kind": { "enum": ["user", "agent", "workload"] },
        }),
    );
    object(
        &["runId", "workflowId", "status", "owner", "eventLogSchemaVersion"],
        json!({
            "runId": id("runId"),
            "workflowId": id("workflowId"),
            "status": { "enum": STATUSES },
            "owner": object(&["tenant", "subject"], json!({ "tenant": id("tenantId"), "subject": subject })),
            "eventLogSchemaVersion": { "const": 3 },
            "currentNodeId": id("nodeId"),
            "startedAt": time(),
            "completedAt": time(),
            "error": error(),
            "tags": { "type": "array", "items": { "type": "string", "maxLength": 256 }, "maxItems": 100 },
            "metadata": { "type": "object" },
        }),
    )
});

static EVENT: LazyLock<Value> = LazyLock::new(|| {
    // What the specification registers, of what a run of ours can come to; else a type of our own.
    let known = ["run.started", "run.completed", "run.failed", "run.cancelled", "run.paused", "run.resumed"];
    let own = "^(?!openwop\\.)deedbox\\.[a-z][a-z0-9]*(-[a-z0-9]+)*(\\.[a-z][a-z0-9]*(-[a-z0-9]+)*)?$";
    let kind =
        json!({ "anyOf": [{ "enum": known }, { "enum": ["node.started", "node.suspended"] }, { "pattern": own }] });
    object(
        &["eventId", "runId", "type", "payload", "timestamp", "sequence", "schemaVersion"],
        json!({
            "eventId": id("eventId"),
            "runId": id("runId"),
            "nodeId": id("nodeId"),
            "type": kind,
            "payload": { "type": "object" },
            "timestamp": time(),
            "sequence": { "type": "integer", "minimum": 0 },
            "schemaVersion": { "type": "integer", "minimum": 1 },
        }),
    )
});

static CREATED: LazyLock<Validator> = LazyLock::new(|| {
    compiled(&object(
        &["runId", "status", "eventsUrl"],
        json!({ "runId": id("runId"), "status": { "const": "pending" }, "eventsUrl": text(), "statusUrl": text() }),
    ))
});
static SNAPSHOTS: LazyLock<Validator> = LazyLock::new(|| compiled(&SNAPSHOT));
static EVENTS: LazyLock<Validator> = LazyLock::new(|| compiled(&EVENT));
static LIST: LazyLock<Validator> = LazyLock::new(|| {
    let runs = json!({ "type": "array", "items": SNAPSHOT.clone() });
    compiled(&object(&["runs"], json!({ "runs": runs, "nextCursor": text() })))
});
static POLL: LazyLock<Validator> = LazyLock::new(|| {
    compiled(&object(
        &["runId", "events", "lastSequence", "status", "isTerminal"],
        json!({
            "runId": id("runId"),
            "events": { "type": "array", "items": EVENT.clone() },
            "lastSequence": { "type": "integer", "minimum": -1 },
            "status": { "enum": STATUSES },
            "isTerminal": { "type": "boolean" },
        }),
    ))
});

#[track_caller]
fn holds(schema: &Validator, value: &Value) -> Value {
    let broken: Vec<String> = schema.iter_errors(value).map(|error| error.to_string()).collect();
    assert_eq!(broken, Vec::<String>::new(), "{value}");
    value.clone()
}

/// The whole id of a run that a start has answered.
#[track_caller]
pub fn created(value: &Value) -> String {
    holds(&CREATED, value)["runId"].as_str().unwrap().to_owned()
}

#[track_caller]
pub fn snapshot(value: &Value) -> Value {
    holds(&SNAPSHOTS, value)
}

#[track_caller]
pub fn event(value: &Value) -> Value {
    holds(&EVENTS, value)
}

#[track_caller]
pub fn list(value: &Value) -> Value {
    holds(&LIST, value)
}

#[track_caller]
pub fn poll(value: &Value) -> Value {
    holds(&POLL, value)
}

/// The forms themselves must be able to refuse.
#[test]
fn the_forms_refuse_what_is_none_of_theirs() {
    let good = json!({ "eventId": "0123456789abcdef", "runId": "acme/0123456789abcdef", "type": "run.paused", "payload": {},
        "timestamp": "2026-01-01T00:00:00Z", "sequence": 0, "schemaVersion": 1 });
    assert!(EVENTS.is_valid(&good));
    for (field, value) in [
        ("eventId", json!("short")),
        ("runId", json!("0123456789abcdef")),
        ("type", json!("run.begun")),
        ("type", json!("openwop.own")),
        ("sequence", json!(-1)),
        ("timestamp", json!("now")),
        ("more", json!(1)),
    ] {
        let mut bad = good.clone();
        bad[field] = value;
        assert!(!EVENTS.is_valid(&bad), "{bad}");
    }
    assert!(!SNAPSHOTS.is_valid(&json!({ "runId": "acme/0123456789abcdef" })));
}
