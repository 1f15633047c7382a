//! Charges a card. A second run charges the customer twice.
//!
//! Safe, because the effect has a name in this run: the host claims it before the first byte leaves, and gives the
//! provider one key for it, whichever attempt sends. The provider's profile says in which header.

use deedbox_guest::prelude::*;

/// What to charge.
#[data]
struct Order {
    order: u64,
    amount_cents: u64,
    /// Where the provider answers, without a path.
    provider_url: String,
}

#[data]
struct Charge {
    id: String,
}

/// Charges a card for an order, once.
#[activity]
fn charge_card(ctx: &Context, order: Order) -> Result<Charge, Failure> {
    let charge = ctx.http().post(format!("{}/v1/charges", order.provider_url)).effect("charge");
    let body = json!({ "order": order.order, "amount_cents": order.amount_cents });
    Ok(charge.json(&body).send()?.error_for_status()?.json()?)
}
