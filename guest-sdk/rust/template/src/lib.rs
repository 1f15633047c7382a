//! The activities of {{name}}: each function with `#[activity]` is one. What they change outside they change through `ctx`, which
//! makes it happen once however often an activity is run again.

use deedbox_guest::prelude::*;

#[data]
struct Order {
    order: String,
    amount_cents: u64,
    /// Where the provider answers, without a path.
    provider_url: String,
}

#[data]
struct Receipt {
    id: String,
}

/// Charges an order, exactly once.
#[activity]
fn charge_once(ctx: &Context, order: Order) -> Result<Receipt, Failure> {
    let charge = ctx
        .http()
        .post(format!("{}/v1/charges", order.provider_url))
        .effect("charge")
        .json(&json!({ "order": order.order, "amount_cents": order.amount_cents }));
    Ok(charge.send()?.error_for_status()?.json()?)
}

#[cfg(test)]
mod tests {
    use deedbox_guest::testing::{Answer, FakeContext};

    use super::*;

    #[test]
    fn an_order_is_charged() {
        let ctx = FakeContext::for_run("0190b1c2-0000-7000-8000-000000000001").unwrap();
        ctx.answer(Answer::json(&json!({ "id": "ch_1" })));
        let input = r#"{ "order": "42", "amount_cents": 1999, "provider_url": "https://api.example.com" }"#;
        assert_eq!(ctx.run_named("charge-once", input).unwrap(), r#"{"id":"ch_1"}"#);
        assert_eq!(ctx.sent()[0].url, "https://api.example.com/v1/charges");
        assert_eq!(ctx.sent()[0].json(), json!({ "order": "42", "amount_cents": 1999 }));
    }
}
