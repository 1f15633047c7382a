/* Messages and files through the ledger. The host claims each first and gives a message an id that is the same in every
 * attempt. So nothing here may retry by itself or invent an id. */

#include <string.h>

#include "deedbox_host.h"

static bool is_string(const char *string)
{
    return string != NULL && deedbox_is_utf8(string, strlen(string));
}

static const char *mistake(const deedbox_message *message)
{
    if (!is_string(message->subject)) {
        return "it needs a subject, in UTF-8";
    }
    if (message->payload.data != NULL && message->json != NULL) {
        return "it has a payload and json: choose one";
    }
    for (size_t i = 0; i < message->header_count; i++) {
        deedbox_text value = message->headers[i].value;
        if (!is_string(message->headers[i].name) || !deedbox_is_utf8(value.data, value.size)) {
            return "a header is not UTF-8";
        }
    }
    return deedbox_identity_mistake(message->identity);
}

deedbox_result deedbox_publish(deedbox_context *ctx, const deedbox_message *message, deedbox_published *published)
{
    deedbox_message ready = *message;
    const char *why = mistake(message);
    if (why == NULL && message->json != NULL) {
        deedbox_result unwritable = deedbox_print(ctx, message->json, &ready.payload);
        why = unwritable == DEEDBOX_OK ? NULL : unwritable->message;
        ready.headers = deedbox_typed(ctx, ready.headers, &ready.header_count, "Content-Type", "application/json");
        ready.json = NULL;
    }
    if (why != NULL) {
        return deedbox_call_failure(ctx, DEEDBOX_CALLEE_MESSAGING, DEEDBOX_ERROR_INVALID_REQUEST, why, 0);
    }
    deedbox_published unread;
    return ctx->host->publish(ctx, &ready, published == NULL ? &unread : published);
}

deedbox_result deedbox_write_file(deedbox_context *ctx, const char *path, deedbox_text bytes, deedbox_identity identity,
                                  deedbox_written *written)
{
    const char *why = is_string(path) ? deedbox_identity_mistake(identity) : "it needs a path, in UTF-8";
    if (why != NULL) {
        return deedbox_call_failure(ctx, DEEDBOX_CALLEE_FILES, DEEDBOX_ERROR_INVALID_REQUEST, why, 0);
    }
    deedbox_written unread;
    return ctx->host->write(ctx, path, bytes, identity, written == NULL ? &unread : written);
}
