//! Sends a mail. A second run sends a second mail.
//!
//! Safe with a provider that takes a key, such as Resend: the host gives it one for this effect. Some take none, such as
//! SendGrid: after a crash in the middle the host then sends nothing more, and a person says whether the mail went out.

use deedbox_guest::prelude::*;

/// Who has joined.
#[data]
struct Welcome {
    to: String,
    /// Where the provider answers, without a path.
    provider_url: String,
}

#[data]
struct Mail {
    id: String,
}

/// Welcomes somebody by mail, once.
#[activity]
fn send_email(ctx: &Context, welcome: Welcome) -> Result<Mail, Failure> {
    let mail = ctx.http().post(format!("{}/emails", welcome.provider_url)).effect("welcome");
    let body = json!({ "to": welcome.to, "subject": "Welcome" });
    Ok(mail.json(&body).send()?.error_for_status()?.json()?)
}
