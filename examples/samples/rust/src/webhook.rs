//! An effect, and the word of somebody else about it.

use std::time::Duration;

use deedbox_guest::prelude::*;

use crate::Made;

#[data]
struct Order {
    provider_url: String,
    order: String,
    wait_ms: Option<u64>,
}

#[data]
#[serde(tag = "outcome", rename_all = "kebab-case")]
enum Outcome {
    Paid { payment_id: String, by: Value },
    Expired,
}

/// Asks for a payment and waits until it is paid.
#[activity]
fn wait_for_webhook(ctx: &Context, input: Order) -> Result<Outcome, Failure> {
    let payment = json!({ "order": input.order, "reference": ctx.idempotency_key().as_str() });
    let at = format!("{}/v1/payments", input.provider_url);
    let answer = ctx.http().post(at).effect("request-payment").json(&payment).send()?;
    let payment: Made = answer.error_for_status()?.json()?;
    let paid = match input.wait_ms {
        Some(limit) => ctx.signals().wait_for("paid", Duration::from_millis(limit))?,
        None => Some(ctx.signals().wait("paid")?),
    };
    let Some(paid) = paid else { return Ok(Outcome::Expired) };
    let by = paid.json::<Value>()?["by"].clone();
    Ok(Outcome::Paid { payment_id: payment.id, by })
}
