//! Writes a whole document to a fixed place. A second run writes the same document there, which does no harm.
//!
//! Nothing is to be done for it, as long as the document is computed from the input alone: not from the time, nor from
//! what is there already.

use deedbox_guest::prelude::*;

/// A month's sales.
#[data]
struct Month {
    year: u16,
    month: u8,
    sales_cents: Vec<u64>,
    /// Where the documents are, without a path.
    provider_url: String,
}

/// Writes the report of a month.
#[activity]
fn put_document(ctx: &Context, month: Month) -> Result<u64, Failure> {
    let total: u64 = month.sales_cents.iter().sum();
    let place = format!("{}/objects/reports/{}-{:02}.json", month.provider_url, month.year, month.month);
    ctx.http().put(place).json(&json!({ "total_cents": total })).send()?.error_for_status()?;
    Ok(total)
}
