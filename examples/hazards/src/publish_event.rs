//! Publishes an event. A second run makes everybody downstream do their work twice.
//!
//! Safe, because the message has the same id in every attempt, and the broker drops the second message of an id. Its
//! profile (`profiles/topics.toml`) says that the id is a key, so that the host knows that it may send again.

use deedbox_guest::prelude::*;

/// An order that was placed.
#[data]
struct Order {
    order: u64,
    /// Where the broker answers, without a path.
    provider_url: String,
}

#[data]
struct Published {
    offset: u64,
}

/// Tells everybody that an order was placed, once.
#[activity]
fn publish_event(ctx: &Context, order: Order) -> Result<Published, Failure> {
    let id = ctx.subkey("order-placed")?;
    let message = ctx.http().post(format!("{}/topics/orders/messages", order.provider_url));
    let body = json!({ "placed": order.order });
    Ok(message.header("message-id", id.as_str()).json(&body).send()?.error_for_status()?.json()?)
}
