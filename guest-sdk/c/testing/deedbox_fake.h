/* What a fake holds. Tests do not include this file. */
#ifndef DEEDBOX_FAKE_H
#define DEEDBOX_FAKE_H

#include "../src/deedbox_host.h"
#include "deedbox_keys.h"
#include "deedbox_testing.h"

/* A list that grows in the memory of the fake. */
typedef struct deedbox_fake_list {
    void **items;
    size_t count;
    size_t room;
} deedbox_fake_list;

typedef struct deedbox_refusal {
    deedbox_error error;
    const char *text;
} deedbox_refusal;

/* What a call to poll or wait was given, to be given again in every later attempt. */
typedef struct deedbox_given {
    const char *kind;
    const char *name;
    size_t ordinal;
    const deedbox_signal *signal;
} deedbox_given;

struct deedbox_fake {
    deedbox_context ctx;
    deedbox_run_key run_key;
    deedbox_run run;
    bool cancelled;
    deedbox_fake_list answers, sent, messages, message_refusals, files, file_refusals, delivered, given, asked;
    size_t answered, refused_messages, refused_files;
    bool has_state;
    deedbox_text state;
};

void deedbox_fake_push(deedbox_fake *fake, deedbox_fake_list *list, void *item);
const char *deedbox_fake_keep(deedbox_fake *fake, const char *string);
deedbox_fake *deedbox_fake_of(deedbox_context *ctx);

deedbox_result deedbox_fake_send(deedbox_context *ctx, const deedbox_request *request, deedbox_response *response);
deedbox_result deedbox_fake_publish(deedbox_context *ctx, const deedbox_message *message, deedbox_published *published);
deedbox_result deedbox_fake_write(deedbox_context *ctx, const char *path, deedbox_text bytes, deedbox_identity identity,
                                  deedbox_written *written);
deedbox_signal_outcome deedbox_fake_poll(deedbox_context *ctx, const char *name, const deedbox_signal **signal);
deedbox_signal_outcome deedbox_fake_wait(deedbox_context *ctx, const char *name, const uint64_t *timeout_ms,
                                         const deedbox_signal **signal);

#endif
