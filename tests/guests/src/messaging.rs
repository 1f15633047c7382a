//! `deedbox:activity/messaging`: a driver that publishes what a test lists, and tells what each gave.

use deedbox_guest::messaging::{Error, MessageBuilder, Published};
use deedbox_guest::prelude::*;

use crate::http::{Choice, Identity, fill_in, on_unknown, source};
use crate::then::Then;

#[data]
struct Publish {
    messages: Vec<Message>,
    #[serde(default)]
    then: Then,
    /// Turns the first error into a failure, as `?` does.
    #[serde(default)]
    fail_on_error: bool,
}

/// In `payload` and the values of `headers`, `{run-key}`, `{subkey:NAME}` and `{attempt}` are replaced.
#[data]
struct Message {
    subject: String,
    #[serde(default)]
    payload: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    identity: Identity,
    on_unknown: Option<Choice>,
    /// How many bytes to add to the payload.
    #[serde(default)]
    fill: usize,
    /// How often to publish again in the body while it ends in an error that another attempt may not meet.
    #[serde(default)]
    repeat: u32,
}

#[data]
#[serde(untagged)]
enum Outcome {
    Kept { stream: String, sequence: u64, duplicate: bool, message_id: String, source: String, effect_id: String },
    Error { error: String, message: String },
}

/// Publishes the listed messages one after another, and returns what each gave.
#[activity]
fn publish(ctx: &Context, input: Publish) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    for message in &input.messages {
        let result = make(ctx, message)?;
        if input.fail_on_error {
            result.clone()?;
        }
        outcomes.push(outcome(result));
    }
    input.then.end(ctx, outcomes)
}

fn make(ctx: &Context, message: &Message) -> Result<Result<Published, Error>, Failure> {
    let mut left = message.repeat;
    loop {
        let result = built(ctx, message)?.send();
        let again = result.as_ref().is_err_and(Error::is_retryable);
        if !again || left == 0 {
            return Ok(result);
        }
        left -= 1;
    }
}

fn built<'a>(ctx: &'a Context, message: &Message) -> Result<MessageBuilder<'a>, Failure> {
    let mut payload = fill_in(ctx, &message.payload)?.into_bytes();
    payload.resize(payload.len() + message.fill, b'x');
    let mut built = ctx.messages().publish(message.subject.as_str()).payload(payload);
    for (name, value) in &message.headers {
        built = built.header(name, &fill_in(ctx, value)?);
    }
    built = match &message.identity {
        Identity::Positional => built,
        Identity::Named(name) => built.effect(name),
        Identity::Business(operation, key) => built.business_effect(operation, key),
    };
    Ok(match &message.on_unknown {
        Some(choice) => built.on_unknown(on_unknown(choice)),
        None => built,
    })
}

fn outcome(result: Result<Published, Error>) -> Outcome {
    match result {
        Ok(kept) => Outcome::Kept {
            stream: kept.stream,
            sequence: kept.sequence,
            duplicate: kept.duplicate,
            message_id: kept.message_id,
            source: source(kept.source).to_owned(),
            effect_id: kept.effect_id,
        },
        Err(error) => Outcome::Error { error: error.code().to_owned(), message: error.to_string() },
    }
}
