//! A driver that makes the calls that a test lists, with the client of `wstd`, and tells what each gave.

use std::collections::BTreeMap;

use deedbox_guest::prelude::*;
use futures_util::future::join_all;
use futures_util::stream;
use wstd::future::FutureExt;
use wstd::http::{Body, Client, Request};
use wstd::runtime::block_on;
use wstd::time::Duration;

/// How much of a generated body is written at once.
const PIECE_BYTES: usize = 60_000;

#[data]
struct Fetch {
    calls: Vec<Call>,
    /// Makes all calls at once.
    #[serde(default)]
    together: bool,
    /// Up to this attempt, fails retryably after the calls.
    #[serde(default)]
    fail_up_to: u32,
}

#[data]
struct Call {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: String,
    generated: Option<Generated>,
    connect_ms: Option<u64>,
    first_byte_ms: Option<u64>,
    /// How often to make the same call again while it ends in an error.
    #[serde(default)]
    retries: u32,
    /// Gives the first try up after this time, without waiting for its end.
    abandon_ms: Option<u64>,
}

/// A body of one letter, written piece by piece.
#[data]
struct Generated {
    bytes: usize,
    /// The letter for each attempt; the last one goes on.
    letters: String,
    /// Tells the size in `content-length`.
    #[serde(default)]
    told: bool,
}

#[data]
#[serde(untagged)]
enum Outcome {
    Answer { status: u16, headers: BTreeMap<String, String>, body: String, tries: u32 },
    Error { error: String, tries: u32 },
}

/// Makes the listed calls, and returns what each gave.
#[activity]
fn fetch(ctx: &Context, input: Fetch) -> Result<Vec<Outcome>, Failure> {
    let attempt = ctx.run().attempt();
    let calls = input.calls.iter().map(|call| make(call, attempt));
    let outcomes = block_on(async {
        if input.together {
            return join_all(calls).await;
        }
        let mut outcomes = Vec::new();
        for call in calls {
            outcomes.push(call.await);
        }
        outcomes
    });
    if attempt <= input.fail_up_to {
        return Err(Failure::retryable("asked-to-fail", "as asked"));
    }
    Ok(outcomes)
}

async fn make(call: &Call, attempt: u32) -> Outcome {
    let mut tries = 1;
    loop {
        let result = match call.abandon_ms.filter(|_| tries == 1) {
            Some(limit) => once(call, attempt).timeout(Duration::from_millis(limit)).await.map_err(|e| e.to_string()),
            None => Ok(once(call, attempt).await),
        };
        match result.and_then(|result| result) {
            Ok((status, headers, body)) => return Outcome::Answer { status, headers, body, tries },
            Err(error) if tries > call.retries => return Outcome::Error { error, tries },
            Err(_) => tries += 1,
        }
    }
}

async fn once(call: &Call, attempt: u32) -> Result<(u16, BTreeMap<String, String>, String), String> {
    let mut client = Client::new();
    if let Some(limit) = call.connect_ms {
        client.set_connect_timeout(Duration::from_millis(limit));
    }
    if let Some(limit) = call.first_byte_ms {
        client.set_first_byte_timeout(Duration::from_millis(limit));
    }
    let mut request = Request::builder().method(call.method.as_str()).uri(call.url.as_str());
    for (name, value) in &call.headers {
        request = request.header(name, value);
    }
    let body = match &call.generated {
        Some(generated) => {
            if generated.told {
                request = request.header("content-length", generated.bytes);
            }
            generated.body(attempt)
        }
        None => Body::from(call.body.clone()),
    };
    let request = request.body(body).map_err(|error| error.to_string())?;
    let mut response = client.send(request).await.map_err(|error| format!("{error:#}"))?;
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let headers = response.headers().iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect();
    let body = response.body_mut().contents().await.map_err(|error| format!("{error:#}"))?;
    let body = text(body);
    Ok((response.status().as_u16(), headers, body))
}

impl Generated {
    fn body(&self, attempt: u32) -> Body {
        let letters = self.letters.as_bytes();
        let letter = letters[(attempt as usize - 1).min(letters.len() - 1)];
        let starts = (0..self.bytes).step_by(PIECE_BYTES);
        let sizes: Vec<usize> = starts.map(|start| PIECE_BYTES.min(self.bytes - start)).collect();
        Body::from_stream(stream::iter(sizes.into_iter().map(move |size| vec![letter; size])))
    }
}
