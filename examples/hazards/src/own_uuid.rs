//! Makes a key of its own in its body, as code that was written elsewhere often does. Elsewhere, a second run makes
//! another key, and that key protects nothing.
//!
//! Safe, because the random numbers of a run are the same in every attempt, and so is the UUID. Where the deployment
//! says `guest_keys = "trust"`, it names the effect; else the host puts its own key in its place, which is as good.

use deedbox_guest::prelude::*;
use uuid::Uuid;

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

/// Charges a card for an order, under a key of its own.
#[activity]
fn own_uuid(ctx: &Context, order: Order) -> Result<Charge, Failure> {
    let key = Uuid::new_v4().to_string();
    let charge = ctx.http().post(format!("{}/v1/charges", order.provider_url)).header("idempotency-key", &key);
    let body = json!({ "order": order.order, "amount_cents": order.amount_cents });
    Ok(charge.json(&body).send()?.error_for_status()?.json()?)
}
