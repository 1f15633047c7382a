/* JSON values: all are in the one mutable document of the context, so that they can be put together freely. */

#include <string.h>

#include "deedbox_host.h"

/* Numbers beyond 64 bits are kept as they are written. */
static const yyjson_read_flag READ = YYJSON_READ_BIGNUM_AS_RAW;

static deedbox_json *there(deedbox_json *value)
{
    if (value == NULL) {
        deedbox_panic("out of memory: no room for a JSON value");
    }
    return value;
}

deedbox_result deedbox_parse_as(deedbox_context *ctx, deedbox_text text, const deedbox_json **json, const char *code,
                                const char *place)
{
    yyjson_read_err error = {0};
    /* Without the flag for reading in place the bytes are not changed. */
    yyjson_doc *read = yyjson_read_opts((char *)(uintptr_t)text.data, text.size, READ, &ctx->allocator, &error);
    if (read == NULL) {
        return deedbox_permanent(ctx, code, "%s: this is not JSON: %s at byte %zu", place,
                                 text.size == 0 ? "it is empty" : error.msg, error.pos);
    }
    *json = there(yyjson_val_mut_copy(ctx->values, yyjson_doc_get_root(read)));
    return DEEDBOX_OK;
}

deedbox_result deedbox_parse(deedbox_context *ctx, deedbox_text text, const deedbox_json **json)
{
    return deedbox_parse_as(ctx, text, json, "invalid-json", "text");
}

deedbox_result deedbox_print(deedbox_context *ctx, const deedbox_json *json, deedbox_text *text)
{
    yyjson_write_err error = {0};
    size_t size = 0;
    char *written = yyjson_mut_val_write_opts(json, YYJSON_WRITE_NOFLAG, &ctx->allocator, &size, &error);
    if (written == NULL) {
        return deedbox_permanent(ctx, "invalid-json", "this cannot be written as JSON: %s",
                                 json == NULL ? "there is no value" : error.msg);
    }
    *text = (deedbox_text){written, size};
    return DEEDBOX_OK;
}

deedbox_json *deedbox_json_null(deedbox_context *ctx)
{
    return there(yyjson_mut_null(ctx->values));
}

deedbox_json *deedbox_json_bool(deedbox_context *ctx, bool value)
{
    return there(yyjson_mut_bool(ctx->values, value));
}

deedbox_json *deedbox_json_int(deedbox_context *ctx, int64_t value)
{
    return there(yyjson_mut_sint(ctx->values, value));
}

deedbox_json *deedbox_json_uint(deedbox_context *ctx, uint64_t value)
{
    return there(yyjson_mut_uint(ctx->values, value));
}

deedbox_json *deedbox_json_double(deedbox_context *ctx, double value)
{
    return there(yyjson_mut_real(ctx->values, value));
}

deedbox_json *deedbox_json_string(deedbox_context *ctx, const char *string)
{
    return deedbox_json_text(ctx, deedbox_text_of(string));
}

deedbox_json *deedbox_json_text(deedbox_context *ctx, deedbox_text text)
{
    if (text.data == NULL) {
        return deedbox_json_null(ctx);
    }
    return there(yyjson_mut_strncpy(ctx->values, text.data, text.size));
}

deedbox_json *deedbox_json_array(deedbox_context *ctx)
{
    return there(yyjson_mut_arr(ctx->values));
}

deedbox_json *deedbox_json_object(deedbox_context *ctx)
{
    return there(yyjson_mut_obj(ctx->values));
}

void deedbox_json_append(deedbox_json *array, deedbox_json *value)
{
    yyjson_mut_arr_append(array, value);
}

void deedbox_json_set(deedbox_context *ctx, deedbox_json *object, const char *name, deedbox_json *value)
{
    deedbox_json_set_text(ctx, object, deedbox_text_of(name), value);
}

void deedbox_json_set_text(deedbox_context *ctx, deedbox_json *object, deedbox_text name, deedbox_json *value)
{
    yyjson_mut_obj_put(object, deedbox_json_text(ctx, name), value);
}

const deedbox_json *deedbox_json_get(const deedbox_json *object, const char *name)
{
    return yyjson_mut_obj_get((deedbox_json *)(uintptr_t)object, name);
}

const deedbox_json *deedbox_json_at(const deedbox_json *array, size_t index)
{
    return yyjson_mut_arr_get((deedbox_json *)(uintptr_t)array, index);
}

size_t deedbox_json_size(const deedbox_json *json)
{
    bool is_object = yyjson_mut_is_obj((deedbox_json *)(uintptr_t)json);
    deedbox_json *value = (deedbox_json *)(uintptr_t)json;
    return is_object ? yyjson_mut_obj_size(value) : yyjson_mut_arr_size(value);
}

bool deedbox_json_is_int(const deedbox_json *json, int64_t *value)
{
    deedbox_json *number = (deedbox_json *)(uintptr_t)json;
    bool fits = yyjson_mut_is_sint(number) || (yyjson_mut_is_uint(number) && yyjson_mut_get_uint(number) <= INT64_MAX);
    if (fits) {
        *value = yyjson_mut_get_sint(number);
    }
    return fits;
}

bool deedbox_json_is_text(const deedbox_json *json, deedbox_text *value)
{
    deedbox_json *string = (deedbox_json *)(uintptr_t)json;
    if (!yyjson_mut_is_str(string)) {
        return false;
    }
    *value = (deedbox_text){yyjson_mut_get_str(string), yyjson_mut_get_len(string)};
    return true;
}

const char *deedbox_json_as_string(const deedbox_json *json)
{
    deedbox_text text;
    bool is_string = deedbox_json_is_text(json, &text) && memchr(text.data, '\0', text.size) == NULL;
    return is_string ? text.data : NULL;
}
