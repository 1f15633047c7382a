/* Signals to the activity under test. What a call was given it is given again in every later attempt, as by the host. */

#include <string.h>

#include "deedbox_fake.h"

void deedbox_fake_deliver(deedbox_fake *fake, const char *name, const char *payload)
{
    deedbox_signal *signal = deedbox_alloc(&fake->ctx, sizeof *signal);
    deedbox_text text = deedbox_copy(&fake->ctx, payload, strlen(payload));
    *signal = (deedbox_signal){&fake->ctx, deedbox_fake_keep(fake, name), text, fake->delivered.count + 1};
    deedbox_fake_push(fake, &fake->delivered, signal);
}

static bool is_name(const char *name)
{
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    size_t size = strlen(name);
    return size >= 1 && size <= 128 && strspn(name, allowed) == size;
}

static bool was_read(const deedbox_fake *fake, const deedbox_signal *signal)
{
    for (size_t i = 0; i < fake->given.count; i++) {
        if (((const deedbox_given *)fake->given.items[i])->signal == signal) {
            return true;
        }
    }
    return false;
}

static const deedbox_signal *oldest(const deedbox_fake *fake, const char *name)
{
    for (size_t i = 0; i < fake->delivered.count; i++) {
        const deedbox_signal *signal = fake->delivered.items[i];
        if (strcmp(signal->name, name) == 0 && !was_read(fake, signal)) {
            return signal;
        }
    }
    return NULL;
}

static bool is_same(const deedbox_given *given, const char *kind, const char *name)
{
    return strcmp(given->kind, kind) == 0 && strcmp(given->name, name) == 0;
}

/* How many calls of this kind and name this attempt has made. */
static size_t count_asked(const deedbox_fake *fake, const char *kind, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < fake->asked.count; i++) {
        count += is_same(fake->asked.items[i], kind, name);
    }
    return count;
}

static const deedbox_signal *give(deedbox_fake *fake, const char *kind, const char *name)
{
    size_t ordinal = count_asked(fake, kind, name);
    for (size_t i = 0; i < fake->given.count; i++) {
        deedbox_given *given = fake->given.items[i];
        if (given->ordinal == ordinal && is_same(given, kind, name)) {
            deedbox_fake_push(fake, &fake->asked, given);
            return given->signal;
        }
    }
    deedbox_given *given = deedbox_alloc(&fake->ctx, sizeof *given);
    *given = (deedbox_given){kind, deedbox_fake_keep(fake, name), ordinal, oldest(fake, name)};
    deedbox_fake_push(fake, &fake->given, given);
    deedbox_fake_push(fake, &fake->asked, given);
    return given->signal;
}

deedbox_signal_outcome deedbox_fake_poll(deedbox_context *ctx, const char *name, const deedbox_signal **signal)
{
    if (!is_name(name)) {
        return DEEDBOX_SIGNAL_INVALID_NAME;
    }
    *signal = give(deedbox_fake_of(ctx), "poll", name);
    return DEEDBOX_SIGNAL_GIVEN;
}

/* A wait with a time-out is over at once when no signal is here. One without an end would never end. */
deedbox_signal_outcome deedbox_fake_wait(deedbox_context *ctx, const char *name, const uint64_t *timeout_ms,
                                         const deedbox_signal **signal)
{
    if (!is_name(name)) {
        return DEEDBOX_SIGNAL_INVALID_NAME;
    }
    *signal = give(deedbox_fake_of(ctx), "wait", name);
    if (*signal == NULL && timeout_ms == NULL) {
        deedbox_panic("the activity waits for the signal %s without end: deliver it with deedbox_fake_deliver", name);
    }
    return DEEDBOX_SIGNAL_GIVEN;
}
