//! Activities that go wrong when they run twice, one fault each, for the tests of `deedbox verify`; and a few without a fault that
//! look as if they had one. Each charges an order at `provider_url`.
#![cfg(target_os = "wasi")]

mod bodies;
mod clean;
mod flow;
mod names;
mod wasi;

use std::time::{SystemTime, UNIX_EPOCH};

use deedbox_guest::http::{RequestBuilder, Response};
use deedbox_guest::prelude::*;
use wasip2::random::random::get_random_u64;

/// What every activity here gets.
#[data]
pub struct Order {
    provider_url: String,
    #[serde(default = "number")]
    order: String,
}

fn number() -> String {
    "42".to_owned()
}

impl Order {
    fn charges(&self) -> String {
        format!("{}/v1/charges", self.provider_url)
    }

    fn body(&self) -> Value {
        json!({ "order": self.order, "amount_cents": 4200 })
    }

    /// A charge that is right in everything but what is added to it.
    fn charge<'a>(&self, ctx: &'a Context) -> RequestBuilder<'a> {
        ctx.http().post(self.charges()).json(&self.body())
    }
}

/// The id that the provider gave.
fn id(answer: Response) -> Result<Value, Failure> {
    let charge: Value = answer.error_for_status()?.json()?;
    Ok(json!({ "charge_id": charge["id"] }))
}

fn millis() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis())
}

fn random() -> String {
    format!("{:016x}{:016x}", get_random_u64(), get_random_u64())
}
