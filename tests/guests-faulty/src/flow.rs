//! Faults in the way that a body takes.

use std::time::Duration;

use deedbox_guest::prelude::*;

use crate::{Order, id};

const TRIES: u32 = 3;

/// Sends again by itself.
#[activity]
fn retry_loop(ctx: &Context, order: Order) -> Result<Value, Failure> {
    for _ in 1..TRIES {
        let answer = order.charge(ctx).effect("charge").send();
        if let Ok(answer) = answer
            && answer.is_success()
        {
            return id(answer);
        }
    }
    id(order.charge(ctx).effect("charge").send()?)
}

/// Looks whether it was done already, and takes another way then.
#[activity]
fn check_then_act(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let there: Value = ctx.http().get(order.charges()).send()?.error_for_status()?.json()?;
    if there["data"].as_array().is_some_and(|charges| !charges.is_empty()) {
        return Ok(json!({ "outcome": "there-already" }));
    }
    id(order.charge(ctx).send()?)
}

/// A declined card is tried again and again.
#[activity]
fn rejected_as_retryable(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let answer = order.charge(ctx).effect("charge").send()?;
    if answer.is_success() {
        return id(answer);
    }
    Err(Failure::retryable("charge-failed", format!("status {}", answer.status())).retry_after(Duration::ZERO))
}

/// Charges, and then cannot go on, ever.
#[activity]
fn partial_then_panic(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let charge = id(order.charge(ctx).effect("charge").send()?)?;
    let mails: Vec<String> = Vec::new();
    let first = &mails[charge.as_object().map_or(0, |members| members.len())];
    Ok(json!({ "mail": first }))
}

/// Notes that it is done before it is done.
#[activity]
fn checkpoint_too_early(ctx: &Context, order: Order) -> Result<Value, Failure> {
    if ctx.checkpoint().load::<bool>()?.is_none() {
        ctx.checkpoint().save(&true)?;
        order.charge(ctx).effect("charge").send()?.error_for_status()?;
    }
    Ok(json!({ "outcome": "charged" }))
}

/// Only the first attempt charges.
#[activity]
fn only_first_attempt(ctx: &Context, order: Order) -> Result<Value, Failure> {
    if ctx.run().attempt() == 1 {
        order.charge(ctx).effect("charge").send()?.error_for_status()?;
    }
    Ok(json!({ "outcome": "charged" }))
}

/// Does not look at the answer.
#[activity]
fn unread_status(ctx: &Context, order: Order) -> Result<Value, Failure> {
    order.charge(ctx).effect("charge").send()?;
    Ok(json!({ "outcome": "charged" }))
}
