/* Reading JSON into a struct by its table. A caller's input is foreign: whatever it is, it ends as a value or as a failure
 * that names the place, and no value of it is repeated in the message. */

#include <stdlib.h>
#include <string.h>

#include "deedbox_host.h"

#define MAX_DEPTH 100

/* Where we are: a chain up to the whole. A name, or an index when there is none. */
typedef struct place {
    const struct place *up;
    const char *name;
    size_t index;
    size_t depth;
} place;

typedef struct reader {
    deedbox_context *ctx;
    const char *code;
    bool closed;
} reader;

static deedbox_result value(const reader *r, deedbox_json *json, const deedbox_type *type, void *out, const place *here);

static const char *written(deedbox_context *ctx, const place *here)
{
    if (here->up == NULL) {
        return here->name;
    }
    const char *before = written(ctx, here->up);
    return here->name == NULL ? deedbox_format(ctx, "%s[%zu]", before, here->index)
                              : deedbox_format(ctx, "%s.%s", before, here->name);
}

static deedbox_result wrong(const reader *r, const place *here, const char *why)
{
    return deedbox_permanent(r->ctx, r->code, "%s: %s", written(r->ctx, here), why);
}

static const char *what_it_is(const deedbox_json *json)
{
    switch (unsafe_yyjson_get_type((void *)(uintptr_t)json)) {
    case YYJSON_TYPE_NULL: return "null";
    case YYJSON_TYPE_BOOL: return "a boolean";
    case YYJSON_TYPE_NUM:
    case YYJSON_TYPE_RAW: return "a number";
    case YYJSON_TYPE_STR: return "a string";
    case YYJSON_TYPE_ARR: return "an array";
    default: return "an object";
    }
}

static deedbox_result expected(const reader *r, const place *here, const deedbox_json *json, const char *what)
{
    return wrong(r, here, deedbox_format(r->ctx, "this is %s, and %s is expected", what_it_is(json), what));
}

static deedbox_result number(const reader *r, deedbox_json *json, const deedbox_type *type, void *out, const place *here)
{
    bool is_signed = type->kind == DEEDBOX_KIND_SIGNED;
    unsigned bits = (unsigned)type->size * 8;
    uint64_t most = UINT64_MAX >> (64 - bits + (is_signed ? 1 : 0));
    int64_t least = is_signed ? -(int64_t)most - 1 : 0;
    if (!yyjson_mut_is_int(json) && !yyjson_mut_is_raw(json)) {
        return expected(r, here, json, yyjson_mut_is_real(json) ? "a whole one" : "an integer");
    }
    bool negative = yyjson_mut_is_sint(json) && yyjson_mut_get_sint(json) < 0;
    bool fits = yyjson_mut_is_int(json) && (negative ? yyjson_mut_get_sint(json) >= least : yyjson_mut_get_uint(json) <= most);
    if (!fits) {
        return wrong(r, here, deedbox_format(r->ctx, "the number is not in %lld to %llu", (long long)least,
                                             (unsigned long long)most));
    }
    /* Two's complement, as C11's exact-width types are: the low bytes are the value. */
    uint64_t all = yyjson_mut_get_uint(json);
    uint8_t eight = (uint8_t)all;
    uint16_t sixteen = (uint16_t)all;
    uint32_t thirty_two = (uint32_t)all;
    const void *from = type->size == 1 ? (void *)&eight : type->size == 2 ? (void *)&sixteen
                       : type->size == 4 ? (void *)&thirty_two : (void *)&all;
    memcpy(out, from, type->size);
    return DEEDBOX_OK;
}

static deedbox_result real(const reader *r, deedbox_json *json, void *out, const place *here)
{
    if (!yyjson_mut_is_num(json) && !yyjson_mut_is_raw(json)) {
        return expected(r, here, json, "a number");
    }
    double read = yyjson_mut_is_raw(json) ? strtod(yyjson_mut_get_raw(json), NULL) : yyjson_mut_get_num(json);
    memcpy(out, &read, sizeof read);
    return DEEDBOX_OK;
}

static deedbox_result string(const reader *r, deedbox_json *json, const deedbox_type *type, void *out, const place *here)
{
    deedbox_text text;
    if (!deedbox_json_is_text(json, &text)) {
        return expected(r, here, json, "a string");
    }
    if (type->kind == DEEDBOX_KIND_TEXT) {
        memcpy(out, &text, sizeof text);
        return DEEDBOX_OK;
    }
    if (memchr(text.data, '\0', text.size) != NULL) {
        return wrong(r, here, "the string holds a zero byte");
    }
    memcpy(out, &text.data, sizeof text.data);
    return DEEDBOX_OK;
}

static deedbox_result list(const reader *r, deedbox_json *json, const deedbox_field *field, char *structure,
                           const place *here)
{
    if (!yyjson_mut_is_arr(json)) {
        return expected(r, here, json, "an array");
    }
    size_t count = yyjson_mut_arr_size(json);
    if (count > SIZE_MAX / field->type->size) {
        return wrong(r, here, "the array is too long");
    }
    char *elements = deedbox_alloc(r->ctx, count * field->type->size);
    size_t i = 0, most = 0;
    deedbox_json *element;
    yyjson_mut_arr_foreach(json, i, most, element) {
        place at = {here, NULL, i, here->depth + 1};
        DEEDBOX_TRY(value(r, element, field->type, elements + i * field->type->size, &at));
    }
    memcpy(structure + field->offset, &elements, sizeof elements);
    memcpy(structure + field->count_offset, &count, sizeof count);
    return DEEDBOX_OK;
}

