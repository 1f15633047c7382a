//! One effect, whose rejection is a value.

use deedbox_guest::prelude::*;

use crate::{Made, reason};

#[data]
struct Order {
    provider_url: String,
    order: String,
    amount_cents: u64,
    customer: String,
}

#[data]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum Receipt {
    Charged { charge_id: String },
    Rejected { status: u16, reason: Value },
}

/// Charges a customer for an order, exactly once.
#[activity]
fn charge_once(ctx: &Context, input: Order) -> Result<Receipt, Failure> {
    let charge = json!({ "amount_cents": input.amount_cents, "customer": input.customer, "order": input.order });
    let answer = ctx.http().post(format!("{}/v1/charges", input.provider_url)).effect("charge").json(&charge).send()?;
    // These say nothing about the order: they are errors below.
    let says_nothing = matches!(answer.status(), 401 | 407 | 408 | 425 | 429);
    if (400..500).contains(&answer.status()) && !says_nothing {
        return Ok(Receipt::Rejected { status: answer.status(), reason: reason(&answer)? });
    }
    Ok(Receipt::Charged { charge_id: answer.error_for_status()?.json::<Made>()?.id })
}
