//! `deedbox:activity/http`: a driver that makes the calls that a test lists, and tells what each gave.

use std::time::Duration;

use deedbox_guest::http::{Condition, Error, Lookup, OnUnknown, RequestBuilder, Response, Source};
use deedbox_guest::prelude::*;

use crate::then::{Then, by_attempt};

#[data]
struct Send {
    calls: Vec<Call>,
    #[serde(default)]
    then: Then,
    /// Turns the first error into a failure, as `?` does.
    #[serde(default)]
    fail_on_error: bool,
}

/// In `url`, `body` and the values of `headers`, `{run-key}`, `{subkey:NAME}` and `{attempt}` are
/// replaced.
#[data]
pub struct Call {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    body: Option<String>,
    json: Option<Value>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    identity: Identity,
    on_unknown: Option<Choice>,
    lookup: Option<Ask>,
    /// How often to call again in the body while the call ends in `timed-out`, `connection-lost` or
    /// `in-flight`.
    #[serde(default)]
    repeat: u32,
    /// Fails permanently with `unexpected-status` when the answer has another status.
    expect: Option<u16>,
}

/// Found: 200 with a value at the pointer `found`. Absent: 200 with this text at this pointer, or 404 when none is given.
#[data]
pub struct Ask {
    url: String,
    found: String,
    absent: Option<(String, String)>,
    #[serde(default)]
    settle_ms: u64,
}

#[data]
#[derive(Default)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    #[default]
    Positional,
    Named(String),
    Business(String, String),
}

#[data]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    ProviderDefault,
    Ask,
    AtMostOnce,
    AtLeastOnce,
}

#[data]
#[serde(untagged)]
enum Outcome {
    Answer {
        status: u16,
        headers: Vec<(String, String)>,
        /// Absent when it was not kept.
        body: Option<String>,
        not_kept: bool,
        source: String,
        effect_id: Option<String>,
        /// How many calls in this attempt it took.
        calls: u32,
    },
    Error {
        error: String,
        message: String,
        calls: u32,
    },
}

/// Makes the listed calls one after another, and returns what each gave.
#[activity]
fn send(ctx: &Context, input: Send) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    for call in &input.calls {
        let (result, calls) = make(ctx, call)?;
        if input.fail_on_error {
            result.clone()?;
        }
        check(call, &result)?;
        outcomes.push(outcome(result, calls));
    }
    input.then.end(ctx, outcomes)
}

#[data]
struct CallOrder {
    urls_by_attempt: Vec<Vec<String>>,
    #[serde(default)]
    then: Then,
}

/// POSTs to the URLs that are listed for this attempt, in that order; the last list goes on.
#[activity]
fn call_order(ctx: &Context, input: CallOrder) -> Result<Vec<Outcome>, Failure> {
    let urls = by_attempt(&input.urls_by_attempt, ctx.run().attempt());
    let post = |url: &String| outcome(ctx.http().post(url.as_str()).send(), 1);
    let outcomes = urls.into_iter().flatten().map(post).collect();
    input.then.end(ctx, outcomes)
}

/// Makes one call, and tells what it gave.
pub fn told(ctx: &Context, call: &Call) -> Result<Value, Failure> {
    let (result, calls) = make(ctx, call)?;
    check(call, &result)?;
    Ok(deedbox_guest::serde_json::to_value(outcome(result, calls))?)
}

fn make(ctx: &Context, call: &Call) -> Result<(Result<Response, Error>, u32), Failure> {
    let mut calls = 1;
    loop {
        let result = request(ctx, call)?.send();
        let again = matches!(result, Err(Error::TimedOut | Error::ConnectionLost(_) | Error::InFlight));
        if !again || calls > call.repeat {
            return Ok((result, calls));
        }
        calls += 1;
    }
}

fn request<'a>(ctx: &'a Context, call: &Call) -> Result<RequestBuilder<'a>, Failure> {
    let mut request = ctx.http().request(call.method.as_str(), fill_in(ctx, &call.url)?);
    for (name, value) in &call.headers {
        request = request.header(name, fill_in(ctx, value)?);
    }
    if let Some(body) = &call.body {
        request = request.body(fill_in(ctx, body)?);
    }
    if let Some(body) = &call.json {
        request = request.json(body);
    }
    if let Some(limit) = call.timeout_ms {
        request = request.timeout(Duration::from_millis(limit));
    }
    request = match &call.identity {
        Identity::Positional => request,
        Identity::Named(name) => request.effect(name),
        Identity::Business(operation, key) => request.business_effect(operation, key),
    };
    if let Some(choice) = &call.on_unknown {
        request = request.on_unknown(on_unknown(choice));
    }
    Ok(match &call.lookup {
        Some(ask) => request.lookup(lookup(ctx, ask)?),
        None => request,
    })
}

pub fn on_unknown(choice: &Choice) -> OnUnknown {
    match choice {
        Choice::ProviderDefault => OnUnknown::ProviderDefault,
        Choice::Ask => OnUnknown::Ask,
        Choice::AtMostOnce => OnUnknown::AtMostOnce,
        Choice::AtLeastOnce => OnUnknown::AtLeastOnce,
    }
}

fn lookup(ctx: &Context, ask: &Ask) -> Result<Lookup, Failure> {
    let found = Condition::status(&[200]).with(&ask.found);
    let absent = match &ask.absent {
        Some((pointer, text)) => Condition::status(&[200]).equals(pointer, text),
        None => Condition::status(&[404]),
    };
    Ok(Lookup::get(fill_in(ctx, &ask.url)?, found, absent).settle(Duration::from_millis(ask.settle_ms)))
}

pub fn fill_in(ctx: &Context, text: &str) -> Result<String, Failure> {
    let mut text = text
        .replace("{run-key}", ctx.idempotency_key().as_str())
        .replace("{attempt}", &ctx.run().attempt().to_string());
    while let Some((before, rest)) = text.split_once("{subkey:") {
        let Some((name, after)) = rest.split_once('}') else {
            break;
        };
        text = format!("{before}{}{after}", ctx.subkey(name)?);
    }
    Ok(text)
}

fn check(call: &Call, result: &Result<Response, Error>) -> Result<(), Failure> {
    match (call.expect, result) {
        (Some(expected), Ok(answer)) if answer.status() != expected => {
            let message = format!("{} {}: status {}, not {expected}", call.method, call.url, answer.status());
            Err(Failure::permanent("unexpected-status", message))
        }
        _ => Ok(()),
    }
}

fn outcome(result: Result<Response, Error>, calls: u32) -> Outcome {
    match result {
        Ok(answer) => Outcome::Answer {
            status: answer.status(),
            headers: answer.headers().iter().map(|(name, value)| (name.clone(), lossy(value))).collect(),
            body: answer.bytes().ok().map(lossy),
            not_kept: answer.bytes().is_err(),
            source: source(answer.source()).to_owned(),
            effect_id: answer.effect_id().map(str::to_owned),
            calls,
        },
        Err(error) => Outcome::Error { error: error.code().to_owned(), message: error.to_string(), calls },
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn source(source: Source) -> &'static str {
    match source {
        Source::Sent => "sent",
        Source::Replayed => "replayed",
        Source::LookedUp => "looked-up",
        Source::Supplied => "supplied",
    }
}
