//! Many steps, of which a later attempt does not begin again what is done.

use deedbox_guest::prelude::*;

#[data]
struct Steps {
    steps: u32,
    provider_url: String,
}

#[data]
struct Progress {
    done: u32,
}

#[data]
struct Done {
    done: u32,
    began_at: u32,
}

/// Makes the steps that are left, and notes each.
#[activity]
fn checkpointed(ctx: &Context, input: Steps) -> Result<Done, Failure> {
    let began_at = ctx.checkpoint().load::<Progress>()?.map_or(0, |progress| progress.done);
    for step in began_at + 1..=input.steps {
        let at = format!("{}/v1/steps", input.provider_url);
        let made = ctx.http().post(at).effect(format!("step-{step}")).json(&json!({ "step": step })).send()?;
        made.error_for_status()?;
        ctx.checkpoint().save(&Progress { done: step })?;
    }
    Ok(Done { done: input.steps, began_at })
}
