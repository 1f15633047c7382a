//! `deedbox:activity/context`.

use std::time::Duration;

use deedbox_guest::prelude::*;

const POLL: Duration = Duration::from_millis(5);

#[data]
struct RunInfo {
    tenant: String,
    run_id: String,
    activity: String,
    attempt: u32,
    max_attempts: u32,
    remaining_ms: u64,
    cancelled: bool,
}

/// Returns what is known about the run.
#[activity]
fn run_info(ctx: &Context, _input: Value) -> Result<RunInfo, Failure> {
    let run = ctx.run();
    Ok(RunInfo {
        tenant: run.tenant().to_owned(),
        run_id: run.run_id().to_owned(),
        activity: run.activity().to_owned(),
        attempt: run.attempt(),
        max_attempts: run.max_attempts(),
        remaining_ms: u64::try_from(run.remaining().as_millis()).unwrap_or(u64::MAX),
        cancelled: ctx.cancelled(),
    })
}

/// Returns once it was asked to stop.
#[activity]
fn wait_cancelled(ctx: &Context, _input: Value) -> Result<bool, Failure> {
    wait_until_cancelled(ctx);
    Ok(true)
}

/// Asks the host again and again whether it was asked to stop, and never rests.
#[activity]
fn wait_busily(ctx: &Context, _input: Value) -> Result<bool, Failure> {
    while !ctx.cancelled() {}
    Ok(true)
}

pub fn wait_until_cancelled(ctx: &Context) {
    while !ctx.cancelled() {
        std::thread::sleep(POLL);
    }
}
