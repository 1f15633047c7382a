//! Faults over `wasi:http`.

use deedbox_guest::prelude::*;
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, FutureIncomingResponse, Method, OutgoingRequest, Scheme};

use crate::Order;

/// Charges, and never looks whether an answer comes; what it does meanwhile is right.
#[activity]
fn fire_and_forget(ctx: &Context, order: Order) -> Result<Value, Failure> {
    let charge = begin(&order).map_err(|()| Failure::permanent("no-request", "the request cannot be made"))?;
    let mail = ctx.http().post(format!("{}/v1/mails", order.provider_url)).effect("mail").json(&order.body());
    mail.send()?.error_for_status()?;
    drop(charge);
    Ok(json!({ "outcome": "charged" }))
}

fn begin(order: &Order) -> Result<FutureIncomingResponse, ()> {
    let authority = order.provider_url.split_once("://").map(|(_, authority)| authority);
    let request = OutgoingRequest::new(Fields::new());
    request.set_method(&Method::Post)?;
    request.set_scheme(Some(&Scheme::Https))?;
    request.set_authority(authority)?;
    request.set_path_with_query(Some("/v1/charges"))?;
    handle(request, None).map_err(|_| ())
}

/// Two effects under way at once at one address, without names.
#[activity]
fn unnamed_at_once(_ctx: &Context, order: Order) -> Result<Value, Failure> {
    let broken = || Failure::permanent("no-answer", "a call came to nothing");
    let calls = [begin(&order), begin(&order)];
    for call in calls {
        let call = call.map_err(|()| broken())?;
        call.subscribe().block();
        call.get().and_then(Result::ok).and_then(Result::ok).ok_or_else(broken)?;
    }
    Ok(json!({ "outcome": "charged twice" }))
}
