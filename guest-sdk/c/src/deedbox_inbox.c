/* Signals to this run, and its checkpoint: what earlier attempts and the outside tell this attempt. Nothing here carries
 * anything to the outside. */

#include <string.h>

#include "deedbox_host.h"

static deedbox_result outcome(deedbox_context *ctx, deedbox_signal_outcome given)
{
    switch (given) {
    case DEEDBOX_SIGNAL_GIVEN: break;
    case DEEDBOX_SIGNAL_INVALID_NAME:
        return deedbox_permanent(ctx, "signal-invalid-name",
                                 "the name of a signal has 1 to 128 characters of A-Z a-z 0-9 . _ -: choose another name");
    case DEEDBOX_SIGNAL_TOO_MANY_CALLS:
        return deedbox_permanent(ctx, "signal-too-many-calls", "this attempt has polled and waited more often than the host "
                                                               "allows: wait instead of polling in a loop");
    }
    return DEEDBOX_OK;
}

/* The host's text is UTF-8 only. */
static deedbox_signal_outcome checked(const char *name)
{
    bool is_string = name != NULL && deedbox_is_utf8(name, strlen(name));
    return is_string ? DEEDBOX_SIGNAL_GIVEN : DEEDBOX_SIGNAL_INVALID_NAME;
}

deedbox_result deedbox_poll_signal(deedbox_context *ctx, const char *name, const deedbox_signal **signal)
{
    *signal = NULL;
    DEEDBOX_TRY(outcome(ctx, checked(name)));
    return outcome(ctx, ctx->host->poll(ctx, name, signal));
}

deedbox_result deedbox_wait_signal(deedbox_context *ctx, const char *name, const deedbox_signal **signal)
{
    *signal = NULL;
    DEEDBOX_TRY(outcome(ctx, checked(name)));
    DEEDBOX_TRY(outcome(ctx, ctx->host->wait(ctx, name, NULL, signal)));
    if (*signal == NULL) {
        return deedbox_permanent(ctx, "signal-missing", "the host gave no signal to a wait without an end");
    }
    return DEEDBOX_OK;
}

deedbox_result deedbox_wait_signal_for(deedbox_context *ctx, const char *name, uint64_t timeout_ms,
                                       const deedbox_signal **signal)
{
    *signal = NULL;
    DEEDBOX_TRY(outcome(ctx, checked(name)));
    return outcome(ctx, ctx->host->wait(ctx, name, &timeout_ms, signal));
}

deedbox_result deedbox_signal_json(const deedbox_signal *signal, const deedbox_json **json)
{
    return deedbox_parse_as(signal->ctx, signal->payload, json, "signal-format", "payload");
}

deedbox_result deedbox_signal_read(const deedbox_signal *signal, const deedbox_type *type, void *value)
{
    const deedbox_json *json;
    DEEDBOX_TRY(deedbox_signal_json(signal, &json));
    return deedbox_read(signal->ctx, json, type, value, "signal-format", "payload", false);
}

deedbox_result deedbox_save_bytes(deedbox_context *ctx, deedbox_text state)
{
    if (!ctx->host->save(ctx, state)) {
        return deedbox_permanent(ctx, "checkpoint-too-large", "the state is larger than the host allows (64 KiB unless the "
                                                              "operator set another limit): save less");
    }
    return DEEDBOX_OK;
}

deedbox_result deedbox_save(deedbox_context *ctx, const deedbox_type *type, const void *value)
{
    deedbox_text state;
    deedbox_result unwritable = deedbox_print(ctx, deedbox_encode(ctx, type, value), &state);
    if (unwritable != DEEDBOX_OK) {
        return deedbox_permanent(ctx, "checkpoint-format", "%s", unwritable->message);
    }
    return deedbox_save_bytes(ctx, state);
}

bool deedbox_load_bytes(deedbox_context *ctx, deedbox_text *state)
{
    return ctx->host->load(ctx, state);
}

deedbox_result deedbox_load(deedbox_context *ctx, const deedbox_type *type, void *value, bool *found)
{
    deedbox_text state;
    const deedbox_json *json;
    *found = deedbox_load_bytes(ctx, &state);
    if (!*found) {
        return DEEDBOX_OK;
    }
    DEEDBOX_TRY(deedbox_parse_as(ctx, state, &json, "checkpoint-format", "state"));
    return deedbox_read(ctx, json, type, value, "checkpoint-format", "state", false);
}
