/*
 * Deedbox activities in C: an activity is a function, and what it changes in the outside world it changes through its
 * context. The host claims each effect before it is sent, and answers it from its record when the activity runs again.
 *
 * Ownership: everything that a function here gives belongs to the context and lives until the attempt ends. Nothing is
 * freed by hand. What is handed in is only read during the call, unless its description says otherwise.
 *
 * Strings are UTF-8 and end with a zero byte; deedbox_text is for bytes and for strings that may hold a zero byte.
 */
#ifndef DEEDBOX_H
#define DEEDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "deedbox_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define DEEDBOX_CHECKED __attribute__((warn_unused_result))
#define DEEDBOX_PRINTF(at, first) __attribute__((format(printf, at, first)))
#else
#define DEEDBOX_CHECKED
#define DEEDBOX_PRINTF(at, first)
#endif

/* ---- Failures ---- */

/* The end of an attempt without a value. A business rejection is none: it is an output. It is recorded and shown, so it
 * must never carry a secret. */
typedef struct deedbox_failure {
    const char *code;    /* a stable word for programs, for example "card-network-down" */
    const char *message; /* a sentence for people */
    bool retryable;      /* another attempt may succeed; the retry policy decides whether there is one */
    bool has_retry_after;
    uint64_t retry_after_ms; /* the earliest time for the next attempt, from now; the host caps it */
    const deedbox_json *details;
} deedbox_failure;

/* What every call gives that can fail: DEEDBOX_OK, or why not. */
typedef const deedbox_failure *deedbox_result;
#define DEEDBOX_OK ((deedbox_result)0)

/* Returns from the activity with the failure, if there is one. */
#define DEEDBOX_TRY(...)                          \
    do {                                          \
        deedbox_result deedbox_try = __VA_ARGS__; \
        if (deedbox_try != DEEDBOX_OK) {          \
            return deedbox_try;                   \
        }                                         \
    } while (0)

deedbox_failure *deedbox_retryable(deedbox_context *ctx, const char *code, const char *format, ...) DEEDBOX_PRINTF(3, 4);
deedbox_failure *deedbox_permanent(deedbox_context *ctx, const char *code, const char *format, ...) DEEDBOX_PRINTF(3, 4);
/* These two change the failure and give it back, to be returned. */
deedbox_failure *deedbox_retry_after(deedbox_failure *failure, uint64_t ms);
deedbox_failure *deedbox_with_details(deedbox_failure *failure, const deedbox_json *details);
/* Whether this is a failure with that code. */
bool deedbox_failed_with(deedbox_result result, const char *code);

/* ---- Activities ---- */

typedef deedbox_result deedbox_function(deedbox_context *ctx, const void *input, void *output);

typedef struct deedbox_activity {
    const char *name;    /* 1 to 128 characters of A-Z a-z 0-9 . _ - */
    const char *summary; /* one line for people */
    const deedbox_type *input;
    const deedbox_type *output;
    deedbox_function *run;
} deedbox_activity;

/* Makes an activity of
 *     static deedbox_result function(deedbox_context *ctx, const INPUT *input, OUTPUT *output)
 * where INPUT and OUTPUT are the structs that DEEDBOX_TYPE gave the names input_type and output_type. The output is zeroed
 * before the call. An input that does not fit ends the run with `invalid-input` and names the place. */
#define DEEDBOX_ACTIVITY(function, activity_name, activity_summary, input_type, output_type)                       \
    static deedbox_result function##_deedbox_call(deedbox_context *ctx, const void *input, void *output)           \
    {                                                                                                              \
        const input_type##_struct *deedbox_input = (const input_type##_struct *)input;                             \
        output_type##_struct *deedbox_output = (output_type##_struct *)output;                                     \
        return function(ctx, deedbox_input, deedbox_output);                                                       \
    }                                                                                                              \
    DEEDBOX_DECLARE(function);                                                                                     \
    const deedbox_activity function##_activity = {activity_name, activity_summary, &input_type, &output_type,      \
                                                  function##_deedbox_call};

/* Announces an activity that another file makes. */
#define DEEDBOX_DECLARE(function) extern const deedbox_activity function##_activity

/* Says once, in one file, which activities the module offers:
 *     DEEDBOX_ACTIVITIES(&charge_once_activity, &refund_activity) */
#define DEEDBOX_ACTIVITIES(...) const deedbox_activity *const deedbox_activities[] = {__VA_ARGS__, NULL};
extern const deedbox_activity *const deedbox_activities[];

/* ---- The run ---- */

/* The run key: the same in every attempt of this run, and in no other run. A lower-case hyphenated UUID. */
const char *deedbox_idempotency_key(deedbox_context *ctx);
/* A key for one of several effects of this run. The same name always gives the same key, another name another key. Fails
 * with `invalid-name` when the name is empty or longer than 256 bytes. */
DEEDBOX_CHECKED deedbox_result deedbox_subkey(deedbox_context *ctx, const char *name, const char **key);
DEEDBOX_CHECKED deedbox_result deedbox_subkey_of(deedbox_context *ctx, deedbox_text name, const char **key);

