//! `deedbox:activity/idempotency`.

use deedbox_guest::prelude::*;

#[data]
struct Names {
    names: Vec<String>,
}

#[data]
struct Keys {
    run_key: String,
    /// For each name its key, or `{"error": code}`.
    subkeys: Vec<Value>,
}

#[data]
struct KeysTwice {
    #[serde(flatten)]
    keys: Keys,
    /// The same, asked a second time.
    again: Keys,
}

/// Returns the run key, and a subkey for each name, asked twice.
#[activity]
fn keys(ctx: &Context, input: Names) -> Result<KeysTwice, Failure> {
    Ok(KeysTwice { keys: ask(ctx, &input.names), again: ask(ctx, &input.names) })
}

fn ask(ctx: &Context, names: &[String]) -> Keys {
    let subkey = |name: &String| match ctx.subkey(name) {
        Ok(key) => json!(key.as_str()),
        Err(error) => json!({ "error": Failure::from(error).code() }),
    };
    Keys { run_key: ctx.idempotency_key().to_string(), subkeys: names.iter().map(subkey).collect() }
}
