/*
 * The calls that an activity can make, as one table, so that a test can answer them. It is exactly the imports of the WIT
 * world, and must never grow a call that the host lacks. Authors do not include this file.
 */
#ifndef DEEDBOX_HOST_H
#define DEEDBOX_HOST_H

#include <stdarg.h>

#include "../third_party/yyjson/yyjson.h"
#include "deedbox.h"

/* What a request, message or write met instead of an answer. */
typedef enum deedbox_error {
    DEEDBOX_ERROR_DENIED,
    DEEDBOX_ERROR_EFFECT_MISMATCH,
    DEEDBOX_ERROR_IN_FLIGHT,
    DEEDBOX_ERROR_OUTCOME_UNKNOWN,
    DEEDBOX_ERROR_UNREACHABLE,
    DEEDBOX_ERROR_TIMED_OUT,
    DEEDBOX_ERROR_RESPONSE_TOO_LARGE,
    DEEDBOX_ERROR_INVALID_REQUEST,
    DEEDBOX_ERROR_CONNECTION_LOST,
    DEEDBOX_ERROR_MESSAGE_REFUSED,
    DEEDBOX_ERROR_WRITE_FAILED,
    DEEDBOX_ERROR_COUNT
} deedbox_error;

/* What of the outside was called. */
typedef enum deedbox_callee { DEEDBOX_CALLEE_HTTP, DEEDBOX_CALLEE_MESSAGING, DEEDBOX_CALLEE_FILES } deedbox_callee;

typedef enum deedbox_signal_outcome {
    DEEDBOX_SIGNAL_GIVEN, /* a signal, or NULL */
    DEEDBOX_SIGNAL_INVALID_NAME,
    DEEDBOX_SIGNAL_TOO_MANY_CALLS
} deedbox_signal_outcome;

typedef struct deedbox_host {
    const char *(*idempotency_key)(deedbox_context *ctx);
    /* NULL when the name is refused. */
    const char *(*subkey)(deedbox_context *ctx, deedbox_text name);
    deedbox_run (*run)(deedbox_context *ctx);
    bool (*cancelled)(deedbox_context *ctx);
    /* The request has its body as bytes, and all its strings are UTF-8. */
    deedbox_result (*send)(deedbox_context *ctx, const deedbox_request *request, deedbox_response *response);
    deedbox_result (*publish)(deedbox_context *ctx, const deedbox_message *message, deedbox_published *published);
    deedbox_result (*write)(deedbox_context *ctx, const char *path, deedbox_text bytes, deedbox_identity identity,
                            deedbox_written *written);
    deedbox_signal_outcome (*poll)(deedbox_context *ctx, const char *name, const deedbox_signal **signal);
    /* Without a time-out when it is NULL. */
    deedbox_signal_outcome (*wait)(deedbox_context *ctx, const char *name, const uint64_t *timeout_ms,
                                   const deedbox_signal **signal);
    /* False when the state is too large. */
    bool (*save)(deedbox_context *ctx, deedbox_text state);
    bool (*load)(deedbox_context *ctx, deedbox_text *state);
} deedbox_host;

typedef struct deedbox_block deedbox_block;

struct deedbox_context {
    const deedbox_host *host;
    void *state; /* of the host */
    deedbox_block *blocks;
    yyjson_alc allocator;
    yyjson_mut_doc *values;
};

void deedbox_open(deedbox_context *ctx, const deedbox_host *host, void *state);
/* Frees everything that was given since deedbox_open. */
void deedbox_close(deedbox_context *ctx);
const char *deedbox_format_list(deedbox_context *ctx, const char *format, va_list arguments);

/* Says so on standard error and ends the attempt by a trap. */
_Noreturn void deedbox_panic(const char *format, ...) DEEDBOX_PRINTF(1, 2);

deedbox_result deedbox_call_failure(deedbox_context *ctx, deedbox_callee callee, deedbox_error error, const char *text,
                                    uint64_t limit);
const char *deedbox_error_code(deedbox_error error);

/* Reads JSON into a value. `code` is the failure's, and `place` what the whole is called in its message. */
deedbox_result deedbox_read(deedbox_context *ctx, const deedbox_json *json, const deedbox_type *type, void *value,
                            const char *code, const char *place, bool closed);
deedbox_result deedbox_parse_as(deedbox_context *ctx, deedbox_text text, const deedbox_json **json, const char *code,
                                const char *place);

bool deedbox_is_utf8(const char *bytes, size_t size);
/* The string itself, or a copy with U+FFFD for what is not UTF-8. */
const char *deedbox_as_utf8(deedbox_context *ctx, const char *string);
/* Why the identity cannot be sent, or NULL. */
const char *deedbox_identity_mistake(deedbox_identity identity);
/* The headers with this content type, unless they have one. */
const deedbox_header *deedbox_typed(deedbox_context *ctx, const deedbox_header *headers, size_t *count, const char *name,
                                    const char *type);

/* Runs an activity of this module on a JSON text, as the host does. */
deedbox_result deedbox_run_named(deedbox_context *ctx, const char *activity, deedbox_text input, deedbox_text *output);

#endif
