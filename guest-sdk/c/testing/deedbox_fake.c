/* A host for unit tests. Its memory is that of its one context, so that what a test looks at outlives the activity. */

#include "deedbox_fake.h"

#include <stdlib.h>
#include <string.h>

#define MAX_STATE_BYTES ((size_t)64 * 1024)

deedbox_fake *deedbox_fake_of(deedbox_context *ctx)
{
    return ctx->state;
}

void deedbox_fake_push(deedbox_fake *fake, deedbox_fake_list *list, void *item)
{
    if (list->count == list->room) {
        size_t room = list->room == 0 ? 8 : list->room * 2;
        void **items = deedbox_alloc(&fake->ctx, room * sizeof *items);
        if (list->count > 0) {
            memcpy(items, list->items, list->count * sizeof *items);
        }
        list->items = items;
        list->room = room;
    }
    list->items[list->count++] = item;
}

const char *deedbox_fake_keep(deedbox_fake *fake, const char *string)
{
    return string == NULL ? NULL : deedbox_copy(&fake->ctx, string, strlen(string)).data;
}

static const char *idempotency_key(deedbox_context *ctx)
{
    deedbox_key key = deedbox_key_text(deedbox_fake_of(ctx)->run_key.bytes);
    return deedbox_fake_keep(deedbox_fake_of(ctx), key.text);
}

static const char *subkey(deedbox_context *ctx, deedbox_text name)
{
    deedbox_key key;
    bool allowed = deedbox_derive_subkey(&deedbox_fake_of(ctx)->run_key, name, &key);
    return allowed ? deedbox_fake_keep(deedbox_fake_of(ctx), key.text) : NULL;
}

static deedbox_run run(deedbox_context *ctx)
{
    return deedbox_fake_of(ctx)->run;
}

static bool cancelled(deedbox_context *ctx)
{
    return deedbox_fake_of(ctx)->cancelled;
}

static bool save(deedbox_context *ctx, deedbox_text state)
{
    deedbox_fake *fake = deedbox_fake_of(ctx);
    if (state.size > MAX_STATE_BYTES) {
        return false;
    }
    fake->state = deedbox_copy(ctx, state.data, state.size);
    fake->has_state = true;
    return true;
}

static bool load(deedbox_context *ctx, deedbox_text *state)
{
    *state = deedbox_fake_of(ctx)->state;
    return deedbox_fake_of(ctx)->has_state;
}

static const deedbox_host host = {
    idempotency_key,     subkey,            run,               cancelled, deedbox_fake_send, deedbox_fake_publish,
    deedbox_fake_write, deedbox_fake_poll, deedbox_fake_wait, save,      load,
};

deedbox_fake *deedbox_fake_for_run(const char *run_id, const char **problem)
{
    const char *why = deedbox_run_id_problem(run_id);
    if (problem != NULL) {
        *problem = why;
    }
    if (why != NULL) {
        return NULL;
    }
    deedbox_fake *fake = calloc(1, sizeof *fake);
    if (fake == NULL) {
        deedbox_panic("out of memory: no room for a fake context");
    }
    deedbox_open(&fake->ctx, &host, fake);
    fake->run_key = deedbox_derive_run_key(deedbox_text_of("test"), deedbox_text_of(run_id));
    fake->run = (deedbox_run){"test", deedbox_fake_keep(fake, run_id), "test", 1, 3, 60000};
    return fake;
}

void deedbox_fake_free(deedbox_fake *fake)
{
    if (fake != NULL) {
        deedbox_close(&fake->ctx);
        free(fake);
    }
}

deedbox_context *deedbox_fake_context(deedbox_fake *fake)
{
    return &fake->ctx;
}

deedbox_result deedbox_fake_run(deedbox_fake *fake, const char *activity, const char *input, const char **output)
{
    deedbox_text written = {0};
    deedbox_result failure = deedbox_run_named(&fake->ctx, activity, deedbox_text_of(input), &written);
    if (output != NULL) {
        *output = failure == DEEDBOX_OK ? written.data : NULL;
    }
    return failure;
}

void deedbox_fake_set_attempt(deedbox_fake *fake, uint32_t attempt)
{
    fake->asked.count = 0;
    fake->run.attempt = attempt;
}

void deedbox_fake_set_max_attempts(deedbox_fake *fake, uint32_t attempts)
{
    fake->run.max_attempts = attempts;
}

void deedbox_fake_set_activity(deedbox_fake *fake, const char *name)
{
    fake->run.activity = deedbox_fake_keep(fake, name);
}

void deedbox_fake_set_remaining_ms(deedbox_fake *fake, uint64_t ms)
{
    fake->run.remaining_ms = ms;
}

void deedbox_fake_cancel(deedbox_fake *fake)
{
    fake->cancelled = true;
}

deedbox_text deedbox_fake_state(const deedbox_fake *fake)
{
    return fake->state;
}

bool deedbox_fake_same_json(deedbox_fake *fake, const char *a, const char *b)
{
    const deedbox_json *left, *right;
    bool are_json = deedbox_parse(&fake->ctx, deedbox_text_of(a), &left) == DEEDBOX_OK &&
                    deedbox_parse(&fake->ctx, deedbox_text_of(b), &right) == DEEDBOX_OK;
    return are_json && yyjson_mut_equals((deedbox_json *)(uintptr_t)left, (deedbox_json *)(uintptr_t)right);
}
