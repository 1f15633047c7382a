//! What an activity tells: messages to others, and words to the run's log.

use deedbox_guest::prelude::*;

#[data]
struct Message {
    subject: String,
    text: String,
}

#[data]
struct Kept {
    stream: String,
    sequence: u64,
}

/// Publishes one message.
#[activity]
fn publish(ctx: &Context, input: Message) -> Result<Kept, Failure> {
    let kept = ctx.messages().publish(input.subject).payload(input.text).effect("note").send()?;
    Ok(Kept { stream: kept.stream, sequence: kept.sequence })
}

#[data]
struct Words {
    words: String,
}

/// Logs these words at each level, and prints them.
#[activity]
#[allow(clippy::print_stdout, reason = "what is printed goes to the run's log, and is to be seen there")]
fn log(_ctx: &Context, input: Words) -> Result<(), Failure> {
    let words = &input.words;
    log::trace!("{words}");
    log::debug!("{words}");
    log::info!("{words}");
    log::warn!("{words}");
    log::error!("{words}");
    println!("{words}");
    Ok(())
}
