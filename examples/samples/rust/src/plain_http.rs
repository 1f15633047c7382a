//! An ordinary HTTP client over `wasi:http`, which knows nothing of Deedbox.

use deedbox_guest::prelude::*;
use wstd::http::{Body, Client, Request};
use wstd::runtime::block_on;

#[data]
struct Call {
    url: String,
    body: String,
}

#[data]
struct Answer {
    status: u16,
    body: String,
}

/// Posts a text with the client of `wstd`.
#[activity]
fn plain_http(_ctx: &Context, input: Call) -> Result<Answer, Failure> {
    block_on(post(input)).map_err(|error| Failure::retryable("plain-http", format!("{error:#}")))
}

async fn post(input: Call) -> Result<Answer, wstd::http::Error> {
    let request = Request::post(input.url).body(Body::from(input.body))?;
    let mut answer = Client::new().send(request).await?;
    let body = String::from_utf8_lossy(answer.body_mut().contents().await?).into_owned();
    Ok(Answer { status: answer.status().as_u16(), body })
}
