//! The samples that every SDK has, in Rust: the same activities with the same names, inputs and effects as in the other languages.
//! The conformance list of `tests/it/sdk` runs all of them.

mod charge;
mod checkpointed;
mod csv;
mod echo;
mod ends;
mod keys;
mod order;
#[cfg(target_os = "wasi")]
mod plain_http;
mod tell;
mod webhook;
mod welcome;

use deedbox_guest::Failure;
use deedbox_guest::http::Response;
use deedbox_guest::prelude::{Value, json};

/// What a provider said, as JSON if it is, else as text.
fn reason(answer: &Response) -> Result<Value, Failure> {
    let text = answer.text()?;
    Ok(deedbox_guest::serde_json::from_str(text).unwrap_or_else(|_| json!(text)))
}

/// An answer that tells the id of what was made.
#[deedbox_guest::data]
struct Made {
    id: String,
}