static bool is_list(const deedbox_field *field)
{
    return field->form == DEEDBOX_LIST_FORM || field->form == DEEDBOX_OPTIONAL_LIST_FORM;
}

static bool is_optional(const deedbox_field *field)
{
    return field->form == DEEDBOX_OPTIONAL_FORM || field->form == DEEDBOX_OPTIONAL_LIST_FORM;
}

static deedbox_result member(const reader *r, deedbox_json *json, const deedbox_field *field, char *structure,
                             const place *here)
{
    if (is_optional(field) && yyjson_mut_is_null(json)) {
        return DEEDBOX_OK;
    }
    if (is_list(field)) {
        return list(r, json, field, structure, here);
    }
    bool is_pointer = field->type->kind == DEEDBOX_KIND_STRING || field->type->kind == DEEDBOX_KIND_JSON;
    if (field->form == DEEDBOX_REQUIRED || is_pointer) {
        return value(r, json, field->type, structure + field->offset, here);
    }
    void *pointed = deedbox_alloc(r->ctx, field->type->size);
    DEEDBOX_TRY(value(r, json, field->type, pointed, here));
    memcpy(structure + field->offset, &pointed, sizeof pointed);
    return DEEDBOX_OK;
}

static deedbox_result unknown(const reader *r, const deedbox_type *type, const place *here)
{
    const char *names = "";
    for (size_t i = 0; i < type->field_count; i++) {
        names = deedbox_format(r->ctx, "%s%s%s", names, i == 0 ? "" : ", ", type->fields[i].name);
    }
    return wrong(r, here, deedbox_format(r->ctx, "there is no such member; there are: %s", names));
}

static deedbox_result structure(const reader *r, deedbox_json *json, const deedbox_type *type, char *out, const place *here)
{
    if (!yyjson_mut_is_obj(json)) {
        return expected(r, here, json, "an object");
    }
    if (here->depth > MAX_DEPTH) {
        return wrong(r, here, "this is nested too deeply");
    }
    memset(out, 0, type->size);
    bool *seen = deedbox_alloc(r->ctx, type->field_count * sizeof *seen);
    size_t i = 0, most = 0;
    deedbox_json *name, *content;
    yyjson_mut_obj_foreach(json, i, most, name, content) {
        size_t at = 0;
        while (at < type->field_count && !yyjson_mut_equals_str(name, type->fields[at].name)) {
            at++;
        }
        place inner = {here, yyjson_mut_get_str(name), 0, here->depth + 1};
        if (at == type->field_count) {
            if (r->closed) {
                return unknown(r, type, &inner);
            }
            continue;
        }
        if (seen[at]) {
            return wrong(r, &inner, "this member is there twice");
        }
        seen[at] = true;
        DEEDBOX_TRY(member(r, content, &type->fields[at], out, &inner));
    }
    for (size_t at = 0; at < type->field_count; at++) {
        if (!seen[at] && !is_optional(&type->fields[at])) {
            place inner = {here, type->fields[at].name, 0, here->depth + 1};
            return wrong(r, &inner, "this member is missing");
        }
    }
    return DEEDBOX_OK;
}

static deedbox_result value(const reader *r, deedbox_json *json, const deedbox_type *type, void *out, const place *here)
{
    switch (type->kind) {
    case DEEDBOX_KIND_STRING:
    case DEEDBOX_KIND_TEXT: return string(r, json, type, out, here);
    case DEEDBOX_KIND_SIGNED:
    case DEEDBOX_KIND_UNSIGNED: return number(r, json, type, out, here);
    case DEEDBOX_KIND_REAL: return real(r, json, out, here);
    case DEEDBOX_KIND_STRUCT: return structure(r, json, type, out, here);
    case DEEDBOX_KIND_BOOLEAN: break;
    case DEEDBOX_KIND_JSON: memcpy(out, &json, sizeof json); return DEEDBOX_OK;
    }
    if (!yyjson_mut_is_bool(json)) {
        return expected(r, here, json, "a boolean");
    }
    bool read = yyjson_mut_get_bool(json);
    memcpy(out, &read, sizeof read);
    return DEEDBOX_OK;
}

deedbox_result deedbox_read(deedbox_context *ctx, const deedbox_json *json, const deedbox_type *type, void *out,
                            const char *code, const char *whole, bool closed)
{
    reader r = {ctx, code, closed};
    place here = {NULL, whole, 0, 0};
    if (json == NULL) {
        return wrong(&r, &here, "there is no value");
    }
    return value(&r, (deedbox_json *)(uintptr_t)json, type, out, &here);
}

deedbox_result deedbox_decode(deedbox_context *ctx, const deedbox_json *json, const deedbox_type *type, void *out)
{
    return deedbox_read(ctx, json, type, out, "invalid-json", "value", false);
}
