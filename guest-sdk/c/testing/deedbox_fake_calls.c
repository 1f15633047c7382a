/* The calls to the outside of an activity under test: they are remembered, and answered from the script. */

#include <string.h>

#include "deedbox_fake.h"

static const char EFFECT[] = "0000000000000000000000000000000000000000000000000000000000000000";

static deedbox_error error_of(const char *code)
{
    for (int i = 0; i < DEEDBOX_ERROR_COUNT; i++) {
        if (strcmp(deedbox_error_code((deedbox_error)i), code) == 0) {
            return (deedbox_error)i;
        }
    }
    deedbox_panic("no call of the host fails with \"%s\": script an answer instead, or look the code up in the README", code);
}

static const deedbox_header *keep_headers(deedbox_fake *fake, const deedbox_header *headers, size_t count)
{
    deedbox_header *kept = deedbox_alloc(&fake->ctx, count * sizeof *kept);
    for (size_t i = 0; i < count; i++) {
        kept[i].name = deedbox_fake_keep(fake, headers[i].name);
        kept[i].value = deedbox_copy(&fake->ctx, headers[i].value.data, headers[i].value.size);
    }
    return kept;
}

static deedbox_identity keep_identity(deedbox_fake *fake, deedbox_identity identity)
{
    return (deedbox_identity){deedbox_fake_keep(fake, identity.name), deedbox_fake_keep(fake, identity.operation),
                              deedbox_fake_keep(fake, identity.key)};
}

static deedbox_condition keep_condition(deedbox_fake *fake, deedbox_condition condition)
{
    size_t size = condition.status_count * sizeof *condition.statuses;
    uint16_t *statuses = deedbox_alloc(&fake->ctx, size);
    if (size > 0) {
        memcpy(statuses, condition.statuses, size);
    }
    return (deedbox_condition){statuses, condition.status_count, deedbox_fake_keep(fake, condition.pointer),
                               deedbox_fake_keep(fake, condition.equals)};
}

static const deedbox_lookup *keep_lookup(deedbox_fake *fake, const deedbox_lookup *lookup)
{
    if (lookup == NULL) {
        return NULL;
    }
    deedbox_lookup *kept = deedbox_alloc(&fake->ctx, sizeof *kept);
    *kept = *lookup;
    kept->url = deedbox_fake_keep(fake, lookup->url);
    kept->headers = keep_headers(fake, lookup->headers, lookup->header_count);
    kept->found = keep_condition(fake, lookup->found);
    kept->absent = keep_condition(fake, lookup->absent);
    return kept;
}

void deedbox_fake_answer(deedbox_fake *fake, const deedbox_answer *answer)
{
    deedbox_answer *kept = deedbox_alloc(&fake->ctx, sizeof *kept);
    *kept = *answer;
    deedbox_text body = answer->json != NULL ? deedbox_text_of(answer->json) : answer->body;
    const deedbox_header *headers = answer->headers;
    if (answer->json != NULL) {
        headers = deedbox_typed(&fake->ctx, headers, &kept->header_count, "content-type", "application/json");
    }
    kept->status = answer->status == 0 ? 200 : answer->status;
    kept->body = deedbox_copy(&fake->ctx, body.data, body.size);
    kept->headers = keep_headers(fake, headers, kept->header_count);
    kept->text = deedbox_fake_keep(fake, answer->text);
    if (answer->error != NULL) {
        kept->error = deedbox_error_code(error_of(answer->error));
    }
    deedbox_fake_push(fake, &fake->answers, kept);
}

deedbox_result deedbox_fake_send(deedbox_context *ctx, const deedbox_request *request, deedbox_response *response)
{
    deedbox_fake *fake = deedbox_fake_of(ctx);
    deedbox_request *kept = deedbox_alloc(ctx, sizeof *kept);
    *kept = *request;
    kept->method = deedbox_fake_keep(fake, request->method);
    kept->url = deedbox_fake_keep(fake, request->url);
    kept->headers = keep_headers(fake, request->headers, request->header_count);
    kept->body = deedbox_copy(ctx, request->body.data, request->body.size);
    kept->identity = keep_identity(fake, request->identity);
    kept->lookup = keep_lookup(fake, request->lookup);
    deedbox_fake_push(fake, &fake->sent, kept);
    if (fake->answered == fake->answers.count) {
        deedbox_panic("no answer for %s %s: add one with deedbox_fake_answer", request->method, request->url);
    }
    const deedbox_answer *answer = fake->answers.items[fake->answered++];
    if (answer->error != NULL) {
        return deedbox_call_failure(ctx, DEEDBOX_CALLEE_HTTP, error_of(answer->error), answer->text, 0);
    }
    *response = (deedbox_response){
        .status = answer->status,
        .headers = answer->headers,
        .header_count = answer->header_count,
        .body_kept = !answer->without_body,
        .body = answer->body,
        .source = answer->without_body ? DEEDBOX_REPLAYED : answer->source,
        .effect_id = EFFECT,
    };
    return DEEDBOX_OK;
}

