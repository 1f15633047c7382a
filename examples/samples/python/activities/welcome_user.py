"""Two effects of one run, each with a reference of its own that is the same in every attempt."""

from dataclasses import dataclass

from deedbox import Context, activity


@dataclass
class User:
    provider_url: str
    user: str
    email: str


@dataclass
class Made:
    id: str


@dataclass
class Welcomed:
    account_id: str
    mail_id: str


@activity
def welcome_user(ctx: Context, user: User) -> Welcomed:
    """Makes an account and sends a mail about it."""
    account = ctx.http.post(
        f"{user.provider_url}/v1/accounts",
        effect="create-account",
        json={"user": user.user, "email": user.email, "reference": ctx.subkey("account")},
    )
    account_id = account.error_for_status().json(Made).id
    mail = ctx.http.post(
        f"{user.provider_url}/v1/mails",
        effect="welcome-mail",
        json={"to": user.email, "account": account_id, "reference": ctx.subkey("mail")},
    )
    return Welcomed(account_id, mail.error_for_status().json(Made).id)
