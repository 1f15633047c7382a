//! `deedbox:activity/activities`: every way to end an attempt that the interface has.

use std::time::Duration;

use deedbox_guest::__private::{CallResult, Registration, Schemas, inventory};
use deedbox_guest::prelude::*;
use deedbox_guest::serde_json;

/// Returns its input.
#[activity]
fn noop(_ctx: &Context, input: Value) -> Result<Value, Failure> {
    Ok(input)
}

#[data]
struct Fail {
    code: String,
    message: String,
    kind: Kind,
    retry_after_ms: Option<u64>,
    details: Option<Value>,
}

#[data]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Retryable,
    Permanent,
}

/// Fails as told.
#[activity]
fn fail(_ctx: &Context, input: Fail) -> Result<(), Failure> {
    let mut failure = match input.kind {
        Kind::Retryable => Failure::retryable(input.code, input.message),
        Kind::Permanent => Failure::permanent(input.code, input.message),
    };
    if let Some(delay) = input.retry_after_ms {
        failure = failure.retry_after(Duration::from_millis(delay));
    }
    if let Some(details) = input.details {
        failure = failure.details(&details);
    }
    Err(failure)
}

#[data]
struct FailUntil {
    attempt: u32,
}

/// Fails retryably in every attempt before the given one, and returns the number of this one.
#[activity]
fn fail_until(ctx: &Context, input: FailUntil) -> Result<u32, Failure> {
    let attempt = ctx.run().attempt();
    if attempt < input.attempt {
        return Err(Failure::retryable("not-yet", format!("attempt {attempt}")));
    }
    Ok(attempt)
}

#[data]
struct Size {
    bytes: usize,
}

/// Returns a string of that many bytes; the JSON text has two more.
#[activity]
fn big_output(_ctx: &Context, input: Size) -> Result<String, Failure> {
    Ok("x".repeat(input.bytes))
}

/// Fails with a message and details of that many bytes each.
#[activity]
fn big_failure(_ctx: &Context, input: Size) -> Result<(), Failure> {
    let text = "x".repeat(input.bytes);
    Err(Failure::permanent("big", text.as_str()).details(&text))
}

#[data]
struct Nul {
    #[serde(default)]
    failure: bool,
}

/// Returns a text with the character 0 in it, or fails with one.
#[activity]
fn nul_output(_ctx: &Context, input: Nul) -> Result<Value, Failure> {
    let text = json!({ "text": "a\0b" });
    if input.failure {
        return Err(Failure::permanent("nul\0code", "a\0b").details(&text));
    }
    Ok(text)
}

#[data]
struct Raw {
    text: String,
}

// Registered by hand, because the attribute would make the output JSON.
inventory::submit! {
    Registration {
        name: "raw-output",
        summary: "Returns the given text as its output, JSON or not.",
        call: raw_output,
        schemas: no_schemas,
    }
}

fn raw_output(_ctx: &Context, input: &str) -> CallResult {
    Ok(serde_json::from_str::<Raw>(input)?.text)
}

fn no_schemas() -> Schemas {
    Schemas { input: None, output: None }
}
