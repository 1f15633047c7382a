//! No faults, though some of it looks like one.

use std::sync::atomic::{AtomicU32, Ordering};

use deedbox_guest::prelude::*;

use crate::{Order, id};

static COUNTER: AtomicU32 = AtomicU32::new(0);

/// Two effects, each with a name and a reference of its own, and a checkpoint behind each.
#[activity]
fn steady(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let done: u32 = ctx.checkpoint().load()?.unwrap_or_default();
    for (number, name) in (1..).zip(["account", "mail"]) {
        if number <= done {
            continue;
        }
        let body = json!({ "order": order.order, "reference": ctx.subkey(name)?.as_str() });
        let url = format!("{}/v1/{name}s", order.provider_url);
        ctx.http().post(url).effect(name).json(&body).send()?.error_for_status()?;
        ctx.checkpoint().save(&number)?;
    }
    Ok(json!({ "outcome": "welcomed" }))
}

/// The instance is new in each attempt, and so is what it counts.
#[activity]
fn counter_of_the_instance(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    id(order.charge(ctx).effect(format!("charge-{number}")).send()?)
}

/// One order is charged once, whichever run asks for it; a refusal is a value.
#[activity]
fn charge_by_order(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let answer = order.charge(ctx).business_effect("charge", order.order.as_str()).send()?;
    if answer.status() == 402 {
        return Ok(json!({ "outcome": "rejected" }));
    }
    id(answer)
}

/// Puts the run's own key into the request by itself.
#[activity]
fn own_key(ctx: &Context, order: Order) -> Result<Value, Failure> {
    id(order.charge(ctx).header("Idempotency-Key", ctx.idempotency_key().as_str()).send()?)
}
