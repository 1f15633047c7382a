//! What a message says and how it is signed. The body of one end of a run is the same in every try; the timestamp, and with it
//! the signature, is that of the try.

use chrono::SecondsFormat;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::store::callback::Due;
use crate::store::{Error, Result};
use crate::webhook::standard::{ID, Keys, SIGNATURE, TIMESTAMP};

const USER_AGENT: &str = concat!("deedbox/", env!("CARGO_PKG_VERSION"));

#[derive(Serialize)]
struct Message<'a> {
    /// `run.` and the state in which the run ended.
    #[serde(rename = "type")]
    kind: String,
    timestamp: &'a str,
    data: Data<'a>,
}

#[derive(Serialize)]
struct Data<'a> {
    run_id: Uuid,
    activity: &'a str,
    version: i32,
    state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_name: Option<&'a str>,
    labels: &'a RawValue,
    ended_at: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    output_omitted: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    failure_omitted: bool,
}

/// The JSON text. One that would be larger than `max_bytes` has no output and no failure, and says so.
pub fn body(due: &Due, max_bytes: usize) -> Result<Vec<u8>> {
    let whole = write(due, due.omitted)?;
    if whole.len() <= max_bytes || due.omitted { Ok(whole) } else { write(due, true) }
}

fn write(due: &Due, omitting: bool) -> Result<Vec<u8>> {
    let ended_at = due.ended_at.to_rfc3339_opts(SecondsFormat::Micros, true);
    let message = Message {
        kind: format!("run.{}", due.state),
        timestamp: &ended_at,
        data: Data {
            run_id: due.run_id,
            activity: &due.activity,
            version: due.version,
            state: &due.state,
            run_name: due.run_name.as_deref(),
            labels: raw(&due.labels)?,
            ended_at: &ended_at,
            output: kept(&due.output, omitting)?,
            failure: kept(&due.failure, omitting)?,
            output_omitted: omitting && due.state == "completed",
            failure_omitted: omitting && due.state == "failed",
        },
    };
    serde_json::to_vec(&message).map_err(|e| Error::Corrupt(format!("a message cannot be written: {e}")))
}

fn kept(text: &Option<String>, omitting: bool) -> Result<Option<&RawValue>> {
    text.as_deref().filter(|_| !omitting).map(raw).transpose()
}

fn raw(text: &str) -> Result<&RawValue> {
    serde_json::from_str(text).map_err(|_| Error::Corrupt("a run's output, failure or labels".to_owned()))
}

/// `now`: seconds since 1970.
pub fn headers(keys: &Keys, id: &str, now: u64, body: &[u8]) -> Result<HeaderMap> {
    let timestamp = now.to_string();
    let signature = keys.sign(id, &timestamp, body);
    let mut headers = HeaderMap::new();
    for (name, value) in [(ID, id), (TIMESTAMP, timestamp.as_str()), (SIGNATURE, signature.as_str())] {
        let value = HeaderValue::from_str(value).map_err(|_| Error::Corrupt("the id of a message".to_owned()))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use serde_json::{Value, json};

    use super::*;

    fn due(state: &str, output: Option<&str>, failure: Option<&str>) -> Due {
        let text = |text: &str| text.to_owned();
        Due {
            tenant: text("acme"),
            run_id: Uuid::nil(),
            lease: Uuid::nil(),
            url: text("https://hooks.example.com/"),
            secret: text("webhook"),
            webhook_id: text("msg_1"),
            tries: 1,
            activity: text("charge"),
            version: 3,
            state: text(state),
            run_name: None,
            labels: text(r#"{"shop":"berlin"}"#),
            ended_at: DateTime::from_timestamp_micros(1_700_000_000_000_001).unwrap(),
            output: output.map(text),
            failure: failure.map(text),
            omitted: false,
            policy: text("{}"),
        }
    }

    fn told(due: &Due, max_bytes: usize) -> Value {
        serde_json::from_slice(&body(due, max_bytes).unwrap()).unwrap()
    }

    #[test]
    fn a_message_says_how_the_run_ended_and_nothing_else() {
        assert_eq!(
            told(&due("completed", Some("[1]"), None), 1_000),
            json!({ "type": "run.completed", "timestamp": "2023-11-14T22:13:20.000001Z", "data": {
                "run_id": Uuid::nil(), "activity": "charge", "version": 3, "state": "completed",
                "labels": { "shop": "berlin" }, "ended_at": "2023-11-14T22:13:20.000001Z", "output": [1] } })
        );
        let failed = told(&due("failed", None, Some(r#"{"code":"x"}"#)), 1_000);
        assert_eq!((&failed["type"], &failed["data"]["failure"]), (&json!("run.failed"), &json!({ "code": "x" })));
        let cancelled = told(&due("cancelled", None, None), 1_000);
        assert_eq!(cancelled["type"], "run.cancelled");
        for absent in ["output", "failure", "output_omitted", "failure_omitted", "run_name"] {
            assert_eq!(cancelled["data"].get(absent), None, "{absent}");
        }
    }

    #[test]
    fn an_output_keeps_its_exact_text() {
        let exact = r#"{"n": 9007199254740993, "e":1.0e2}"#;
        let text = String::from_utf8(body(&due("completed", Some(exact), None), 1_000).unwrap()).unwrap();
        assert!(text.contains(exact), "{text}");
    }

    #[test]
    fn what_is_too_large_is_left_out_and_said_to_be() {
        let large = format!("\"{}\"", "x".repeat(1_000));
        let completed = told(&due("completed", Some(&large), None), 1_000);
        assert_eq!((&completed["data"]["output_omitted"], completed["data"].get("output")), (&json!(true), None));
        let failed = told(&due("failed", None, Some(&large)), 1_000);
        assert_eq!((&failed["data"]["failure_omitted"], failed["data"].get("failure")), (&json!(true), None));
        let unread = Due { omitted: true, ..due("completed", None, None) };
        assert_eq!(told(&unread, 1_000)["data"]["output_omitted"], true);
        // Whole at exactly the limit.
        let fits = due("completed", Some("[1]"), None);
        let length = body(&fits, usize::MAX).unwrap().len();
        assert_eq!(told(&fits, length)["data"]["output"], json!([1]));
        assert_eq!(told(&fits, length - 1)["data"]["output_omitted"], true);
    }
}
