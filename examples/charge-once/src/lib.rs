//! Charges an order exactly once, however often the activity is run again.
//!
//! It must never look at the number of the attempt, nor remember by itself what it did.

use deedbox_guest::http::Response;
use deedbox_guest::prelude::*;

/// What to charge.
#[data]
pub struct Order {
    /// The order number.
    order: String,
    amount_cents: u64,
    customer: String,
    /// Where the provider answers, without a path.
    #[serde(default = "stripe")]
    provider_url: String,
}

/// How it ended.
#[data]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Receipt {
    Charged { charge_id: String },
    Rejected { status: u16, reason: Value },
}

#[data]
struct Charge {
    id: String,
}

/// Charges a customer for an order, exactly once.
#[activity]
pub fn charge_once(ctx: &Context, order: Order) -> Result<Receipt, Failure> {
    let answer = ctx
        .http()
        .post(format!("{}/v1/charges", order.provider_url))
        .effect("charge")
        .json(&json!({
            "amount_cents": order.amount_cents,
            "customer": order.customer,
            "order": order.order,
        }))
        .send()?;
    match answer.status() {
        // These say nothing about the order: the error below tells whether to try again.
        401 | 407 | 408 | 425 | 429 => charged(answer),
        400..500 => rejected(&answer),
        _ => charged(answer),
    }
}

fn charged(answer: Response) -> Result<Receipt, Failure> {
    let charge: Charge = answer.error_for_status()?.json()?;
    Ok(Receipt::Charged { charge_id: charge.id })
}

fn rejected(answer: &Response) -> Result<Receipt, Failure> {
    let text = answer.text()?;
    let reason = deedbox_guest::serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    Ok(Receipt::Rejected { status: answer.status(), reason })
}

fn stripe() -> String {
    "https://api.stripe.com".to_owned()
}

#[cfg(test)]
mod tests {
    use deedbox_guest::testing::{Answer, FakeContext};

    use super::*;

    fn run(answer: Answer) -> (FakeContext, Result<Value, Failure>) {
        let ctx = FakeContext::for_run("0190b1c2-0000-7000-8000-000000000001").unwrap();
        ctx.answer(answer);
        let input = r#"{"order": "42", "amount_cents": 1999, "customer": "ada", "provider_url": "http://p.test"}"#;
        let output = ctx.run_named("charge-once", input);
        (ctx, output.map(|text| deedbox_guest::serde_json::from_str(&text).unwrap()))
    }

    #[test]
    fn an_order_is_charged_at_the_provider() {
        let (ctx, output) = run(Answer::json(&json!({ "id": "ch_1", "paid": true })));
        assert_eq!(output.unwrap(), json!({ "outcome": "charged", "charge_id": "ch_1" }));
        let sent = &ctx.sent()[0];
        assert_eq!((sent.method.as_str(), sent.url.as_str()), ("POST", "http://p.test/v1/charges"));
        assert_eq!(sent.json(), json!({ "amount_cents": 1999, "customer": "ada", "order": "42" }));
        assert_eq!(sent.identity, deedbox_guest::http::Identity::Named("charge".to_owned()));
    }

    #[test]
    fn a_declined_card_is_a_value() {
        let (_, output) = run(Answer::status(402).with_json(&json!({ "code": "card_declined" })));
        let reason = json!({ "code": "card_declined" });
        assert_eq!(output.unwrap(), json!({ "outcome": "rejected", "status": 402, "reason": reason }));
        let (_, output) = run(Answer::status(404).with_body("no such customer"));
        assert_eq!(output.unwrap()["reason"], "no such customer");
    }

    #[test]
    fn a_provider_in_trouble_is_tried_again() {
        for status in [408, 429, 500, 503] {
            let (_, output) = run(Answer::status(status));
            assert!(output.unwrap_err().is_retryable(), "{status}");
        }
        let (_, output) = run(Answer::status(401));
        assert!(!output.unwrap_err().is_retryable());
    }
}
