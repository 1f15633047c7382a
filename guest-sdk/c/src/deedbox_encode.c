/* Writing a struct as JSON by its table. What is absent is left out. */

#include <string.h>

#include "deedbox_host.h"

/* A value of the author's may be put into several places: its node is copied, and its children are shared. */
static deedbox_json *shared(deedbox_context *ctx, const deedbox_json *value)
{
    deedbox_json *node = deedbox_json_null(ctx);
    if (value != NULL) {
        node->tag = value->tag;
        node->uni = value->uni;
    }
    return node;
}

static uint64_t read_unsigned(size_t size, const void *from)
{
    uint64_t all = 0;
    uint32_t thirty_two = 0;
    uint16_t sixteen = 0;
    uint8_t eight = 0;
    switch (size) {
    case 1: memcpy(&eight, from, size); return eight;
    case 2: memcpy(&sixteen, from, size); return sixteen;
    case 4: memcpy(&thirty_two, from, size); return thirty_two;
    default: memcpy(&all, from, size); return all;
    }
}

static int64_t read_signed(size_t size, const void *from)
{
    int64_t all = 0;
    int32_t thirty_two = 0;
    int16_t sixteen = 0;
    int8_t eight = 0;
    switch (size) {
    case 1: memcpy(&eight, from, size); return eight;
    case 2: memcpy(&sixteen, from, size); return sixteen;
    case 4: memcpy(&thirty_two, from, size); return thirty_two;
    default: memcpy(&all, from, size); return all;
    }
}

static deedbox_json *list(deedbox_context *ctx, const deedbox_field *field, const char *structure, const char *elements)
{
    size_t count;
    memcpy(&count, structure + field->count_offset, sizeof count);
    deedbox_json *array = deedbox_json_array(ctx);
    for (size_t i = 0; i < count; i++) {
        deedbox_json_append(array, deedbox_encode(ctx, field->type, elements + i * field->type->size));
    }
    return array;
}

/* NULL when it is absent. */
static deedbox_json *member(deedbox_context *ctx, const deedbox_field *field, const char *structure)
{
    const char *at = structure + field->offset;
    bool is_pointer = field->type->kind == DEEDBOX_KIND_STRING || field->type->kind == DEEDBOX_KIND_JSON;
    if (field->form == DEEDBOX_REQUIRED) {
        return deedbox_encode(ctx, field->type, at);
    }
    const char *pointed;
    memcpy(&pointed, at, sizeof pointed);
    if (field->form == DEEDBOX_LIST_FORM) {
        return pointed == NULL ? deedbox_json_array(ctx) : list(ctx, field, structure, pointed);
    }
    if (pointed == NULL) {
        return NULL;
    }
    if (field->form == DEEDBOX_OPTIONAL_LIST_FORM) {
        return list(ctx, field, structure, pointed);
    }
    return deedbox_encode(ctx, field->type, is_pointer ? at : pointed);
}

static deedbox_json *structure(deedbox_context *ctx, const deedbox_type *type, const char *from)
{
    deedbox_json *object = deedbox_json_object(ctx);
    for (size_t i = 0; i < type->field_count; i++) {
        deedbox_json *content = member(ctx, &type->fields[i], from);
        if (content != NULL) {
            yyjson_mut_obj_add(object, deedbox_json_string(ctx, type->fields[i].name), content);
        }
    }
    return object;
}

deedbox_json *deedbox_encode(deedbox_context *ctx, const deedbox_type *type, const void *value)
{
    const char *string;
    deedbox_text text;
    const deedbox_json *json;
    double real;
    switch (type->kind) {
    case DEEDBOX_KIND_STRING: memcpy(&string, value, sizeof string); return deedbox_json_string(ctx, string);
    case DEEDBOX_KIND_TEXT: memcpy(&text, value, sizeof text); return deedbox_json_text(ctx, text);
    case DEEDBOX_KIND_SIGNED: return deedbox_json_int(ctx, read_signed(type->size, value));
    case DEEDBOX_KIND_UNSIGNED: return deedbox_json_uint(ctx, read_unsigned(type->size, value));
    case DEEDBOX_KIND_REAL: memcpy(&real, value, sizeof real); return deedbox_json_double(ctx, real);
    case DEEDBOX_KIND_JSON: memcpy(&json, value, sizeof json); return shared(ctx, json);
    case DEEDBOX_KIND_STRUCT: return structure(ctx, type, value);
    case DEEDBOX_KIND_BOOLEAN: break;
    }
    return deedbox_json_bool(ctx, *(const bool *)value);
}
