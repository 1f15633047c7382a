//! Two effects of one run, each with a reference of its own that is the same in every attempt.

use deedbox_guest::prelude::*;

use crate::Made;

#[data]
struct User {
    provider_url: String,
    user: String,
    email: String,
}

#[data]
struct Welcomed {
    account_id: String,
    mail_id: String,
}

/// Makes an account and sends the mail that says so.
#[activity]
fn welcome_user(ctx: &Context, input: User) -> Result<Welcomed, Failure> {
    let reference = ctx.subkey("account")?;
    let account = json!({ "user": input.user, "email": input.email, "reference": reference.as_str() });
    let at = format!("{}/v1/accounts", input.provider_url);
    let answer = ctx.http().post(at).effect("create-account").json(&account).send()?;
    let account: Made = answer.error_for_status()?.json()?;

    let reference = ctx.subkey("mail")?;
    let mail = json!({ "to": input.email, "account": account.id, "reference": reference.as_str() });
    let at = format!("{}/v1/mails", input.provider_url);
    let answer = ctx.http().post(at).effect("welcome-mail").json(&mail).send()?;
    let mail: Made = answer.error_for_status()?.json()?;
    Ok(Welcomed { account_id: account.id, mail_id: mail.id })
}
