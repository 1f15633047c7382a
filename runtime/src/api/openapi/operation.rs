//! What an operation has because of what it is: whether it is secured, changes something, takes a body, names something in its
//! path.

use serde_json::{Value, json};

use super::{parameters, refusals};

/// The one that is not a caller's: its sender's own id is its request key.
const DELIVERY: &str = "deliver_webhook";
/// Those that let the caller choose how strictly its key is handled.
const LENIENT: [&str; 2] = ["start_run", "deliver_signal"];

/// What the rules ask of an operation.
#[derive(Clone, Copy)]
pub struct Kind {
    pub secured: bool,
    pub changes: bool,
    /// It has a request key of its caller's.
    pub keyed: bool,
    pub names: bool,
    /// It can be asked in a wrong way.
    pub asked: bool,
    pub openwop: bool,
}

pub fn complete(path: &str, method: &str, operation: &mut Value) {
    divide(operation);
    if let Some(contents) = operation.pointer_mut("/requestBody/content").and_then(Value::as_object_mut) {
        contents.iter_mut().for_each(|(kind, content)| body(kind, &mut content["schema"]));
    }
    let id = operation["operationId"].as_str().unwrap_or_default().to_owned();
    let mut common = parameters::of_path(path, method);
    let changes = method != "get";
    let keyed = changes && id != DELIVERY;
    let openwop = operation["tags"][0] == "openwop";
    if keyed {
        common.push("IdempotencyKey");
    }
    if LENIENT.contains(&id.as_str()) {
        common.push("Prefer");
    }
    if openwop {
        common.push("OpenwopVersion");
    }
    let mut all: Vec<Value> = common.into_iter().map(parameters::reference).collect();
    let mut own = operation["parameters"].as_array().cloned().unwrap_or_default();
    own.iter_mut().for_each(|parameter| leave_out(&mut parameter["schema"]));
    all.extend(own);
    let asked = changes || !all.is_empty();
    if !all.is_empty() {
        operation["parameters"] = Value::Array(all);
    }
    let secured = operation.get("security").is_some();
    let kind = Kind { secured, changes, keyed, names: path.contains('{'), asked, openwop };
    answers(operation, kind);
}

/// The first sentence is the summary, and the first tag the only one.
fn divide(operation: &mut Value) {
    if let Some(tags) = operation.get_mut("tags").and_then(Value::as_array_mut) {
        tags.truncate(1);
    }
    let line = |value: &Value| value.as_str().unwrap_or_default().replace('\n', " ");
    let (summary, rest) = (line(&operation["summary"]), line(&operation["description"]));
    let (first, more) = summary.split_once(". ").map_or((summary.as_str(), ""), |(first, more)| (first, more));
    let description = [more, &rest].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ");
    operation["summary"] = json!(first.trim_end_matches('.'));
    match (description.is_empty(), operation.as_object_mut()) {
        (true, Some(members)) => drop(members.remove("description")),
        (true, None) => {}
        (false, _) => operation["description"] = json!(description),
    }
}

fn body(kind: &str, schema: &mut Value) {
    leave_out(schema);
    if kind != "application/json" {
        *schema = json!({ "type": "string", "format": "binary" });
    }
}

/// What may be left out is not `null` when it is there.
fn leave_out(schema: &mut Value) {
    let is_null = |choice: &&Value| **choice == "null" || choice["type"] == "null";
    let some = |choices: &Value| {
        let choices = choices.as_array()?;
        choices.iter().find(is_null)?;
        choices.iter().find(|choice| !is_null(choice)).cloned()
    };
    if let Some(some) = some(&schema["oneOf"]) {
        *schema = some;
    }
    if let Some(kind) = some(&schema["type"]) {
        schema["type"] = kind;
    }
}

fn answers(operation: &mut Value, kind: Kind) {
    let Some(responses) = operation["responses"].as_object_mut() else { return };
    for (status, response) in responses.iter_mut() {
        if refusals::is_refusal(status) {
            *response = refusals::reference(status);
        } else {
            done(status, response, kind.changes);
        }
    }
    for status in refusals::of(kind) {
        responses.entry(status).or_insert_with(|| refusals::reference(status));
    }
}

/// Completes an answer that is no refusal.
fn done(status: &str, response: &mut Value, changes: bool) {
    if response["description"].as_str().is_none_or(str::is_empty) {
        response["description"] = json!(match status {
            "201" => "It was made.",
            "202" => "It was taken.",
            "204" => "It was done.",
            "304" => "What the caller has is still right.",
            _ => "As it was asked for.",
        });
    }
    response["headers"]["x-request-id"] = json!({ "$ref": "#/components/headers/RequestId" });
    if changes {
        response["headers"]["OpenWOP-Idempotent-Replay"] = json!({ "$ref": "#/components/headers/Replay" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_left_out_is_not_null() {
        let of = |mut schema: Value| {
            leave_out(&mut schema);
            schema
        };
        let text = json!({ "type": "string" });
        assert_eq!(of(json!({ "type": ["string", "null"] })), text);
        assert_eq!(of(json!({ "oneOf": [{ "type": "null" }, text] })), text);
        assert_eq!(of(text.clone()), text);
        assert_eq!(of(json!({})), json!({}));
    }

    #[test]
    fn the_first_sentence_is_the_summary() {
        let mut operation = json!({ "summary": "Pauses a run. It\nwaits.", "description": "So long." });
        divide(&mut operation);
        assert_eq!(operation, json!({ "summary": "Pauses a run", "description": "It waits. So long." }));
        let mut short = json!({ "summary": "Pauses a run." });
        divide(&mut short);
        assert_eq!(short, json!({ "summary": "Pauses a run" }));
    }
}
