/* What the samples share. */
#ifndef SAMPLES_H
#define SAMPLES_H

#include <deedbox.h>

DEEDBOX_DECLARE(charge_once);
DEEDBOX_DECLARE(welcome_user);
DEEDBOX_DECLARE(import_csv);
DEEDBOX_DECLARE(wait_for_webhook);
DEEDBOX_DECLARE(reject_as_data);
DEEDBOX_DECLARE(keys);
DEEDBOX_DECLARE(fail);
DEEDBOX_DECLARE(panic);
DEEDBOX_DECLARE(spend);
DEEDBOX_DECLARE(checkpointed);
DEEDBOX_DECLARE(publish);
DEEDBOX_DECLARE(log_words);
DEEDBOX_DECLARE(echo);

/* What a provider gives back for what it made. */
struct created {
    const char *id;
};
DEEDBOX_TYPE(created_type, struct created, DEEDBOX_FIELD(struct created, id))

/* What the provider says, as JSON if it is, else as text. */
deedbox_result reason_of(const deedbox_response *answer, const deedbox_json **reason);
/* POSTs a named effect. Every status is an answer. */
deedbox_result post(deedbox_context *ctx, const char *url, const char *effect, const deedbox_json *body,
                    const deedbox_response **answer);
/* The same; a status of 400 or above is a failure. */
deedbox_result post_or_fail(deedbox_context *ctx, const char *url, const char *effect, const deedbox_json *body,
                            const deedbox_response **answer);

#endif
