/* Failures: the author's own, and what each error of a call becomes. The codes are the same in every language. */

#include <string.h>

#include "deedbox_host.h"

static deedbox_failure *failure(deedbox_context *ctx, bool retryable, const char *code, const char *message)
{
    deedbox_failure *made = deedbox_alloc(ctx, sizeof *made);
    *made = (deedbox_failure){.code = code, .message = message, .retryable = retryable};
    return made;
}

deedbox_failure *deedbox_retryable(deedbox_context *ctx, const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    deedbox_failure *made = failure(ctx, true, code, deedbox_format_list(ctx, format, arguments));
    va_end(arguments);
    return made;
}

deedbox_failure *deedbox_permanent(deedbox_context *ctx, const char *code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    deedbox_failure *made = failure(ctx, false, code, deedbox_format_list(ctx, format, arguments));
    va_end(arguments);
    return made;
}

deedbox_failure *deedbox_retry_after(deedbox_failure *changed, uint64_t ms)
{
    changed->has_retry_after = true;
    changed->retry_after_ms = ms;
    return changed;
}

deedbox_failure *deedbox_with_details(deedbox_failure *changed, const deedbox_json *details)
{
    changed->details = details;
    return changed;
}

bool deedbox_failed_with(deedbox_result result, const char *code)
{
    return result != DEEDBOX_OK && strcmp(result->code, code) == 0;
}

static const struct {
    const char *code;
    bool retryable;
    /* What is said before the host's own text, of a request, a message and a file. NULL: the text says it all. */
    const char *said[3];
} errors[DEEDBOX_ERROR_COUNT] = {
    [DEEDBOX_ERROR_DENIED] = {"denied", false, {"the deployment does not allow this call",
                                                "the deployment does not allow this message",
                                                "this write is not allowed"}},
    [DEEDBOX_ERROR_EFFECT_MISMATCH] = {"effect-mismatch", false, {NULL, NULL, NULL}},
    [DEEDBOX_ERROR_IN_FLIGHT] = {"in-flight", true, {"another attempt or run holds this effect right now: try again later",
                                                     "another attempt or run holds this effect right now: try again later",
                                                     "another attempt or run holds this effect right now: try again later"}},
    [DEEDBOX_ERROR_OUTCOME_UNKNOWN] =
        {"outcome-unknown", false, {"nobody knows whether this effect happened, and policy forbids sending it again",
                                    "nobody knows whether this message was published, and policy forbids sending it again",
                                    NULL}},
    [DEEDBOX_ERROR_UNREACHABLE] = {"unreachable", true, {"the provider could not be reached",
                                                         "the server could not be reached", NULL}},
    [DEEDBOX_ERROR_TIMED_OUT] = {"timed-out", true, {"no whole answer came in time", "no acknowledgement came in time", NULL}},
    [DEEDBOX_ERROR_RESPONSE_TOO_LARGE] = {"response-too-large", false, {NULL, NULL, NULL}},
    [DEEDBOX_ERROR_INVALID_REQUEST] = {"invalid-request", false, {"the request cannot be sent as it stands",
                                                                  "the message cannot be sent as it stands",
                                                                  "the file cannot be written as it stands"}},
    [DEEDBOX_ERROR_CONNECTION_LOST] = {"connection-lost", true, {"the connection broke after the request was sent",
                                                                 "the connection broke after the message was sent", NULL}},
    [DEEDBOX_ERROR_MESSAGE_REFUSED] = {"message-refused", true, {NULL, "the server refused the message", NULL}},
    [DEEDBOX_ERROR_WRITE_FAILED] = {"write-failed", true, {NULL, NULL, "the file was not written"}},
};

deedbox_result deedbox_call_failure(deedbox_context *ctx, deedbox_callee callee, deedbox_error error, const char *text,
                                    uint64_t limit)
{
    const char *said = errors[error].said[callee];
    const char *message = said;
    if (error == DEEDBOX_ERROR_RESPONSE_TOO_LARGE) {
        message = deedbox_format(ctx, "the answer is larger than the host's limit of %llu bytes", (unsigned long long)limit);
    } else if (text != NULL && *text != '\0') {
        message = said == NULL ? text : deedbox_format(ctx, "%s: %s", said, text);
    }
    return failure(ctx, errors[error].retryable, errors[error].code, message == NULL ? errors[error].code : message);
}

const char *deedbox_error_code(deedbox_error error)
{
    return errors[error].code;
}
