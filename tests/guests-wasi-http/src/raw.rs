//! WASI without any library between: waits that never end, things that are held without end, calls in great number, requests
//! that are none.

use deedbox_guest::prelude::*;
use wasip2::clocks::monotonic_clock::{now, subscribe_duration, subscribe_instant};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, IncomingResponse, Method, OutgoingRequest, Scheme};
use wasip2::io::poll::{Pollable, poll};
use wasip2::random::random::get_random_bytes;

#[data]
struct Wait {
    how: How,
}

#[data]
#[serde(rename_all = "kebab-case")]
enum How {
    Block,
    Poll,
}

/// Waits for a moment that never comes.
#[activity]
fn wait_forever(_ctx: &Context, input: Wait) -> Result<(), Failure> {
    let never = subscribe_instant(u64::MAX);
    match input.how {
        How::Block => never.block(),
        How::Poll => drop(poll(&[&never])),
    }
    Ok(())
}

#[data]
struct Take {
    bytes: u64,
}

/// Takes random bytes in one call, and returns how many came.
#[activity]
fn take_random(_ctx: &Context, input: Take) -> Result<usize, Failure> {
    Ok(get_random_bytes(input.bytes).len())
}

#[data]
struct Hold {
    what: What,
    count: usize,
}

#[data]
#[serde(rename_all = "kebab-case")]
enum What {
    Pollables,
    Fields,
}

/// Makes resources and keeps them all, and returns how many they are.
#[activity]
fn hold(_ctx: &Context, input: Hold) -> Result<usize, Failure> {
    Ok(match input.what {
        What::Pollables => held(input.count, || subscribe_duration(0)),
        What::Fields => held(input.count, Fields::new),
    })
}

fn held<T>(count: usize, make: impl Fn() -> T) -> usize {
    let mut all = Vec::new();
    while all.len() < count {
        all.push(make());
    }
    all.len()
}

#[data]
struct Count {
    count: usize,
}

/// Asks the time so often, and returns how often.
#[activity]
fn call_often(_ctx: &Context, input: Count) -> Result<usize, Failure> {
    let asked = (0..input.count).map(|_| now()).filter(|time| *time > 0).count();
    Ok(asked)
}

/// Polls one pollable so many times in one call, and returns how often it was ready.
#[activity]
fn poll_many(_ctx: &Context, input: Count) -> Result<usize, Failure> {
    let ready: Pollable = subscribe_duration(0);
    Ok(poll(&vec![&ready; input.count]).len())
}

#[data]
struct Requests {
    requests: Vec<Raw>,
}

/// A request as its parts are given to the host.
#[data]
struct Raw {
    method: String,
    authority: Option<String>,
    path: Option<String>,
    #[serde(default)]
    headers: Vec<(String, String)>,
    /// So many headers more, of a few bytes each.
    #[serde(default)]
    more_headers: usize,
    /// One header more, with a value of so many bytes.
    #[serde(default)]
    value_bytes: usize,
}

/// Makes each request, and returns for each the step that was refused, with the reason, or `status` with the answer's.
#[activity]
fn raw_requests(_ctx: &Context, input: Requests) -> Result<Vec<String>, Failure> {
    let told = |raw: &Raw| match sent(raw) {
        Ok(answer) => format!("status {}", answer.status()),
        Err(refused) => refused,
    };
    Ok(input.requests.iter().map(told).collect())
}

fn sent(raw: &Raw) -> Result<IncomingResponse, String> {
    let more = (0..raw.more_headers).map(|n| (format!("x-{n}"), "v".to_owned()));
    let large = (raw.value_bytes > 0).then(|| ("x-large".to_owned(), "v".repeat(raw.value_bytes)));
    let entries: Vec<(String, Vec<u8>)> =
        raw.headers.iter().cloned().chain(more).chain(large).map(|(name, value)| (name, value.into_bytes())).collect();
    let fields = Fields::from_list(&entries).map_err(|error| format!("headers {error:?}"))?;
    let request = OutgoingRequest::new(fields);
    let step = |name: &'static str| move |()| name.to_owned();
    request.set_method(&Method::Other(raw.method.clone())).map_err(step("method"))?;
    request.set_scheme(Some(&Scheme::Http)).map_err(step("scheme"))?;
    request.set_authority(raw.authority.as_deref()).map_err(step("authority"))?;
    request.set_path_with_query(raw.path.as_deref()).map_err(step("path"))?;
    let future = handle(request, None).map_err(|error| format!("handle {error:?}"))?;
    future.subscribe().block();
    let answer = future.get().ok_or("no answer")?.map_err(step("taken"))?;
    answer.map_err(|error| format!("answer {error:?}"))
}

#[data]
struct Leave {
    authority: String,
    path: String,
    count: usize,
}

/// Makes so many calls one after another, keeps all answers and never takes a body; then drops them and makes one more.
/// Returns what came of each.
#[activity]
fn leave_answers(_ctx: &Context, input: Leave) -> Result<Vec<String>, Failure> {
    let raw = Raw {
        method: "GET".to_owned(),
        authority: Some(input.authority),
        path: Some(input.path),
        headers: Vec::new(),
        more_headers: 0,
        value_bytes: 0,
    };
    let told = |answer: &Result<IncomingResponse, String>| match answer {
        Ok(answer) => format!("status {}", answer.status()),
        Err(refused) => refused.clone(),
    };
    let left: Vec<_> = (0..input.count).map(|_| sent(&raw)).collect();
    let mut all: Vec<String> = left.iter().map(told).collect();
    drop(left);
    all.push(told(&sent(&raw)));
    Ok(all)
}
