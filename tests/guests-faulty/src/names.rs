//! Faults in what an effect is known by.

use deedbox_guest::prelude::*;

use crate::{Order, id, millis, random};

/// The number of the attempt in the name: each attempt charges.
#[activity]
fn attempt_in_name(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let name = format!("charge-{}", ctx.run().attempt());
    id(order.charge(ctx).effect(name).send()?)
}

/// The time as the business key.
#[activity]
fn key_from_time(ctx: &Context, order: Order) -> Result<Value, Failure> {
    id(order.charge(ctx).business_effect("charge", millis().to_string()).send()?)
}

/// A random number as the business key.
#[activity]
fn random_business_key(ctx: &Context, order: Order) -> Result<Value, Failure> {
    id(order.charge(ctx).business_effect("charge", random()).send()?)
}

/// A random number where the provider takes its key.
#[activity]
fn random_key_header(ctx: &Context, order: Order) -> Result<Value, Failure> {
    id(order.charge(ctx).header("Idempotency-Key", random()).send()?)
}

/// A name that counts what is at the provider, which the first attempt has changed.
#[activity]
fn counted_at_provider(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let there: Value = ctx.http().get(order.charges()).send()?.error_for_status()?.json()?;
    let count = there["data"].as_array().map_or(0, Vec::len);
    id(order.charge(ctx).effect(format!("charge-{count}")).send()?)
}

/// Two effects without names at one address, in an order that changes with the attempt.
#[activity]
fn unnamed_shuffled(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let mut parts = ["half", "rest"];
    if ctx.run().attempt() % 2 == 0 {
        parts.reverse();
    }
    for part in parts {
        ctx.http().post(order.charges()).json(&json!({ "part": part })).send()?.error_for_status()?;
    }
    Ok(json!({ "parts": 2 }))
}

/// Two different requests under one name.
#[activity]
fn two_bodies_one_name(ctx: &Context, order: Order) -> Result<Value, Failure> {
    for part in ["half", "rest"] {
        let charge = ctx.http().post(order.charges()).effect("charge").json(&json!({ "part": part }));
        charge.send()?.error_for_status()?;
    }
    Ok(json!({ "parts": 2 }))
}
