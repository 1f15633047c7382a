//! An effect that the business itself names: two runs for one order place it once.

use deedbox_guest::prelude::*;

use crate::{Made, reason};

#[data]
struct Order {
    provider_url: String,
    order: String,
}

#[data]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum Outcome {
    Placed { order_id: String },
    Rejected { reason: Value },
}

/// Places an order; that the provider does not want it is a value.
#[activity]
fn reject_as_data(ctx: &Context, input: Order) -> Result<Outcome, Failure> {
    let at = format!("{}/v1/orders", input.provider_url);
    let order = json!({ "order": input.order });
    let answer = ctx.http().post(at).business_effect("place-order", input.order).json(&order).send()?;
    if matches!(answer.status(), 409 | 422) {
        return Ok(Outcome::Rejected { reason: reason(&answer)? });
    }
    Ok(Outcome::Placed { order_id: answer.error_for_status()?.json::<Made>()?.id })
}
