//! Inserts a row. A second run of a plain insert leaves two rows.
//!
//! Safe, because the table itself refuses the second one: an order number is unique in it, and an insert that meets its
//! own number changes nothing. So the host may send again where it cannot know, and `AtLeastOnce` tells it so.

use deedbox_guest::prelude::*;

/// An order that was placed.
#[data]
struct Order {
    order: u64,
    amount_cents: u64,
    /// Where the table is, without a path.
    provider_url: String,
}

#[data]
struct Row {
    id: u64,
}

/// Files an order in the table of orders, once.
#[activity]
fn insert_row(ctx: &Context, order: Order) -> Result<Row, Failure> {
    let table = format!("{}/tables/orders/rows?on_conflict=order", order.provider_url);
    let insert = ctx.http().post(table).effect("insert").on_unknown(OnUnknown::AtLeastOnce);
    let row = json!({ "order": order.order, "amount_cents": order.amount_cents });
    Ok(insert.json(&row).send()?.error_for_status()?.json()?)
}
