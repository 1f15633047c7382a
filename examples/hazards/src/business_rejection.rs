//! Meets a refusal that is final. Raised as a failure that may be tried again, it is asked for again and again, and can
//! never come out otherwise.
//!
//! Safe, because the refusal is a result: it is returned as data, ends the run, and whoever started the run decides.

use deedbox_guest::prelude::*;

/// What to charge.
#[data]
struct Order {
    order: u64,
    amount_cents: u64,
    /// Where the provider answers, without a path.
    provider_url: String,
}

/// How it ended.
#[data]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum Receipt {
    Charged { id: String },
    Rejected { reason: Value },
}

#[data]
struct Charge {
    id: String,
}

/// Charges a card that the bank declines.
#[activity]
fn business_rejection(ctx: &Context, order: Order) -> Result<Receipt, Failure> {
    let charge = ctx.http().post(format!("{}/v1/declined", order.provider_url)).effect("charge");
    let answer = charge.json(&json!({ "order": order.order, "amount_cents": order.amount_cents })).send()?;
    if answer.status() == 402 {
        let said: Value = answer.json()?;
        return Ok(Receipt::Rejected { reason: said["error"]["code"].clone() });
    }
    let Charge { id } = answer.error_for_status()?.json()?;
    Ok(Receipt::Charged { id })
}
