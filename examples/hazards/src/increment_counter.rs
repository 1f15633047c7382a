//! Adds to a balance. A second run of an increment counts twice.
//!
//! Safe, because it does not add: it sets what one event contributes, under that event's own number, and the balance is
//! the sum of the contributions. A PUT may be sent as often as need be.

use deedbox_guest::prelude::*;

/// Points that a customer has earned.
#[data]
struct Earned {
    customer: u64,
    /// The event by which they were earned.
    event: u64,
    points: u64,
    /// Where the balances are, without a path.
    provider_url: String,
}

#[data]
struct Balance {
    value: u64,
}

/// Counts the points of an event, once.
#[activity]
fn increment_counter(ctx: &Context, earned: Earned) -> Result<Balance, Failure> {
    let Earned { customer, event, points, provider_url } = earned;
    let contribution = format!("{provider_url}/counters/points-{customer}/contributions/{event}");
    Ok(ctx.http().put(contribution).json(&json!({ "by": points })).send()?.error_for_status()?.json()?)
}
