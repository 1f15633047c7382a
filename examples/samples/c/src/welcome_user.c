/* Two effects of one run, each with a key of its own that is the same in every attempt. */

#include "samples.h"

struct user {
    const char *provider_url;
    const char *user;
    const char *email;
};
DEEDBOX_TYPE(user_type, struct user,
             DEEDBOX_FIELD(struct user, provider_url),
             DEEDBOX_FIELD(struct user, user),
             DEEDBOX_FIELD(struct user, email))

struct account {
    const char *user;
    const char *email;
    const char *reference;
};
DEEDBOX_TYPE(account_type, struct account,
             DEEDBOX_FIELD(struct account, user),
             DEEDBOX_FIELD(struct account, email),
             DEEDBOX_FIELD(struct account, reference))

struct mail {
    const char *to;
    const char *account;
    const char *reference;
};
DEEDBOX_TYPE(mail_type, struct mail,
             DEEDBOX_FIELD(struct mail, to),
             DEEDBOX_FIELD(struct mail, account),
             DEEDBOX_FIELD(struct mail, reference))

struct welcomed {
    const char *account_id;
    const char *mail_id;
};
DEEDBOX_TYPE(welcomed_type, struct welcomed,
             DEEDBOX_FIELD(struct welcomed, account_id),
             DEEDBOX_FIELD(struct welcomed, mail_id))

static deedbox_result make(deedbox_context *ctx, const char *url, const char *effect, const deedbox_json *body, const char **id)
{
    const deedbox_response *answer;
    struct created created;
    DEEDBOX_TRY(post_or_fail(ctx, url, effect, body, &answer));
    DEEDBOX_TRY(deedbox_response_read(answer, &created_type, &created));
    *id = created.id;
    return DEEDBOX_OK;
}

static deedbox_result welcome_user(deedbox_context *ctx, const struct user *user, struct welcomed *welcomed)
{
    struct account account = {user->user, user->email, NULL};
    const char *url = deedbox_format(ctx, "%s/v1/accounts", user->provider_url);
    DEEDBOX_TRY(deedbox_subkey(ctx, "account", &account.reference));
    DEEDBOX_TRY(make(ctx, url, "create-account", deedbox_encode(ctx, &account_type, &account), &welcomed->account_id));

    struct mail mail = {user->email, welcomed->account_id, NULL};
    url = deedbox_format(ctx, "%s/v1/mails", user->provider_url);
    DEEDBOX_TRY(deedbox_subkey(ctx, "mail", &mail.reference));
    return make(ctx, url, "welcome-mail", deedbox_encode(ctx, &mail_type, &mail), &welcomed->mail_id);
}
DEEDBOX_ACTIVITY(welcome_user, "welcome-user", "Makes an account and sends a mail to its owner, each once.", user_type,
                 welcomed_type)
