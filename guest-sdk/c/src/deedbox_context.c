/* The memory of an attempt and what is known about its run. Nothing in here makes up a key: they come from the host. */

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "deedbox_host.h"

/* Each piece of memory is its own block, so that a tool that watches memory sees where each one ends. */
struct deedbox_block {
    deedbox_block *next;
    alignas(max_align_t) unsigned char bytes[];
};

void *deedbox_alloc(deedbox_context *ctx, size_t size)
{
    if (size > SIZE_MAX - sizeof(deedbox_block)) {
        deedbox_panic("out of memory: %zu bytes were asked for", size);
    }
    deedbox_block *block = calloc(1, sizeof(deedbox_block) + size);
    if (block == NULL) {
        deedbox_panic("out of memory: %zu bytes were asked for", size);
    }
    block->next = ctx->blocks;
    ctx->blocks = block;
    return block->bytes;
}

static void *json_malloc(void *ctx, size_t size)
{
    return deedbox_alloc(ctx, size);
}

static void *json_realloc(void *ctx, void *old, size_t old_size, size_t size)
{
    void *bytes = deedbox_alloc(ctx, size);
    if (old != NULL) {
        memcpy(bytes, old, old_size < size ? old_size : size);
    }
    return bytes;
}

static void json_free(void *ctx, void *bytes)
{
    (void)ctx;
    (void)bytes;
}

void deedbox_open(deedbox_context *ctx, const deedbox_host *host, void *state)
{
    *ctx = (deedbox_context){.host = host, .state = state};
    ctx->allocator = (yyjson_alc){json_malloc, json_realloc, json_free, ctx};
    ctx->values = yyjson_mut_doc_new(&ctx->allocator);
}

void deedbox_close(deedbox_context *ctx)
{
    for (deedbox_block *block = ctx->blocks; block != NULL;) {
        deedbox_block *next = block->next;
        free(block);
        block = next;
    }
    *ctx = (deedbox_context){0};
}

deedbox_text deedbox_text_of(const char *string)
{
    return (deedbox_text){string, string == NULL ? 0 : strlen(string)};
}

deedbox_text deedbox_copy(deedbox_context *ctx, const void *bytes, size_t size)
{
    if (size == SIZE_MAX) {
        deedbox_panic("out of memory: %zu bytes were asked for", size);
    }
    char *copy = deedbox_alloc(ctx, size + 1);
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    return (deedbox_text){copy, size};
}

const char *deedbox_format_list(deedbox_context *ctx, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    char *string = deedbox_alloc(ctx, length < 0 ? 1 : (size_t)length + 1);
    if (length > 0) {
        vsnprintf(string, (size_t)length + 1, format, again);
    }
    va_end(again);
    return string;
}

const char *deedbox_format(deedbox_context *ctx, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *string = deedbox_format_list(ctx, format, arguments);
    va_end(arguments);
    return string;
}

const char *deedbox_idempotency_key(deedbox_context *ctx)
{
    return ctx->host->idempotency_key(ctx);
}

deedbox_result deedbox_subkey_of(deedbox_context *ctx, deedbox_text name, const char **key)
{
    *key = deedbox_is_utf8(name.data, name.size) ? ctx->host->subkey(ctx, name) : NULL;
    if (*key == NULL) {
        return deedbox_permanent(ctx, "invalid-name", "the name of a subkey has 1 to 256 bytes of UTF-8: choose another name");
    }
    return DEEDBOX_OK;
}

deedbox_result deedbox_subkey(deedbox_context *ctx, const char *name, const char **key)
{
    return deedbox_subkey_of(ctx, deedbox_text_of(name), key);
}

deedbox_run deedbox_run_info(deedbox_context *ctx)
{
    return ctx->host->run(ctx);
}

bool deedbox_cancelled(deedbox_context *ctx)
{
    return ctx->host->cancelled(ctx);
}
