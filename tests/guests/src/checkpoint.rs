//! `deedbox:activity/checkpoint`.

use deedbox_guest::prelude::*;

use crate::then::Then;

#[data]
struct Remember {
    value: Value,
    #[serde(default)]
    then: Then,
}

#[data]
struct Remembered {
    /// What the attempts before had saved last.
    before: Option<Value>,
}

/// Saves a value, and returns what was saved before.
#[activity]
fn remember(ctx: &Context, input: Remember) -> Result<Remembered, Failure> {
    let before = ctx.checkpoint().load()?;
    ctx.checkpoint().save(&input.value)?;
    input.then.end(ctx, Remembered { before })
}

#[data]
struct Size {
    bytes: usize,
}

#[data]
struct Saved {
    /// The code of the refusal.
    error: Option<String>,
    loaded_bytes: Option<usize>,
}

/// Saves that many bytes, and returns how many can be loaded then.
#[activity]
fn checkpoint_size(ctx: &Context, input: Size) -> Result<Saved, Failure> {
    let saved = ctx.checkpoint().save_bytes(&vec![b'x'; input.bytes]);
    Ok(Saved {
        error: saved.err().map(|error| error.code().to_owned()),
        loaded_bytes: ctx.checkpoint().load_bytes().map(|bytes| bytes.len()),
    })
}
