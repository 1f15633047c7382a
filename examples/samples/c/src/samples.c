/* Which activities this module offers, and what they share. */

#include "samples.h"

DEEDBOX_ACTIVITIES(&charge_once_activity, &welcome_user_activity, &import_csv_activity, &wait_for_webhook_activity,
                   &reject_as_data_activity, &keys_activity, &fail_activity, &panic_activity, &spend_activity,
                   &checkpointed_activity, &publish_activity, &log_words_activity, &echo_activity)

deedbox_result reason_of(const deedbox_response *answer, const deedbox_json **reason)
{
    const char *text;
    if (deedbox_response_json(answer, reason) == DEEDBOX_OK) {
        return DEEDBOX_OK;
    }
    DEEDBOX_TRY(deedbox_response_string(answer, &text));
    *reason = deedbox_json_string(answer->ctx, text);
    return DEEDBOX_OK;
}

deedbox_result post(deedbox_context *ctx, const char *url, const char *effect, const deedbox_json *body,
                    const deedbox_response **answer)
{
    return deedbox_send(ctx, &(deedbox_request){
        .method = "POST",
        .url = url,
        .identity = DEEDBOX_NAMED(effect),
        .json = body,
    }, answer);
}

deedbox_result post_or_fail(deedbox_context *ctx, const char *url, const char *effect, const deedbox_json *body,
                            const deedbox_response **answer)
{
    DEEDBOX_TRY(post(ctx, url, effect, body, answer));
    return deedbox_error_for_status(*answer);
}