typedef struct deedbox_run {
    const char *tenant;
    const char *run_id;   /* a UUID, the same in every attempt */
    const char *activity; /* the name under which it was deployed */
    /* 1 for the first attempt. For logging only: a key built from it differs on every attempt, and the effect would happen
     * again. Use deedbox_subkey for keys. */
    uint32_t attempt;
    uint32_t max_attempts;
    uint64_t remaining_ms; /* before this attempt is stopped */
} deedbox_run;

deedbox_run deedbox_run_info(deedbox_context *ctx);
/* True once this attempt was asked to stop. Return soon: the host stops it otherwise. */
bool deedbox_cancelled(deedbox_context *ctx);

/* ---- HTTP ---- */

typedef struct deedbox_header {
    const char *name;
    deedbox_text value;
} deedbox_header;

/* How an effect is told apart from all others. All zero: by its method, address and order within the attempt. */
typedef struct deedbox_identity {
    const char *name;      /* unique in this run, 1 to 256 bytes; or */
    const char *operation; /* the business itself, for example "charge" … */
    const char *key;       /* … and an order number: two runs that name the same share one effect */
} deedbox_identity;

#define DEEDBOX_NAMED(effect) ((deedbox_identity){.name = (effect)})
#define DEEDBOX_BUSINESS(what, which) ((deedbox_identity){.operation = (what), .key = (which)})

/* What to do when nobody knows whether the effect happened and sending again is not safe by itself. */
typedef enum deedbox_on_unknown {
    DEEDBOX_PROVIDER_DEFAULT, /* as the deployment's policy, else the provider's profile, says; else ask */
    DEEDBOX_ASK,              /* the run waits until a person or a system settles the question */
    DEEDBOX_AT_MOST_ONCE,     /* never send again: the call fails with `outcome-unknown` */
    DEEDBOX_AT_LEAST_ONCE     /* send again, and accept that the effect may happen twice */
} deedbox_on_unknown;

/* Recognises an answer of a look-up. */
typedef struct deedbox_condition {
    const uint16_t *statuses;
    size_t status_count;
    const char *pointer; /* RFC 6901, `*` stands for every element; or NULL */
    const char *equals;  /* what is there; NULL: anything but null */
} deedbox_condition;

/* A GET by which the host finds out whether an effect happened, maybe days later. When neither condition is true it cannot
 * tell. */
typedef struct deedbox_lookup {
    const char *url;
    const deedbox_header *headers;
    size_t header_count;
    deedbox_condition found;
    deedbox_condition absent;
    uint32_t settle_ms; /* how long after the send `absent` may still be wrong */
} deedbox_lookup;

typedef struct deedbox_request {
    const char *method; /* upper case; GET, HEAD and OPTIONS are reads, every other is an effect */
    const char *url;    /* absolute, http or https */
    const deedbox_header *headers; /* the host refuses `host`, hop-by-hop and framing headers */
    size_t header_count;
    /* At most one of these. The last two bring a content type, unless the headers have one. */
    deedbox_text body;
    const deedbox_json *json;
    const char *form; /* from deedbox_form */
    deedbox_identity identity;
    deedbox_on_unknown on_unknown;
    const deedbox_lookup *lookup;
    uint32_t timeout_ms; /* 0: the host's default; capped by the time left for the attempt */
} deedbox_request;

typedef enum deedbox_source {
    DEEDBOX_SENT,      /* this send */
    DEEDBOX_REPLAYED,  /* the record of an earlier send; nothing was sent now */
    DEEDBOX_LOOKED_UP, /* a look-up at the provider */
    DEEDBOX_SUPPLIED   /* a person or a system who settled the question */
} deedbox_source;

typedef struct deedbox_response {
    deedbox_context *ctx;
    uint16_t status;
    const deedbox_header *headers;
    size_t header_count;
    bool body_kept; /* false: the record has no body, because it was larger than the host keeps */
    deedbox_text body;
    deedbox_source source;
    const char *effect_id; /* NULL for a read */
} deedbox_response;

/* Sends it, or answers it from the ledger. Every status is an answer. */
DEEDBOX_CHECKED deedbox_result deedbox_send(deedbox_context *ctx, const deedbox_request *request,
                                            const deedbox_response **response);
/* Fails with `http-status` when the status is 400 or higher: retryable for 5xx, 408, 425 and 429. */
DEEDBOX_CHECKED deedbox_result deedbox_error_for_status(const deedbox_response *response);
bool deedbox_is_success(const deedbox_response *response);
/* The value of the first header of that name, in any case; NULL when there is none. */
const char *deedbox_response_header(const deedbox_response *response, const char *name);
/* The body. Each fails with `body-not-kept` when the record has none, and with `unexpected-body` when it is something else
 * than was asked for. Members that the type does not know are passed over. */
