//! `deedbox:activity/files`: a driver that writes what a test lists, and tells what each write gave.

use deedbox_guest::files::{Error, Written};
use deedbox_guest::prelude::*;

use crate::http::{Identity, fill_in, source};
use crate::then::Then;

#[data]
struct WriteFiles {
    files: Vec<File>,
    #[serde(default)]
    then: Then,
    /// Turns the first error into a failure, as `?` does.
    #[serde(default)]
    fail_on_error: bool,
}

/// In `path` and `text`, `{run-key}`, `{subkey:NAME}` and `{attempt}` are replaced.
#[data]
struct File {
    path: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    identity: Identity,
    /// How many bytes to add to the text.
    #[serde(default)]
    fill: usize,
}

#[data]
#[serde(untagged)]
enum Outcome {
    Written { source: String, effect_id: String },
    Error { error: String, message: String },
}

/// Writes the listed files one after another, and returns what each write gave.
#[activity]
fn write_files(ctx: &Context, input: WriteFiles) -> Result<Vec<Outcome>, Failure> {
    let mut outcomes = Vec::new();
    for file in &input.files {
        let result = write(ctx, file)?;
        if input.fail_on_error {
            result.clone()?;
        }
        outcomes.push(outcome(result));
    }
    input.then.end(ctx, outcomes)
}

fn write(ctx: &Context, file: &File) -> Result<Result<Written, Error>, Failure> {
    let mut bytes = fill_in(ctx, &file.text)?.into_bytes();
    bytes.resize(bytes.len() + file.fill, b'x');
    let write = ctx.files().write(fill_in(ctx, &file.path)?, bytes);
    Ok(match &file.identity {
        Identity::Positional => write,
        Identity::Named(name) => write.effect(name),
        Identity::Business(operation, key) => write.business_effect(operation, key),
    }
    .send())
}

#[data]
struct Append {
    path: String,
}

/// Tries to append, and returns the refusal.
#[activity]
fn append(ctx: &Context, input: Append) -> Result<Outcome, Failure> {
    let refused = ctx.files().append(&input.path, b"line\n").err();
    let error = refused.ok_or_else(|| Failure::permanent("appended", "an append was made"))?;
    Ok(Outcome::Error { error: error.code().to_owned(), message: error.to_string() })
}

fn outcome(result: Result<Written, Error>) -> Outcome {
    match result {
        Ok(written) => Outcome::Written { source: source(written.source).to_owned(), effect_id: written.effect_id },
        Err(error) => Outcome::Error { error: error.code().to_owned(), message: error.to_string() },
    }
}
