//! The keys of a run, shown.

use std::collections::BTreeMap;

use deedbox_guest::prelude::*;

#[data]
struct Names {
    names: Vec<String>,
}

#[data]
struct Keys {
    run: String,
    subkeys: BTreeMap<String, String>,
}

/// Tells the run key and the subkeys of these names.
#[activity]
fn keys(ctx: &Context, input: Names) -> Result<Keys, Failure> {
    let mut subkeys = BTreeMap::new();
    for name in input.names {
        let key = ctx.subkey(&name)?.into();
        subkeys.insert(name, key);
    }
    Ok(Keys { run: ctx.idempotency_key().into(), subkeys })
}