DEEDBOX_CHECKED deedbox_result deedbox_response_bytes(const deedbox_response *response, deedbox_text *bytes);
DEEDBOX_CHECKED deedbox_result deedbox_response_string(const deedbox_response *response, const char **string);
DEEDBOX_CHECKED deedbox_result deedbox_response_json(const deedbox_response *response, const deedbox_json **json);
DEEDBOX_CHECKED deedbox_result deedbox_response_read(const deedbox_response *response, const deedbox_type *type, void *value);

/* `a=1&b=x+y`, from count pairs of a name and a value, in the order given. */
const char *deedbox_form(deedbox_context *ctx, const char *const pairs[][2], size_t count);
/* For one segment or value in a URL: every byte is escaped but A-Z a-z 0-9 - . _ ~ */
const char *deedbox_url_escape(deedbox_context *ctx, const char *string);

/* ---- Messages and files ---- */

typedef struct deedbox_message {
    const char *subject;
    deedbox_text payload;     /* or */
    const deedbox_json *json; /* with a content type, unless the headers have one */
    const deedbox_header *headers;
    size_t header_count;
    deedbox_identity identity;
    deedbox_on_unknown on_unknown;
} deedbox_message;

typedef struct deedbox_published {
    const char *stream; /* where the server keeps the message */
    uint64_t sequence;
    bool duplicate; /* the server had it already */
    const char *message_id;
    deedbox_source source;
    const char *effect_id;
} deedbox_published;

/* Publishes it and waits until the server keeps it, or answers from the ledger. `published` may be NULL. */
DEEDBOX_CHECKED deedbox_result deedbox_publish(deedbox_context *ctx, const deedbox_message *message,
                                               deedbox_published *published);

typedef struct deedbox_written {
    deedbox_source source;
    const char *effect_id;
} deedbox_written;

/* Puts a whole file in place: readers see the old one or the new one. The first segment of the path names a directory that
 * the operator has granted. `written` may be NULL. There is no append, because one that is made twice writes twice. */
DEEDBOX_CHECKED deedbox_result deedbox_write_file(deedbox_context *ctx, const char *path, deedbox_text bytes,
                                                  deedbox_identity identity, deedbox_written *written);

/* ---- Signals ---- */

typedef struct deedbox_signal {
    deedbox_context *ctx;
    const char *name;
    deedbox_text payload; /* a JSON text */
    uint64_t sequence;    /* its place among all signals of the run, from 1 */
} deedbox_signal;

/* The oldest unread signal of that name, or NULL. */
DEEDBOX_CHECKED deedbox_result deedbox_poll_signal(deedbox_context *ctx, const char *name, const deedbox_signal **signal);
/* Waits for it, without end. A long wait ends this attempt without spending a retry; the run starts again when the signal
 * is here, and this call then gives it. */
DEEDBOX_CHECKED deedbox_result deedbox_wait_signal(deedbox_context *ctx, const char *name, const deedbox_signal **signal);
/* The same with an end: NULL when no signal came in time, counted from the first attempt that waits here. */
DEEDBOX_CHECKED deedbox_result deedbox_wait_signal_for(deedbox_context *ctx, const char *name, uint64_t timeout_ms,
                                                       const deedbox_signal **signal);
/* Reads the payload. Fails with `signal-format`. */
DEEDBOX_CHECKED deedbox_result deedbox_signal_json(const deedbox_signal *signal, const deedbox_json **json);
DEEDBOX_CHECKED deedbox_result deedbox_signal_read(const deedbox_signal *signal, const deedbox_type *type, void *value);

/* ---- Checkpoint: a small note from one attempt to the next ---- */

/* Replaces the saved state, as JSON or as it is. Durable once it returns. */
DEEDBOX_CHECKED deedbox_result deedbox_save(deedbox_context *ctx, const deedbox_type *type, const void *value);
DEEDBOX_CHECKED deedbox_result deedbox_save_bytes(deedbox_context *ctx, deedbox_text state);
/* The state saved last, by this or an earlier attempt. When there is none, `found` is false and the value is untouched. */
DEEDBOX_CHECKED deedbox_result deedbox_load(deedbox_context *ctx, const deedbox_type *type, void *value, bool *found);
bool deedbox_load_bytes(deedbox_context *ctx, deedbox_text *state);

/* ---- Logging and the like ---- */

typedef enum deedbox_level { DEEDBOX_DEBUG, DEEDBOX_INFO, DEEDBOX_WARN, DEEDBOX_ERROR } deedbox_level;

/* One line in the run's log, after the level. printf and stderr go there too. */
void deedbox_log(deedbox_level level, const char *format, ...) DEEDBOX_PRINTF(2, 3);

/* Memory of the attempt, zeroed and aligned for anything. Never NULL: the attempt ends when there is none. */
void *deedbox_alloc(deedbox_context *ctx, size_t size);
/* A string of the attempt, as by printf. */
const char *deedbox_format(deedbox_context *ctx, const char *format, ...) DEEDBOX_PRINTF(2, 3);
/* A copy of these bytes with a zero byte behind them. */
deedbox_text deedbox_copy(deedbox_context *ctx, const void *bytes, size_t size);

#ifdef __cplusplus
}
#endif

#endif
