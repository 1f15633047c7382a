// Two effects of one run, told apart by their names, each with a key of its own.

import { activity, s } from "@deedbox/guest";

const User = s.object({ provider_url: s.string(), user: s.string(), email: s.string() });
const Made = s.object({ id: s.string() });

export const welcomeUser = activity(
  {
    name: "welcome-user",
    summary: "Makes an account and sends a mail about it, each once.",
    input: User,
    output: s.object({ account_id: s.string(), mail_id: s.string() }),
  },
  (ctx, { provider_url, user, email }) => {
    const make = (path: string, effect: string, json: object) =>
      ctx.http
        .post(provider_url + path, { effect, json })
        .errorForStatus()
        .json(Made).id;
    const account_id = make("/v1/accounts", "create-account", { user, email, reference: ctx.subkey("account") });
    const mail = { to: email, account: account_id, reference: ctx.subkey("mail") };
    return { account_id, mail_id: make("/v1/mails", "welcome-mail", mail) };
  },
);
