//! Deletes a row by its id. A second run finds nothing to delete, which does no harm.
//!
//! Nothing is to be done for it, but to take "not found" for what it is: the row is gone.

use deedbox_guest::prelude::*;

/// A session that has ended.
#[data]
struct Session {
    id: u64,
    /// Where the table is, without a path.
    provider_url: String,
}

/// Removes a session.
#[activity]
fn delete_by_id(ctx: &Context, session: Session) -> Result<(), Failure> {
    let row = format!("{}/tables/sessions/rows/{}", session.provider_url, session.id);
    let answer = ctx.http().delete(row).send()?;
    if answer.status() != 404 {
        answer.error_for_status()?;
    }
    Ok(())
}
