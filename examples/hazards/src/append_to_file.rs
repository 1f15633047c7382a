//! Adds a line to an audit log. A second run of an append leaves the line twice.
//!
//! Safe, because it does not append: each run writes a file of its own, named by the run's key, and the log is all files
//! of the folder. A second attempt writes the same file again.

use deedbox_guest::prelude::*;

/// What somebody did.
#[data]
struct Entry {
    line: String,
    /// Where the files are, without a path.
    provider_url: String,
}

/// Writes an entry of the audit log, once.
#[activity]
fn append_to_file(ctx: &Context, entry: Entry) -> Result<(), Failure> {
    let file = format!("{}/objects/audit/{}.txt", entry.provider_url, ctx.idempotency_key());
    ctx.http().put(file).header("content-type", "text/plain").body(entry.line).send()?.error_for_status()?;
    Ok(())
}