static void refuse(deedbox_fake *fake, deedbox_fake_list *refusals, const char *error, const char *text)
{
    deedbox_refusal *refusal = deedbox_alloc(&fake->ctx, sizeof *refusal);
    *refusal = (deedbox_refusal){error_of(error), deedbox_fake_keep(fake, text)};
    deedbox_fake_push(fake, refusals, refusal);
}

void deedbox_fake_refuse_message(deedbox_fake *fake, const char *error, const char *text)
{
    refuse(fake, &fake->message_refusals, error, text);
}

void deedbox_fake_refuse_write(deedbox_fake *fake, const char *error, const char *text)
{
    refuse(fake, &fake->file_refusals, error, text);
}

deedbox_result deedbox_fake_publish(deedbox_context *ctx, const deedbox_message *message, deedbox_published *published)
{
    deedbox_fake *fake = deedbox_fake_of(ctx);
    deedbox_message *kept = deedbox_alloc(ctx, sizeof *kept);
    *kept = *message;
    kept->subject = deedbox_fake_keep(fake, message->subject);
    kept->payload = deedbox_copy(ctx, message->payload.data, message->payload.size);
    kept->headers = keep_headers(fake, message->headers, message->header_count);
    kept->identity = keep_identity(fake, message->identity);
    deedbox_fake_push(fake, &fake->messages, kept);
    if (fake->refused_messages < fake->message_refusals.count) {
        const deedbox_refusal *refusal = fake->message_refusals.items[fake->refused_messages++];
        return deedbox_call_failure(ctx, DEEDBOX_CALLEE_MESSAGING, refusal->error, refusal->text, 0);
    }
    uint64_t sequence = fake->messages.count;
    const char *id = deedbox_format(ctx, "00000000-0000-8000-8000-%012llu", (unsigned long long)sequence);
    *published = (deedbox_published){"TEST", sequence, false, id, DEEDBOX_SENT, EFFECT};
    return DEEDBOX_OK;
}

deedbox_result deedbox_fake_write(deedbox_context *ctx, const char *path, deedbox_text bytes, deedbox_identity identity,
                                  deedbox_written *written)
{
    deedbox_fake *fake = deedbox_fake_of(ctx);
    deedbox_fake_file *kept = deedbox_alloc(ctx, sizeof *kept);
    *kept = (deedbox_fake_file){deedbox_fake_keep(fake, path), deedbox_copy(ctx, bytes.data, bytes.size),
                                keep_identity(fake, identity)};
    deedbox_fake_push(fake, &fake->files, kept);
    if (fake->refused_files < fake->file_refusals.count) {
        const deedbox_refusal *refusal = fake->file_refusals.items[fake->refused_files++];
        return deedbox_call_failure(ctx, DEEDBOX_CALLEE_FILES, refusal->error, refusal->text, 0);
    }
    *written = (deedbox_written){DEEDBOX_SENT, EFFECT};
    return DEEDBOX_OK;
}

static const void *item(const deedbox_fake_list *list, size_t index)
{
    return index < list->count ? list->items[index] : NULL;
}

size_t deedbox_fake_sent_count(const deedbox_fake *fake)
{
    return fake->sent.count;
}

const deedbox_request *deedbox_fake_sent(const deedbox_fake *fake, size_t index)
{
    return item(&fake->sent, index);
}

size_t deedbox_fake_published_count(const deedbox_fake *fake)
{
    return fake->messages.count;
}

const deedbox_message *deedbox_fake_published(const deedbox_fake *fake, size_t index)
{
    return item(&fake->messages, index);
}

size_t deedbox_fake_file_count(const deedbox_fake *fake)
{
    return fake->files.count;
}

const deedbox_fake_file *deedbox_fake_written(const deedbox_fake *fake, size_t index)
{
    return item(&fake->files, index);
}
