//! Looks whether it was done before, and does it if not. Two attempts that overlap can both find nothing, and then both
//! do it: the look protects nothing.
//!
//! Safe, because what follows the look is an effect, and the claim is one conditional write: only one of the two makes
//! it. The look in front only saves a later run the way to the provider.

use deedbox_guest::prelude::*;

/// What to ship.
#[data]
struct Order {
    order: u64,
    /// Where the table is, without a path.
    provider_url: String,
}

#[data]
struct Shipment {
    id: u64,
}

#[data]
struct Shipments {
    rows: Vec<Shipment>,
}

/// Ships an order, once.
#[activity]
fn ship_once(ctx: &Context, order: Order) -> Result<Shipment, Failure> {
    let table = format!("{}/tables/shipments/rows", order.provider_url);
    let known = ctx.http().get(format!("{table}?order={}", order.order)).send()?.error_for_status()?;
    if let Some(shipment) = known.json::<Shipments>()?.rows.pop() {
        return Ok(shipment);
    }
    let ship = ctx.http().post(table).effect("ship").json(&json!({ "order": order.order }));
    Ok(ship.send()?.error_for_status()?.json()?)
}
