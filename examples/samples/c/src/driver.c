/* What the conformance list asks of every language beside the five samples: each shows one part of the SDK alone. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"

struct names {
    const deedbox_text *names;
    size_t count;
};
DEEDBOX_TYPE(names_type, struct names, DEEDBOX_LIST(struct names, names, count))

struct all_keys {
    const char *run;
    const deedbox_json *subkeys;
};
DEEDBOX_TYPE(all_keys_type, struct all_keys, DEEDBOX_FIELD(struct all_keys, run), DEEDBOX_FIELD(struct all_keys, subkeys))

static deedbox_result keys(deedbox_context *ctx, const struct names *wanted, struct all_keys *all)
{
    deedbox_json *subkeys = deedbox_json_object(ctx);
    for (size_t i = 0; i < wanted->count; i++) {
        const char *key;
        DEEDBOX_TRY(deedbox_subkey_of(ctx, wanted->names[i], &key));
        deedbox_json_set_text(ctx, subkeys, wanted->names[i], deedbox_json_string(ctx, key));
    }
    *all = (struct all_keys){deedbox_idempotency_key(ctx), subkeys};
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(keys, "keys", "The run key, and a subkey for each name.", names_type, all_keys_type)

struct failing {
    const char *code;
    const char *message;
    const char *kind;
    const uint64_t *retry_after_ms;
    const deedbox_json *details;
};
DEEDBOX_TYPE(failing_type, struct failing,
             DEEDBOX_FIELD(struct failing, code),
             DEEDBOX_FIELD(struct failing, message),
             DEEDBOX_FIELD(struct failing, kind),
             DEEDBOX_OPTIONAL(struct failing, retry_after_ms),
             DEEDBOX_OPTIONAL(struct failing, details))

static deedbox_result fail(deedbox_context *ctx, const struct failing *how, deedbox_json_type_struct *output)
{
    (void)output;
    bool is_permanent = strcmp(how->kind, "permanent") == 0;
    if (!is_permanent && strcmp(how->kind, "retryable") != 0) {
        return deedbox_permanent(ctx, "invalid-input", "input.kind: this is neither \"retryable\" nor \"permanent\"");
    }
    deedbox_failure *failure = is_permanent ? deedbox_permanent(ctx, how->code, "%s", how->message)
                                            : deedbox_retryable(ctx, how->code, "%s", how->message);
    if (how->retry_after_ms != NULL) {
        deedbox_retry_after(failure, *how->retry_after_ms);
    }
    return deedbox_with_details(failure, how->details);
}
DEEDBOX_ACTIVITY(fail, "fail", "Fails as it is told to.", failing_type, deedbox_json_type)

struct words {
    const char *words;
};
DEEDBOX_TYPE(words_type, struct words, DEEDBOX_FIELD(struct words, words))

static deedbox_result panic(deedbox_context *ctx, const struct words *said, deedbox_json_type_struct *output)
{
    (void)ctx;
    (void)output;
    fprintf(stderr, "%s\n", said->words);
    abort();
}
DEEDBOX_ACTIVITY(panic, "panic", "Ends by abort.", words_type, deedbox_json_type)

struct what {
    const char *kind;
};
DEEDBOX_TYPE(what_type, struct what, DEEDBOX_FIELD(struct what, kind))

/* The compiler must not see through these. */
static volatile uint64_t kept;
static uint64_t deeper(uint64_t depth);
static uint64_t (*volatile step)(uint64_t) = deeper;

static uint64_t deeper(uint64_t depth)
{
    uint64_t below = step(depth + 1);
    kept = below;
    return below + depth;
}

