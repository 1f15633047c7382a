//! `deedbox:activity/signals`.

use std::time::Duration;

use deedbox_guest::prelude::*;

use crate::http::{Call, told};
use crate::then::Then;

#[data]
struct Listen {
    asks: Vec<Ask>,
    #[serde(default)]
    then: Then,
}

/// One step of the activity.
#[data]
#[serde(rename_all = "kebab-case")]
enum Ask {
    Poll { name: String },
    Wait { name: String, timeout_ms: Option<u64> },
    Call(Box<Call>),
}

/// Polls, waits and calls as told, and returns what each gave: a payload, null, or the code of a refusal.
#[activity]
fn listen(ctx: &Context, input: Listen) -> Result<Vec<Value>, Failure> {
    let mut given = Vec::new();
    for ask in &input.asks {
        given.push(step(ctx, ask)?);
    }
    input.then.end(ctx, given)
}

fn step(ctx: &Context, ask: &Ask) -> Result<Value, Failure> {
    let signals = ctx.signals();
    let given = match ask {
        Ask::Poll { name } => signals.poll(name),
        Ask::Wait { name, timeout_ms: None } => signals.wait(name).map(Some),
        Ask::Wait { name, timeout_ms: Some(ms) } => signals.wait_for(name, Duration::from_millis(*ms)),
        Ask::Call(call) => return told(ctx, call),
    };
    match given {
        Ok(Some(signal)) => Ok(signal.json()?),
        Ok(None) => Ok(Value::Null),
        Err(error) => Ok(json!({ "error": error.code() })),
    }
}

#[data]
struct Count {
    name: String,
    signals: usize,
}

/// Reads that many signals of one name, and returns their payloads in order.
#[activity]
fn read_all(ctx: &Context, input: Count) -> Result<Vec<Value>, Failure> {
    (0..input.signals).map(|_| Ok(ctx.signals().wait(&input.name)?.json()?)).collect()
}
