//! Faults in what is sent and returned.

use std::collections::HashMap;

use deedbox_guest::prelude::*;

use crate::{Order, id, millis, random};

/// Just below what an output may have.
const LARGE: usize = 1_900_000;

/// A random number in the body.
#[activity]
fn random_in_body(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let body = json!({ "order": order.order, "reference": random() });
    id(ctx.http().post(order.charges()).effect("charge").json(&body).send()?)
}

/// The time in the body.
#[activity]
fn clock_in_body(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let body = json!({ "order": order.order, "at": millis().to_string() });
    id(ctx.http().post(order.charges()).effect("charge").json(&body).send()?)
}

/// The time in the address.
#[activity]
fn time_in_path(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let url = format!("{}/{}", order.charges(), millis());
    id(ctx.http().post(url).json(&order.body()).send()?)
}

/// The lines of an order from a map that has no order, without names.
#[activity]
fn unordered_map(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let lines = HashMap::from([("apples", 3), ("bread", 1), ("cheese", 2), ("dates", 9)]);
    for (article, count) in &lines {
        let body = json!({ "order": order.order, "article": article, "count": count });
        ctx.http().post(order.charges()).json(&body).send()?.error_for_status()?;
    }
    Ok(json!({ "lines": lines.len() }))
}

/// An output that is nearly too large.
#[activity]
fn too_large(ctx: &Context, order: Order) -> Result<Value, Failure> {
    order.charge(ctx).effect("charge").send()?.error_for_status()?;
    Ok(json!({ "receipt": "x".repeat(LARGE) }))
}

/// The time in the output.
#[activity]
fn time_in_output(ctx: &Context, order: Order) -> Result<Value, Failure> {
    order.charge(ctx).effect("charge").send()?.error_for_status()?;
    Ok(json!({ "charged_at": millis().to_string() }))
}