static deedbox_result spend(deedbox_context *ctx, const struct what *what, deedbox_json_type_struct *output)
{
    (void)ctx;
    (void)output;
    while (strcmp(what->kind, "loop") == 0) {
        kept++;
    }
    while (strcmp(what->kind, "memory") == 0) {
        char *block = malloc((size_t)1 << 20);
        if (block == NULL) {
            fputs("no more memory\n", stderr);
            abort();
        }
        memset(block, 1, (size_t)1 << 20);
        kept += (uintptr_t)block;
    }
    kept = deeper(0);
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(spend, "spend", "Never ends, takes memory without end, or calls itself without end.", what_type,
                 deedbox_json_type)

struct work {
    int64_t steps;
    const char *provider_url;
};
DEEDBOX_TYPE(work_type, struct work, DEEDBOX_FIELD(struct work, steps), DEEDBOX_FIELD(struct work, provider_url))

struct progress {
    int64_t done;
};
DEEDBOX_TYPE(progress_type, struct progress, DEEDBOX_FIELD(struct progress, done))

struct worked {
    int64_t done;
    int64_t began_at;
};
DEEDBOX_TYPE(worked_type, struct worked, DEEDBOX_FIELD(struct worked, done), DEEDBOX_FIELD(struct worked, began_at))

static deedbox_result checkpointed(deedbox_context *ctx, const struct work *work, struct worked *worked)
{
    struct progress progress = {0};
    bool found;
    DEEDBOX_TRY(deedbox_load(ctx, &progress_type, &progress, &found));
    *worked = (struct worked){work->steps, progress.done};
    for (int64_t i = progress.done + 1; i <= work->steps; i++) {
        deedbox_json *body = deedbox_json_object(ctx);
        deedbox_json_set(ctx, body, "step", deedbox_json_int(ctx, i));
        const char *url = deedbox_format(ctx, "%s/v1/steps", work->provider_url);
        const deedbox_response *answer;
        DEEDBOX_TRY(post_or_fail(ctx, url, deedbox_format(ctx, "step-%" PRId64, i), body, &answer));
        DEEDBOX_TRY(deedbox_save(ctx, &progress_type, &(struct progress){i}));
    }
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(checkpointed, "checkpointed", "Makes steps, and notes after each how far it has come.", work_type,
                 worked_type)

struct note {
    const char *subject;
    deedbox_text text;
};
DEEDBOX_TYPE(note_type, struct note, DEEDBOX_FIELD(struct note, subject), DEEDBOX_FIELD(struct note, text))

struct place {
    const char *stream;
    uint64_t sequence;
};
DEEDBOX_TYPE(place_type, struct place, DEEDBOX_FIELD(struct place, stream), DEEDBOX_FIELD(struct place, sequence))

static deedbox_result publish(deedbox_context *ctx, const struct note *note, struct place *place)
{
    deedbox_message message = {.subject = note->subject, .payload = note->text, .identity = DEEDBOX_NAMED("note")};
    deedbox_published published;
    DEEDBOX_TRY(deedbox_publish(ctx, &message, &published));
    *place = (struct place){published.stream, published.sequence};
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(publish, "publish", "Publishes a message.", note_type, place_type)

static deedbox_result log_words(deedbox_context *ctx, const struct words *said, deedbox_json_type_struct *output)
{
    (void)ctx;
    (void)output;
    deedbox_log(DEEDBOX_DEBUG, "%s", said->words);
    deedbox_log(DEEDBOX_INFO, "%s", said->words);
    deedbox_log(DEEDBOX_WARN, "%s", said->words);
    deedbox_log(DEEDBOX_ERROR, "%s", said->words);
    printf("%s\n", said->words);
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(log_words, "log", "Says it at each level, and prints it.", words_type, deedbox_json_type)

struct nested {
    const deedbox_text *list;
    size_t count;
};
DEEDBOX_TYPE(nested_type, struct nested, DEEDBOX_LIST(struct nested, list, count))

struct echoed {
    int64_t a;
    deedbox_text b;
    const bool *c;
    const struct nested *nested;
};
DEEDBOX_TYPE(echoed_type, struct echoed,
             DEEDBOX_FIELD(struct echoed, a),
             DEEDBOX_FIELD(struct echoed, b),
             DEEDBOX_OPTIONAL(struct echoed, c),
             DEEDBOX_OPTIONAL_STRUCT(struct echoed, nested, nested_type))

static deedbox_result echo(deedbox_context *ctx, const struct echoed *it, struct echoed *again)
{
    (void)ctx;
    *again = *it;
    return DEEDBOX_OK;
}
DEEDBOX_ACTIVITY(echo, "echo", "Gives the same back.", echoed_type, echoed_type)
